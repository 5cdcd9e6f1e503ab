"""The cache slot: the mark stands on what is really sent."""

from __future__ import annotations

import pytest

from hango.agent_definition import AgentDefinition, Cache
from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.middleware.prompt_cache import PromptCacheMiddleware
from hango.chain.parts import system_part, tool_part
from hango.dialect import Dialect
from hango.domain import Override, OverrideAction, PartID
from hango.messages import ToolSpec
from tests.drafts import ANTHROPIC, OPENAI
from tests.histories import OWN_MODEL
from tests.states import passed, state_of


def draft_of(system: dict[str, str], tools: list[str], excluded: list[str]) -> Draft:
    return Draft(
        system=tuple(Sourced(system_part(name), text, 1) for name, text in system.items()),
        tools=tuple(Sourced(tool_part(name), ToolSpec(name), 1) for name in tools),
        messages=(),
        marks={PartID(part): Mark(Override(PartID(part), OverrideAction.EXCLUDE)) for part in excluded},
    )


TWO = {"agent": "You help.", "skills": "Skills."}


@pytest.mark.parametrize(
    ("system", "tools", "excluded", "breakpoint"),
    [
        (TWO, ["ls"], [], "system:skills"),
        (TWO, ["ls"], ["system:skills"], "system:agent"),
        (TWO, ["ls"], ["system:agent"], "system:skills"),
        ({"agent": "You help.", "empty": " \n"}, [], [], "system:agent"),
        (TWO, ["ls", "cat"], ["system:agent", "system:skills"], "tool:cat"),
        (TWO, ["ls", "cat"], ["system:agent", "system:skills", "tool:cat"], "tool:ls"),
        (TWO, ["ls"], ["system:agent", "system:skills", "tool:ls"], None),
        ({}, [], [], None),
    ],
)
async def test_the_mark_lands_on_what_is_sent(
    system: dict[str, str], tools: list[str], excluded: list[str], breakpoint: str | None
) -> None:
    """The cache breakpoint lands on a block that is sent: the last system block, else the last tool."""
    draft = draft_of(system, tools, excluded)

    assert (await passed(PromptCacheMiddleware(), state_of(), draft)).breakpoint == breakpoint


@pytest.mark.parametrize(("cache", "dialect"), [(Cache(enabled=False), ANTHROPIC), (Cache(), OPENAI)])
async def test_no_mark_where_none_is_wanted(cache: Cache, dialect: Dialect) -> None:
    """No mark when the agent's cache is off or the provider takes none; nothing else changes."""
    draft = draft_of(TWO, ["ls"], [])
    state = state_of(AgentDefinition(OWN_MODEL, cache=cache), dialect=dialect)

    assert await passed(PromptCacheMiddleware(), state, draft) == draft
