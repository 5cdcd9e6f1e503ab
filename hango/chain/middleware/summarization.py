"""Compaction: judged on the filtered request as it is now. In a captured call it only says `would_compact`."""

from __future__ import annotations

from dataclasses import replace

from hango.chain.draft import Draft
from hango.chain.measure import measure
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.state import State
from hango.messages import Response

# Room for the answer and for the estimate's error.
DEFAULT_SHARE_OF_WINDOW = 0.85


class SummarizationMiddleware(Middleware):
    name = "summarization"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        trigger = state.agent.compaction.trigger_tokens or int(state.window * DEFAULT_SHARE_OF_WINDOW)
        size = measure(draft, state.factor)
        over = size.after > trigger
        return await call_next(replace(draft, size=size, compact_at=trigger, would_compact=over))
