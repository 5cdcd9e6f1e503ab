"""The slot right before compaction: marks of messages and summary take effect here, and the history is made valid."""

from __future__ import annotations

from dataclasses import replace

from hango.chain import history
from hango.chain.draft import Draft
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.state import State
from hango.messages import Response


class ContextOverridesMiddleware(Middleware):
    name = "context_overrides"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        mended = history.repair(
            draft.kept_messages(),
            state.dialect,
            state.agent.model,
            has_tools=bool(draft.kept_tools()),
            prefill=state.prefill,
        )
        return await call_next(replace(draft, repair=mended))
