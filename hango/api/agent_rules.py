"""From what a client wrote to an agent's definition: the rules over names, models, schemas and paths. Pure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from hango import jsontext
from hango.agent_definition import AgentDefinition, Builtin, Cache, Compaction, SystemBlock
from hango.api.agent_bodies import AgentPatch, ToolIn
from hango.api.bodies import pointer
from hango.chain.middleware import filesystem, skills, subagent, todo
from hango.errors import Detail, Invalid, Reason
from hango.files import check_path
from hango.messages import ToolSpec

PROVIDERS = ("anthropic", "openai", "offline")
# A declared tool may not take the name of a tool that an enabled built-in brings.
BUILTIN_TOOLS: Mapping[Builtin, frozenset[str]] = MappingProxyType(
    {
        Builtin.TODO: frozenset({todo.WRITE_TODOS.name}),
        Builtin.FILESYSTEM: frozenset(tool.name for tool in filesystem.TOOLS),
        Builtin.SUBAGENT: frozenset({subagent.TASK.name}),
        Builtin.MEMORY: frozenset(),
        Builtin.SKILLS: frozenset({skills.LOAD_SKILL.name}),
    }
)

_BLOCK_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_MODEL_NAME = re.compile(r"[!-~]{1,200}", re.ASCII)
_EMPTY_SCHEMA = '{"type":"object"}'


def apply(given: AgentPatch, base: AgentDefinition) -> AgentDefinition:
    """The definition with the given fields in place. Raises Invalid with every broken rule."""
    fields = given.model_fields_set
    faults: list[Detail] = []
    readers = {name: reader for name, reader in _READERS.items() if name in fields}
    changes: dict[str, Any] = {target: read(given, base, faults) for target, read in readers.values()}
    made = replace(base, **changes)
    if fields & {"system", "system_prompt", "builtin"}:
        _check_block_names(made, faults)
    if fields & {"tools", "builtin"}:
        _check_tool_names(made, faults)
    if faults:
        raise Invalid(faults[0].message, errors=faults)
    return made


def check_model(model: str) -> None:
    """Raise Invalid (`bad_model`) for what is not written as a model is."""
    if (fault := _fault_of_model(model)) is not None:
        raise Invalid(fault.message, errors=[fault])


def _model(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> str:
    if (fault := _fault_of_model(given.model)) is not None:
        faults.append(fault)
    return given.model


def _fault_of_model(model: str) -> Detail | None:
    provider, slash, name = model.partition("/")
    if slash and provider in PROVIDERS and _MODEL_NAME.fullmatch(name):
        return None
    message = (
        f"A model is written <provider>/<model> with one of the providers {', '.join(PROVIDERS)}, "
        "such as anthropic/claude-sonnet-5 or offline/extract."
    )
    return Detail(Reason.BAD_MODEL, message, pointer="/model")


def _builtin(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> frozenset[Builtin]:
    if len(set(given.builtin)) != len(given.builtin):
        faults.append(Detail(Reason.BAD_FIELD, "A built-in contributor is named twice.", pointer="/builtin"))
    return frozenset(Builtin(name) for name in given.builtin)


def _system(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> tuple[SystemBlock, ...]:
    if given.model_fields_set >= {"system", "system_prompt"} and not faults:
        message = "Give `system` or its short form `system_prompt`, not both."
        faults.append(Detail(Reason.BAD_FIELD, message, pointer="/system_prompt"))
    if "system" not in given.model_fields_set:
        return (SystemBlock("agent", given.system_prompt),) if given.system_prompt else ()
    for index, block in enumerate(given.system):
        if not _BLOCK_NAME.fullmatch(block.name):
            message = "The name of a system block starts with a-z or 0-9 and goes on with a-z 0-9 _ . - up to 64."
            faults.append(Detail(Reason.BAD_BLOCK_NAME, message, pointer=pointer("system", index, "name")))
    return tuple(SystemBlock(block.name, block.text) for block in given.system)


def _check_block_names(made: AgentDefinition, faults: list[Detail]) -> None:
    seen: set[str] = set()
    for index, block in enumerate(made.system):
        at = pointer("system", index, "name")
        if block.name in seen:
            message = f"Two system blocks are named '{block.name[:64]}': give each its own name."
            faults.append(Detail(Reason.DUPLICATE_BLOCK_NAME, message, f"system:{block.name[:64]}", at))
        elif block.name in made.builtin:
            message = f"'{block.name}' is the name of an enabled built-in: rename the block or switch it off."
            faults.append(Detail(Reason.DUPLICATE_BLOCK_NAME, message, f"system:{block.name}", at))
        seen.add(block.name)


def _tools(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> tuple[ToolSpec, ...]:
    # Tools that an import brought may break the rule for names; sent back unchanged they stay.
    kept = {tool.name for tool in base.tools}
    made = []
    for index, tool in enumerate(given.tools):
        if not _TOOL_NAME.fullmatch(tool.name) and tool.name not in kept:
            message = "The name of a tool is 1 to 64 characters of a-z A-Z 0-9 _ -."
            faults.append(Detail(Reason.BAD_TOOL_NAME, message, pointer=pointer("tools", index, "name")))
        made.append(_tool(tool, index, faults))
    return tuple(made)


def _tool(tool: ToolIn, index: int, faults: list[Detail]) -> ToolSpec:
    schema = _EMPTY_SCHEMA if tool.input_schema is None else jsontext.compact(tool.input_schema)
    problem = schema_problem(schema)
    if problem:
        at = pointer("tools", index, "input_schema")
        shown = tool.name if _TOOL_NAME.fullmatch(tool.name) else str(index)
        message = f"The input_schema of tool '{shown}' is no JSON Schema object: {problem}."
        faults.append(Detail(Reason.BAD_TOOL_SCHEMA, message, _tool_part(tool.name), at))
    definition = None
    if tool.kind == "server":
        definition = "" if tool.definition is None else jsontext.compact(tool.definition)
        if not definition.startswith("{") or "type" not in jsontext.fields(definition):
            message = "A tool of kind 'server' has a `definition`: an object with a `type`."
            faults.append(Detail(Reason.BAD_FIELD, message, pointer=pointer("tools", index, "definition")))
    elif tool.definition is not None:
        message = "Only a tool of kind 'server' has a `definition`."
        faults.append(Detail(Reason.BAD_FIELD, message, pointer=pointer("tools", index, "definition")))
    return ToolSpec(tool.name, tool.description, schema, definition)


def schema_problem(schema: str) -> str | None:
    """What is wrong with the JSON text of a schema, without its content; None when it is a JSON Schema object."""
    value = msgspec.json.decode(schema)
    if not isinstance(value, dict):
        return "it is not an object"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # an unknown `$schema`: read as the latest draft
        named = isinstance(value.get("$schema", ""), str)
        checker = validator_for(value, default=Draft202012Validator) if named else Draft202012Validator
    fault = next(checker(checker.META_SCHEMA).iter_errors(value), None)
    if fault is None:
        return None
    return f"the keyword '{fault.validator}' of the JSON Schema rules fails at '{pointer(*fault.absolute_path) or '/'}'"


def _check_tool_names(made: AgentDefinition, faults: list[Detail]) -> None:
    taken = {name for builtin in made.builtin for name in BUILTIN_TOOLS[builtin]}
    seen: set[str] = set()
    for index, tool in enumerate(made.tools):
        at = pointer("tools", index, "name")
        if tool.name in seen:
            message = "Two tools have this name: give each its own."
            faults.append(Detail(Reason.DUPLICATE_TOOL_NAME, message, _tool_part(tool.name), at))
        elif tool.name in taken:
            message = f"An enabled built-in brings a tool '{tool.name}': rename yours or switch the built-in off."
            faults.append(Detail(Reason.DUPLICATE_TOOL_NAME, message, _tool_part(tool.name), at))
        seen.add(tool.name)


def _tool_part(name: str) -> str | None:
    return f"tool:{name}" if _TOOL_NAME.fullmatch(name) else None


def _memory(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> tuple[str, ...]:
    paths = given.memory
    for index, path in enumerate(paths):
        problem = check_path(path)
        if problem is None and paths.index(path) != index:
            problem = "It stands in the list twice."
        if problem:
            faults.append(Detail(Reason.BAD_PATH, problem, pointer=pointer("memory", index)))
    return tuple(paths)


def _params(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> Mapping[str, Any]:
    choice = given.params.tool_choice
    if choice and (choice.type == "tool") != (choice.name is not None):
        message = "A tool_choice has a `name` when its type is 'tool', and only then."
        faults.append(Detail(Reason.BAD_FIELD, message, pointer="/params/tool_choice"))
    thinking = given.params.thinking
    if thinking and thinking.budget_tokens is not None and thinking.type != "enabled":
        message = "`budget_tokens` goes with thinking of type 'enabled' only."
        faults.append(Detail(Reason.BAD_FIELD, message, pointer="/params/thinking"))
    return given.params.items()


def _allowed_tools(given: AgentPatch, base: AgentDefinition, faults: list[Detail]) -> tuple[str, ...] | None:
    return None if given.allowed_tools is None else tuple(dict.fromkeys(given.allowed_tools))


# A field as it is written, the field of the definition that it makes, and how.
_READERS: Mapping[str, tuple[str, Callable[[AgentPatch, AgentDefinition, list[Detail]], object]]] = {
    "model": ("model", _model),
    "builtin": ("builtin", _builtin),
    "system_prompt": ("system", _system),
    "system": ("system", _system),
    "tools": ("tools", _tools),
    "memory": ("memory", _memory),
    "allowed_tools": ("allowed_tools", _allowed_tools),
    "max_output_tokens": ("max_output_tokens", lambda given, base, faults: given.max_output_tokens),
    "params": ("params", _params),
    "compaction": ("compaction", lambda given, base, faults: Compaction(**given.compaction.model_dump())),
    "cache": ("cache", lambda given, base, faults: Cache(**given.cache.model_dump())),
}
