"""Schemas that a provider would refuse are named by part before anything is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hango.chain.providers.schemas import check_schema, takes_tool
from hango.errors import Detail, Reason
from hango.messages import ToolSpec
from tests.unit.chain.providers.making import ANTHROPIC, OFFLINE, OPENAI

GOOD: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
ONE_OF = {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}
ARRAY = {"type": "object", "properties": {"paths": {"anyOf": [{"type": ["array", "null"]}]}}}


def fault(provider: Any, schema: dict[str, Any]) -> Detail | None:
    return check_schema(ToolSpec("bad", input_schema=json.dumps(schema)), provider.dialect)


@pytest.mark.parametrize("provider", [ANTHROPIC, OPENAI, OFFLINE], ids=lambda one: one.name)
def test_a_good_schema_has_no_problem(provider: Any) -> None:
    """A schema with "type": "object" at its top is taken everywhere."""
    assert fault(provider, GOOD) is None
    assert fault(provider, {"type": "object"}) is None


def test_the_detail_names_the_part() -> None:
    """A schema that the agent's provider would refuse is `bad_tool_schema`, naming the part."""
    assert fault(ANTHROPIC, ONE_OF) == Detail(
        Reason.BAD_TOOL_SCHEMA,
        'anthropic would refuse the schema of the tool \'bad\': its top level must have "type": "object". '
        "Leave the tool out.",
        "tool:bad",
    )


@pytest.mark.parametrize(
    ("schema", "refused_by"),
    [
        ({}, {"anthropic", "openai"}),
        ({"type": "string"}, {"anthropic", "openai"}),
        ({"type": ["object"]}, {"anthropic", "openai"}),
        (GOOD | {"anyOf": [{"required": ["path"]}]}, {"anthropic", "openai"}),
        (GOOD | {"allOf": []}, {"anthropic", "openai"}),
        (GOOD | {"enum": [{}]}, {"openai"}),
        (GOOD | {"not": {}}, {"openai"}),
        (ARRAY, {"openai"}),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array"}}}}, {"openai"}),
        ({"type": "object", "properties": {"a": {"type": "array", "prefixItems": []}}}, set()),
        ({"type": "object", "properties": {"a b": {"type": "string"}}}, {"anthropic"}),
        ({"type": "object", "properties": {"x" * 65: {"type": "string"}}}, {"anthropic"}),
        ({"type": "object", "properties": {"type": {"anyOf": [{"type": "string"}]}}}, set()),
    ],
)
def test_what_each_provider_refuses(schema: dict[str, Any], refused_by: set[str]) -> None:
    """Each provider's own rules, and nothing that it takes."""
    assert {one.name for one in (ANTHROPIC, OPENAI, OFFLINE) if fault(one, schema)} == refused_by


@pytest.mark.parametrize(
    ("definition", "taken_by"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, {"anthropic", "offline"}),
        ({"type": "mcp_toolset", "mcp_server_name": "x"}, {"anthropic", "offline"}),
        ({"name": "x", "input_schema": {"type": "object"}, "strict": True}, {"anthropic", "offline"}),
        ({"type": "custom", "name": "x", "input_schema": {"type": "object"}}, {"anthropic", "offline"}),
        ({"type": "custom", "custom": {"name": "x"}}, {"openai", "offline"}),
        ({"type": "function", "function": {"name": "x"}}, {"openai", "offline"}),
        ({"type": "web_search"}, {"offline"}),
        ({"type": 5}, {"offline"}),
    ],
)
def test_tools_that_only_their_own_provider_knows(definition: dict[str, Any], taken_by: set[str]) -> None:
    """A tool with a definition of its own goes to no other provider, and the part says so."""
    tool = ToolSpec("x", definition=json.dumps(definition))
    providers = (ANTHROPIC, OPENAI, OFFLINE)

    assert {one.name for one in providers if takes_tool(tool, one.dialect)} == taken_by
    assert {one.name for one in providers if check_schema(tool, one.dialect) is None} == taken_by
    if "openai" not in taken_by:
        assert check_schema(tool, OPENAI.dialect) == Detail(
            Reason.BLOCK_NOT_TAKEN, "The tool 'x' belongs to another provider and is not sent to openai.", "tool:x"
        )
