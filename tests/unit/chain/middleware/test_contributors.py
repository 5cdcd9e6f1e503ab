"""Slots that contribute a block and tools: each tags its block with its own part, and its schemas are sound."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from hango.chain.middleware.base import Middleware
from hango.chain.middleware.filesystem import FilesystemMiddleware
from hango.chain.middleware.skills import SkillsMiddleware
from hango.chain.middleware.subagent import SubagentMiddleware
from hango.chain.middleware.todo import TodoMiddleware
from tests.states import state_of

TOOLS = {
    TodoMiddleware: ["write_todos"],
    FilesystemMiddleware: ["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
    SubagentMiddleware: ["task"],
    SkillsMiddleware: ["load_skill"],
}


@pytest.mark.parametrize("slot", [TodoMiddleware, FilesystemMiddleware, SubagentMiddleware])
def test_one_block_with_the_contributors_part(slot: type[Middleware]) -> None:
    """system:<contributor> for the blocks one contributor adds."""
    (block,) = slot().system_blocks(state_of())

    assert block.part == f"system:{slot.name}"
    assert block.tokens > 0


@pytest.mark.parametrize(("slot", "names"), TOOLS.items())
def test_tools_and_their_schemas(slot: type[Middleware], names: list[str]) -> None:
    """Each tool says what it is for, and its arguments are an object that can be validated."""
    tools = slot().tools(state_of())

    assert [tool.name for tool in tools] == names
    for tool in tools:
        schema = json.loads(tool.input_schema)
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert tool.description.endswith(".")
