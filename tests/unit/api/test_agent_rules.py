"""Agents: which definitions are taken, and what each refusal names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hango.agent_definition import AgentDefinition, Builtin, Cache, Compaction, SystemBlock
from hango.api import agent_rules
from hango.api.agent_bodies import AgentIn, AgentPatch
from hango.api.bodies import parse_body
from hango.errors import Invalid, Reason
from hango.messages import ToolSpec

BASE = AgentDefinition(model="offline/extract")


def apply(base: AgentDefinition = BASE, **fields: Any) -> AgentDefinition:
    return agent_rules.apply(parse_body(msgspec.json.encode(fields), AgentPatch), base)


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def refusals(base: AgentDefinition = BASE, **fields: Any) -> list[tuple[Reason, str | None, str | None]]:
    with pytest.raises(Invalid) as refused:
        apply(base, **fields)
    return [(one.reason, one.part, one.pointer) for one in refused.value.errors]


def test_every_field_reaches_the_definition() -> None:
    """An agent is what was written of it; tool schemas keep digits and key order."""
    body = rb"""{"name": "desk", "model": "anthropic/claude-sonnet-5",
        "system": [{"name": "agent", "text": "Be brief."}, {"name": "house.rules-2", "text": ""}],
        "tools": [{"name": "price", "description": "d", "input_schema": {"type": "object", "b": 1.10, "a": 1}}],
        "builtin": ["skills", "memory"], "memory": ["/memories/AGENTS.md"], "allowed_tools": ["price", "price"],
        "max_output_tokens": 100,
        "params": {"temperature": 1, "top_p": 0.5, "top_k": 3, "stop": ["END"], "seed": 7,
                   "tool_choice": {"type": "tool", "name": "price"}, "parallel_tool_calls": false,
                   "thinking": {"type": "enabled", "budget_tokens": 2000}, "reasoning_effort": "low"},
        "compaction": {"trigger_tokens": 1000, "keep_messages": 5}, "cache": {"enabled": false, "ttl": "1h"}}"""
    given = parse_body(body, AgentIn)

    assert agent_rules.apply(given, AgentDefinition(model=given.model)) == AgentDefinition(
        model="anthropic/claude-sonnet-5",
        system=(SystemBlock("agent", "Be brief."), SystemBlock("house.rules-2", "")),
        tools=(ToolSpec("price", "d", '{"type":"object","b":1.10,"a":1}'),),
        builtin=frozenset({Builtin.MEMORY, Builtin.SKILLS}),
        memory=("/memories/AGENTS.md",),
        allowed_tools=("price",),
        max_output_tokens=100,
        params={
            "temperature": 1.0,
            "top_p": 0.5,
            "top_k": 3,
            "stop": ["END"],
            "seed": 7,
            "tool_choice": {"type": "tool", "name": "price"},
            "parallel_tool_calls": False,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "reasoning_effort": "low",
        },
        compaction=Compaction(1000, 5),
        cache=Cache(False, "1h"),
    )


def test_what_is_not_given_stays() -> None:
    """A PATCH changes the fields that it names and no other."""
    base = AgentDefinition(
        model="openai/gpt-6",
        system=(SystemBlock("agent", "x"),),
        memory=("/m",),
        allowed_tools=("a",),
        params={"seed": 1},
    )

    assert apply(base) == base
    assert apply(base, allowed_tools=None).allowed_tools is None
    assert apply(base, max_output_tokens=9) == AgentDefinition(
        model="openai/gpt-6",
        system=(SystemBlock("agent", "x"),),
        memory=("/m",),
        allowed_tools=("a",),
        params={"seed": 1},
        max_output_tokens=9,
    )


def test_system_prompt_is_short_for_one_block() -> None:
    """`system_prompt` is short for one block `agent`; empty, there is none."""
    assert apply(system_prompt="Be brief.").system == (SystemBlock("agent", "Be brief."),)
    assert apply(system_prompt="").system == ()
    assert refusals(system_prompt="a", system=[]) == [(Reason.BAD_FIELD, None, "/system_prompt")]


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "a b", "a:b", "a/b", "ä", "a" * 65, "a\n"])
def test_a_bad_block_name_is_refused(name: str) -> None:
    """The name of a block matches [a-z0-9][a-z0-9_.-]{0,63}."""
    assert refusals(system=[{"name": name, "text": ""}]) == [(Reason.BAD_BLOCK_NAME, None, "/system/0/name")]


def test_a_block_name_is_unique_and_no_built_in() -> None:
    """A block has a name of its own, also among the enabled built-in contributors."""
    block = {"name": "memory", "text": ""}

    assert refusals(system=[block], builtin=["memory"]) == [
        (Reason.DUPLICATE_BLOCK_NAME, "system:memory", "/system/0/name")
    ]
    assert refusals(system=[block, block], builtin=[]) == [
        (Reason.DUPLICATE_BLOCK_NAME, "system:memory", "/system/1/name")
    ]
    assert apply(system=[block], builtin=["todo"]).system == (SystemBlock("memory", ""),)


def test_switching_a_built_in_on_checks_the_names_again() -> None:
    """A PATCH of `builtin` alone cannot make two contributors of one name."""
    base = AgentDefinition(
        model="offline/extract", system=(SystemBlock("todo", ""),), tools=(ToolSpec("ls"),), builtin=frozenset()
    )

    assert refusals(base, builtin=["todo", "filesystem"]) == [
        (Reason.DUPLICATE_BLOCK_NAME, "system:todo", "/system/0/name"),
        (Reason.DUPLICATE_TOOL_NAME, "tool:ls", "/tools/0/name"),
    ]


@pytest.mark.parametrize("name", [" ", "a b", "a.b", "ä", "a" * 65, "a\n", "tool:x"])
def test_a_bad_tool_name_is_refused(name: str) -> None:
    """The name of a tool matches [a-zA-Z0-9_-]{1,64}."""
    assert refusals(tools=[tool(name)]) == [(Reason.BAD_TOOL_NAME, None, "/tools/0/name")]


@pytest.mark.parametrize("name", ["write_todos", "ls", "read_file", "write_file", "edit_file", "task", "load_skill"])
def test_a_tool_may_not_take_a_built_in_name(name: str) -> None:
    """Names are unique among the declared tools and with the tools of the enabled built-ins."""
    assert refusals(tools=[tool(name)]) == [(Reason.DUPLICATE_TOOL_NAME, f"tool:{name}", "/tools/0/name")]
    assert apply(tools=[tool(name)], builtin=[]).tools == (ToolSpec(name),)
    assert refusals(tools=[tool(name), tool(name)], builtin=[]) == [
        (Reason.DUPLICATE_TOOL_NAME, f"tool:{name}", "/tools/1/name")
    ]


def test_an_imported_name_stays_when_it_is_sent_back() -> None:
    """An import may carry names that break the rule; a PATCH that repeats them is no fault."""
    base = AgentDefinition(model="offline/extract", tools=(ToolSpec("a.b"),), builtin=frozenset())

    assert apply(base, tools=[tool("a.b", description="new")]).tools == (ToolSpec("a.b", "new"),)


@pytest.mark.parametrize(
    "schema",
    [None, [], "object", 1, True, {"type": "objekt"}, {"type": 5}, {"properties": []}, {"required": "a"},
     {"properties": {"a": {"minimum": "x"}}}, {"$schema": 5}],
    ids=repr,
)  # fmt: skip
def test_a_bad_schema_names_the_tool(schema: object) -> None:
    """A schema that is not a JSON Schema object is 422 `bad_tool_schema`, naming the part."""
    assert refusals(tools=[tool("price", input_schema=schema)]) == [
        (Reason.BAD_TOOL_SCHEMA, "tool:price", "/tools/0/input_schema")
    ]


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "string"}, {"oneOf": [{"type": "object"}]}, {"$ref": "https://example.com/none"},
     {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
     {"$schema": "https://example.com/own", "type": "object"}],
    ids=repr,
)  # fmt: skip
def test_a_schema_that_only_a_provider_would_refuse_is_kept(schema: dict[str, Any]) -> None:
    """A JSON Schema object is kept, whatever a provider may say of it."""
    made = apply(tools=[tool("price", input_schema=schema)])

    assert msgspec.json.decode(made.tools[0].input_schema) == schema


@pytest.mark.parametrize(
    "model", ["", "extract", "/extract", "offline/", "nobody/x", "OpenAI/x", "openai/a b", "openai/é", "openai/a\n"]
)
def test_a_model_is_provider_and_name(model: str) -> None:
    """A model is <provider>/<model> with a known provider."""
    assert refusals(model=model) == [(Reason.BAD_MODEL, None, "/model")]


def test_a_model_name_may_hold_slashes() -> None:
    """Compatible servers name models with slashes and colons."""
    assert apply(model="openai/org/model:free").model == "openai/org/model:free"


def test_memory_paths_are_paths_and_differ() -> None:
    """Memory is a list of file paths; each is one part."""
    assert refusals(memory=["/a", "b", "/a", "/../c"]) == [
        (Reason.BAD_PATH, None, "/memory/1"),
        (Reason.BAD_PATH, None, "/memory/2"),
        (Reason.BAD_PATH, None, "/memory/3"),
    ]


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"temperature": 2.5}, "/params/temperature"),
        ({"temperature": True}, "/params/temperature"),
        ({"top_p": -0.1}, "/params/top_p"),
        ({"top_k": 1.5}, "/params/top_k"),
        ({"stop": "END"}, "/params/stop"),
        ({"stop": [""]}, "/params/stop/0"),
        ({"seed": 2**63}, "/params/seed"),
        ({"tool_choice": "auto"}, "/params/tool_choice"),
        ({"tool_choice": {"type": "tool"}}, "/params/tool_choice"),
        ({"tool_choice": {"type": "auto", "name": "x"}}, "/params/tool_choice"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 5}}, "/params/thinking"),
        ({"reasoning_effort": "most"}, "/params/reasoning_effort"),
        ({"frequency_penalty": 1}, "/params/frequency_penalty"),
    ],
)
def test_params_are_a_closed_list(params: dict[str, Any], pointer: str) -> None:
    """`params` takes the named parameters, each with its type and range."""
    reason = Reason.UNKNOWN_FIELD if "frequency_penalty" in params else Reason.BAD_FIELD

    assert refusals(params=params) == [(reason, None, pointer)]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"builtin": ["todo", "shell"]}, "/builtin/1"),
        ({"builtin": ["todo", "todo"]}, "/builtin"),
        ({"max_output_tokens": 0}, "/max_output_tokens"),
        ({"compaction": {"trigger_tokens": 0}}, "/compaction/trigger_tokens"),
        ({"compaction": {"keep_messages": -1}}, "/compaction/keep_messages"),
        ({"cache": {"ttl": "2h"}}, "/cache/ttl"),
        ({"shared": "yes"}, "/shared"),
        ({"name": " "}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"tools": [{"name": "x", "kind": "server"}]}, "/tools/0/definition"),
        ({"tools": [{"name": "x", "definition": {"type": "y"}}]}, "/tools/0/definition"),
    ],
)
def test_a_field_out_of_its_range_is_named(fields: dict[str, Any], pointer: str) -> None:
    """A value of the wrong type or out of its range is 422 `bad_field` with its pointer."""
    assert refusals(**fields) == [(Reason.BAD_FIELD, None, pointer)]


def test_a_server_tool_keeps_its_definition() -> None:
    """A tool that only its own provider knows can be read and written back."""
    made = apply(tools=[tool("search", kind="server", definition={"type": "web_search_1", "name": "search"})])

    assert made.tools == (ToolSpec("search", definition='{"type":"web_search_1","name":"search"}'),)


def test_the_reserved_names_are_those_of_the_built_in_tools() -> None:
    """The names of every built-in tool are reserved while its built-in is on."""
    assert dict(agent_rules.BUILTIN_TOOLS) == {
        Builtin.TODO: {"write_todos"},
        Builtin.FILESYSTEM: {"ls", "read_file", "write_file", "edit_file", "glob", "grep"},
        Builtin.SUBAGENT: {"task"},
        Builtin.MEMORY: set(),
        Builtin.SKILLS: {"load_skill"},
    }
