"""Which tools a request may hold: asked when tools are gathered and again in the last slot."""

from __future__ import annotations

from collections.abc import Iterable

from hango.chain.state import State
from hango.messages import ToolSpec

# A skill that narrows the tools must not lock its agent in: another skill can be loaded.
ALWAYS = frozenset({"load_skill"})


def allowed(state: State, tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The tools that the agent allows and the skill in force, in their order; without such lists all of them."""
    names, narrowed = state.agent.allowed_tools, state.narrowed_to
    return [
        tool
        for tool in tools
        if (names is None or tool.name in names) and (narrowed is None or tool.name in narrowed or tool.name in ALWAYS)
    ]
