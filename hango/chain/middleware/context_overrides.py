"""The slot right before compaction: marks of messages and summary take effect here, and the history is made valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hango.chain import history
from hango.chain.draft import Draft
from hango.chain.history import Repair
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.state import State
from hango.domain import MessageDigest
from hango.messages import Response


class ContextOverridesMiddleware(Middleware):
    name = "context_overrides"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        def repaired(items: Sequence[MessageDigest], *, has_tools: bool) -> Repair:
            return history.repair(items, state.dialect, state.agent.model, has_tools=has_tools, prefill=state.prefill)

        kept, stored = draft.kept_messages(), draft.stored_messages()
        mended = repaired(kept, has_tools=bool(draft.kept_tools()))
        unmarked = mended if kept is stored else repaired(stored, has_tools=bool(draft.tools))
        return await call_next(replace(draft, repair=mended, unmarked=unmarked))
