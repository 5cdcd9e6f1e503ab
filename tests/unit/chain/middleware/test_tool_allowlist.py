"""The last slot: only tools that the agent allows go out."""

from __future__ import annotations

import pytest

from hango.agent_definition import AgentDefinition
from hango.chain.draft import Draft, Sourced
from hango.chain.middleware.tool_allowlist import ToolAllowlistMiddleware
from hango.chain.parts import tool_part
from hango.messages import ToolSpec
from tests.histories import OWN_MODEL
from tests.states import passed, state_of


@pytest.mark.parametrize(
    ("allowed", "left"),
    [(None, ["a", "b", "c"]), (("c", "a", "unknown"), ["a", "c"]), ((), []), (("a", "b", "c"), ["a", "b", "c"])],
)
async def test_only_allowed_tools_go_out(allowed: tuple[str, ...] | None, left: list[str]) -> None:
    """Whatever a slot before it added: the tools that the agent allows, in their order; without a list all of them."""
    draft = Draft((), tuple(Sourced(tool_part(name), ToolSpec(name), 1) for name in "abc"), ())
    state = state_of(AgentDefinition(OWN_MODEL, allowed_tools=allowed))

    made = await passed(ToolAllowlistMiddleware(), state, draft)

    assert [item.value.name for item in made.tools] == left
