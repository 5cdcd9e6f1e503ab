"""The last slot: whatever a slot before it added, only tools that the agent allows go out."""

from __future__ import annotations

from dataclasses import replace

from hango.chain.draft import Draft
from hango.chain.middleware.base import Handler, Middleware
from hango.chain.state import State
from hango.chain.tools import allowed
from hango.messages import Response


class ToolAllowlistMiddleware(Middleware):
    name = "tool_allowlist"

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        names = {tool.name for tool in allowed(state, (item.value for item in draft.tools))}
        if len(names) == len(draft.tools):
            return await call_next(draft)
        return await call_next(replace(draft, tools=tuple(item for item in draft.tools if item.value.name in names)))
