"""The agent of a file: names of system blocks, one tool a name, parameters of the closed list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.agent_definition import SystemBlock
from hango.chain.formats.reading import decode, is_nothing, is_object
from hango.chain.formats.transcript import Flag, ImportedAgent
from hango.errors import Invalid, Reason
from hango.messages import ToolSpec

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)

# Members of a request that say how it is carried, not what the model reads or writes.
TRANSPORT = frozenset(
    {
        "background", "betas", "include", "metadata", "n", "object", "prompt_cache_key", "prompt_cache_retention",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "user",
    }
)  # fmt: skip


def system_blocks(texts: Iterable[str]) -> tuple[SystemBlock, ...]:
    """The texts under the names `agent`, `system-2`, `system-3`; an empty text makes no block."""
    kept = [text for text in texts if text]
    return tuple(SystemBlock("agent" if place == 1 else f"system-{place}", text) for place, text in enumerate(kept, 1))


def make_agent(
    *,
    model: str | None = None,
    system: Iterable[str] = (),
    tools: Sequence[ToolSpec] = (),
    params: Mapping[str, Any] | None = None,
    max_output_tokens: int | None = None,
    not_taken: Iterable[str] = (),
) -> ImportedAgent:
    """`not_taken` are parameters of the file that hango has no place for: flagged as `param:<name>`."""
    kept, flags = one_a_name(tools)
    taken, refused = _checked(params or {})
    names = sorted({*not_taken, *refused})
    return ImportedAgent(
        model=model,
        system=system_blocks(system),
        tools=kept,
        params=taken,
        max_output_tokens=max_output_tokens if max_output_tokens and max_output_tokens > 0 else None,
        flags=(*flags, *(Flag(f"param:{name}", Reason.PARAM_NOT_TAKEN) for name in names)),
    )


def one_a_name(tools: Iterable[ToolSpec]) -> tuple[tuple[ToolSpec, ...], tuple[Flag, ...]]:
    """The first tool of every name, and flags for doubled names and names that providers refuse."""
    kept: dict[str, ToolSpec] = {}
    flags: list[Flag] = []
    for tool in tools:
        if tool.name in kept:
            flags.append(Flag(f"tool:{tool.name}", Reason.DUPLICATE_TOOL_NAME))
            continue
        kept[tool.name] = tool
        if not _TOOL_NAME.fullmatch(tool.name):
            flags.append(Flag(f"tool:{tool.name}", Reason.BAD_TOOL_NAME))
    return tuple(kept.values()), tuple(dict.fromkeys(flags))


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: msgspec.Raw = msgspec.Raw(b"")
    input_schema: msgspec.Raw = msgspec.Raw(b"")


def function_tool(raw: msgspec.Raw, at: str) -> ToolSpec:
    """A tool from an object with name, description and a schema under `parameters` or `input_schema`."""
    function = decode(raw, _Function, at)
    schema = function.input_schema if is_nothing(function.parameters) else function.parameters
    if is_nothing(schema):
        return ToolSpec(function.name, function.description or "")
    if not is_object(schema):
        message = f"The schema of the tool '{function.name}' is not a JSON Schema object."
        raise Invalid.because(Reason.BAD_TOOL_SCHEMA, message, part=f"tool:{function.name}", pointer=at)
    return ToolSpec(function.name, function.description or "", jsontext.compact(schema))


def foreign_tool(raw: msgspec.Raw, at: str) -> ToolSpec:
    """A tool that only its own provider knows, kept as it came but for the cache mark."""
    members = decode(raw, dict[str, msgspec.Raw], at)
    members.pop("cache_control", None)
    named = next((members[key] for key in ("name", "mcp_server_name", "server_label", "type") if key in members), None)
    if named is None:
        raise Invalid.because(Reason.MISSING_FIELD, f"The tool at '{at}' has no name.", pointer=at)
    return ToolSpec(name=decode(named, str, at), definition=jsontext.compact(jsontext.dumps(members)))


def tool_choice(value: Any) -> dict[str, Any] | None:
    """OpenAI's tool_choice in Anthropic's words; None where there is no word for it."""
    if isinstance(value, str):
        word = {"auto": "auto", "required": "any", "none": "none"}.get(value)
        return {"type": word} if word else None
    if isinstance(value, dict):
        function = value.get("function", value)
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            return {"type": "tool", "name": function["name"]}
    return None


def _checked(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parameters that have the type of their name, and the names of the others."""
    given = {name: value for name, value in params.items() if value is not None}
    taken = {name: value for name, value in given.items() if _PARAMS[name](value)}
    return taken, [name for name in given if name not in taken]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _choice(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("auto", "any", "none", "tool")


_PARAMS: dict[str, Callable[[Any], bool]] = {
    "temperature": _number,
    "top_p": _number,
    "top_k": _integer,
    "stop": _texts,
    "seed": _integer,
    "tool_choice": _choice,
    "parallel_tool_calls": lambda value: isinstance(value, bool),
    "thinking": lambda value: isinstance(value, dict),
    "reasoning_effort": lambda value: isinstance(value, str),
}
