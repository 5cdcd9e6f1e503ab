"""The slot right before compaction: overrides take effect here, and the history is made valid.

A stored set can turn bad after it was saved. Then the request goes out without the overrides of messages and summary:
never an invalid request, and never in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hango import logs, telemetry
from hango.chain import history
from hango.chain.context_overrides import CALL, Applied, effective
from hango.chain.draft import Draft
from hango.chain.history import Repair
from hango.chain.marking import check_included, mark
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.parts import message_seq
from hango.chain.state import State
from hango.chain.validity import new_fault, refused
from hango.digests import MessageDigest
from hango.errors import Detail
from hango.messages import Response
from hango.telemetry import Attr, Event


class ContextOverridesMiddleware(Middleware):
    """The overrides of a state were loaded once: no run sees its context change between turns."""

    name = "context_overrides"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        check_included(state.wanted.include, last_seq=state.last_seq)
        applied = effective(state.saved, state.wanted.overrides, state.wanted.include)
        return await call_next(_marked(state, draft, applied))


def _marked(state: State, draft: Draft, applied: Sequence[Applied]) -> Draft:
    def repaired(items: Sequence[MessageDigest], *, has_tools: bool) -> Repair:
        return history.repair(
            items,
            state.dialect,
            state.agent.model,
            has_tools=has_tools,
            prefill=state.prefill,
            own_model=state.own_model,
        )

    marked = mark(draft, applied, last_seq=state.last_seq)
    kept = marked.kept_messages()
    mended = repaired(kept, has_tools=bool(marked.kept_tools()))
    unmarked = mended if kept is draft.messages else repaired(draft.messages, has_tools=bool(draft.tools))
    fault = new_fault(mended, unmarked)
    if fault is None:
        return replace(marked, repair=mended, unmarked=unmarked)
    of_history = [one for one in applied if message_seq(one.override.part) is not None]
    if any(one.scope == CALL for one in of_history):
        raise refused(fault, marked)
    logs.error(logs.Log.OVERRIDES_NOT_APPLIED, session_id=state.session_id)
    telemetry.happened(Event.OVERRIDES_NOT_APPLIED, {Attr.REASON: fault.reason})
    message = (
        "The saved overrides of messages are not applied: they would leave no valid request. Change or clear them."
    )
    noted = replace(draft, problems=(*draft.problems, Detail(fault.reason, message)))
    return _marked(state, noted, [one for one in applied if one not in of_history])
