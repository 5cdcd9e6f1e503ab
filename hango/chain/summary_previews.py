"""The preview of a summary: the call that a run would make to compact its session, as a try of another kind."""

from __future__ import annotations

from dataclasses import replace

from hango.chain import base as bases
from hango.chain import calls, context, sendable, summaries
from hango.chain.calls import NextCall
from hango.chain.deps import Deps
from hango.chain.state import UNCHANGED
from hango.chain.summary_calls import summary_call
from hango.chain.tries import ContextChanged, Plan, Prepared, Variant, new_request
from hango.domain import BaseID, SessionID
from hango.errors import Invalid, NotFound, Reason
from hango.store.connection import Scope
from hango.tries import ClaimedRequest

_UNCHANGED = Variant(None, UNCHANGED)


async def plan(scope: Scope, deps: Deps, session_id: SessionID) -> Plan:
    """What would be asked now. Raises NotFound, and Invalid (`nothing_to_summarize`, what could not be sent)."""
    async with context.bounded(deps.settings.before_run_max):
        base = await bases.current(scope, session_id)
    planned = await calls.read_call(scope, deps, base)
    through = summaries.cut_of(planned.drafted.draft, planned.drafted.state.agent.compaction.keep_messages)
    if through is None:
        message = "There is nothing to summarize: the last messages, which the agent keeps, are all that there is."
        raise Invalid.because(Reason.NOTHING_TO_SUMMARIZE, message)
    asked = summary_call(planned, through)
    sendable.check(deps, asked.drafted)
    return Plan(base, (replace(new_request(_UNCHANGED, asked.drafted), through_seq=through),))


async def prepare(scope: Scope, deps: Deps, session_id: SessionID, wanted: ClaimedRequest) -> Prepared:
    """The request of a claimed preview. Raises ContextChanged when it is not the one that was accepted."""
    assert wanted.through_seq is not None, "it is the preview of a summary"
    try:
        planned = await _rebuild(scope, deps, wanted.base_id)
    except (Invalid, NotFound):
        raise ContextChanged from None
    asked = summary_call(planned, wanted.through_seq)
    if asked.drafted.sha256 != wanted.request_sha256 or planned.base.session_id != session_id:
        raise ContextChanged
    return Prepared(
        request=asked.request,
        provider=asked.drafted.state.agent.provider,
        model=asked.model,
        raw_tokens=asked.raw_tokens,
        overrides=0,
        excluded_tokens=0,
    )


async def covered(scope: Scope, deps: Deps, base_id: BaseID, through_seq: int) -> summaries.Covered:
    """What a preview's summary stands for, as the model got it. Raises NotFound."""
    planned = await _rebuild(scope, deps, base_id)
    return summaries.covered(planned.drafted.draft, planned.bodies, through_seq)


async def _rebuild(scope: Scope, deps: Deps, base_id: BaseID) -> NextCall:
    return await calls.read_call(scope, deps, await calls.start_base(scope, base_id))
