"""What people should know about a request before it is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hango.agent_definition import AgentDefinition
from hango.chain import problems
from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.parts import system_part, tool_part
from hango.dialect import Dialect
from hango.domain import Override, OverrideAction, PartID
from hango.errors import Detail, Reason
from hango.messages import ToolSpec
from tests.drafts import ANTHROPIC, OPENAI, mended
from tests.histories import OWN_MODEL, said

HI = mended([said("user", "Hi.")])
PARAMS = frozenset({"tool_choice", "top_k"})


def found(draft: Draft, dialect: Dialect = ANTHROPIC, **params: Any) -> list[tuple[Reason, str | None]]:
    agent = AgentDefinition(OWN_MODEL, params=params)
    return [(one.reason, one.part) for one in problems.find(draft, agent, replace(dialect, params=PARAMS))]


def with_tools(*tools: ToolSpec, excluded: str | None = None) -> Draft:
    marks = {}
    if excluded:
        marks = {PartID(excluded): Mark(Override(PartID(excluded), OverrideAction.EXCLUDE))}
    return replace(HI, tools=tuple(Sourced(tool_part(tool.name), tool, 1) for tool in tools), marks=marks)


def test_a_sound_request_has_none() -> None:
    """Nothing to say about a request that can be sent as it stands."""
    assert found(with_tools(ToolSpec("ls"))) == []


def test_an_empty_system_block_is_named() -> None:
    """Empty text blocks are listed and not sent; one that is left out is nobody's problem."""
    blank = replace(HI, system=(Sourced(system_part("agent"), " \n", 0), Sourced(system_part("b"), "B.", 1)))
    left_out = {PartID("system:agent"): Mark(Override(PartID("system:agent"), OverrideAction.EXCLUDE))}

    assert found(blank) == [(Reason.EMPTY_TEXT, "system:agent")]
    assert found(replace(blank, marks=left_out)) == []


@pytest.mark.parametrize("name", ["câu_hỏi", "a.b", "x" * 65])
def test_a_tool_name_that_a_provider_refuses_is_named(name: str) -> None:
    """A name that is cleaned on the wire stands in `problems`, by part."""
    assert found(with_tools(ToolSpec(name), ToolSpec("ls"))) == [(Reason.BAD_TOOL_NAME, f"tool:{name}")]
    assert found(with_tools(ToolSpec(name), excluded=f"tool:{name}")) == []


def test_a_schema_that_the_provider_would_refuse_is_named() -> None:
    """A schema that the agent's provider would refuse is kept and listed in `problems`."""
    bad = ToolSpec("bad", input_schema='{"type":"object","oneOf":[{}]}')

    assert found(with_tools(bad)) == [(Reason.BAD_TOOL_SCHEMA, "tool:bad")]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "tool", "name": "gone"}, [(Reason.TOOL_CHOICE_DROPPED, None)]),
        ({"type": "tool", "name": "ls"}, []),
        ({"type": "auto"}, []),
        ("any", []),
    ],
)
def test_a_tool_choice_without_its_tool(choice: Any, expected: list[tuple[Reason, None]]) -> None:
    """A tool_choice that names an excluded tool falls back to auto, and says so."""
    assert found(with_tools(ToolSpec("ls")), tool_choice=choice) == expected


def test_a_parameter_that_the_provider_does_not_take() -> None:
    """It is not sent, and named."""
    agent = AgentDefinition(OWN_MODEL, params={"seed": 5, "top_k": 3})

    assert problems.find(HI, agent, replace(OPENAI, params=PARAMS)) == (
        Detail(Reason.PARAM_NOT_TAKEN, "The provider does not take the parameter 'seed': it is not sent."),
    )


def test_problems_come_in_the_order_of_the_parts() -> None:
    """What the slots found, then system, tools, and the history's."""
    first = Detail(Reason.FILE_MISSING, "The memory file is not there.", "system:memory:/a")
    draft = replace(
        mended([said("user", ""), said("assistant", "Hi.")]),
        system=(Sourced(system_part("agent"), "", 0),),
        tools=(Sourced(tool_part("a.b"), ToolSpec("a.b"), 1),),
        problems=(first,),
    )

    assert found(draft) == [
        (Reason.FILE_MISSING, "system:memory:/a"),
        (Reason.EMPTY_TEXT, "system:agent"),
        (Reason.BAD_TOOL_NAME, "tool:a.b"),
        (Reason.EMPTY_TEXT, "message:1"),
        (Reason.NO_USER_MESSAGE, None),
        (Reason.ENDS_WITH_ASSISTANT, "message:2"),
    ]


def test_more_tools_than_the_provider_takes() -> None:
    """A provider's limit of tools is told before it refuses the request."""
    dialect = replace(ANTHROPIC, max_tools=2)
    tools = [ToolSpec(name) for name in ("a", "b", "c")]

    assert found(with_tools(*tools), dialect) == [(Reason.TOO_MANY_TOOLS, None)]
    assert found(with_tools(*tools, excluded="tool:b"), dialect) == []
