"""Which tools a request may hold: the agent's allow list, asked when tools are gathered and again in the last slot."""

from __future__ import annotations

from collections.abc import Iterable

from hango.chain.state import State
from hango.messages import ToolSpec


def allowed(state: State, tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The tools that the agent allows, in their order; all of them without an allow list."""
    names = state.agent.allowed_tools
    return list(tools) if names is None else [tool for tool in tools if tool.name in names]
