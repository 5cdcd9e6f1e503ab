"""The cache mark: on the last system block that is sent, or on the last tool when no system block is.

Providers read tools, then system, then messages, and cache up to and including the mark.
"""

from __future__ import annotations

from dataclasses import replace

from hango.chain.draft import Draft
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.state import State
from hango.messages import Response


class PromptCacheMiddleware(Middleware):
    name = "prompt_cache"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        if not (state.agent.cache.enabled and state.dialect.cache_marks):
            return await call_next(draft)
        system, tools = draft.kept_system(), draft.kept_tools()
        part = system[-1][0] if system else tools[-1].part if tools else None
        return await call_next(replace(draft, breakpoint=part))
