"""Which tools a provider's wire takes, and which of their schemas it would refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from hango import jsontext
from hango.dialect import Dialect
from hango.errors import Detail, HangoError, Reason
from hango.messages import ToolSpec

COMBINING = ("oneOf", "anyOf", "allOf")
# Anthropic: names of properties. Server tools are named with the day of their version.
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
DATED = re.compile(r"[a-z_]+_\d{8}", re.ASCII)


class _Definition(msgspec.Struct, frozen=True):
    type: str | None = None
    input_schema: msgspec.Raw = msgspec.Raw(b"")
    function: msgspec.Raw = msgspec.Raw(b"")
    custom: msgspec.Raw = msgspec.Raw(b"")


@lru_cache(maxsize=4096)
def takes_tool(tool: ToolSpec, dialect: Dialect) -> bool:
    """Whether a tool can go out at all: a tool that only its own provider knows goes to no other."""
    if tool.definition is None or dialect.name == "offline":
        return True
    try:
        own = msgspec.json.decode(tool.definition.encode(), type=_Definition)
    except msgspec.ValidationError:
        return False
    if dialect.name == "anthropic":
        if own.type in (None, "custom"):
            return bool(bytes(own.input_schema))
        return own.type == "mcp_toolset" or DATED.fullmatch(own.type) is not None
    return (own.type == "function" and bool(bytes(own.function))) or (own.type == "custom" and bool(bytes(own.custom)))


def check_schema(tool: ToolSpec, dialect: Dialect) -> Detail | None:
    """Why the provider would refuse the tool: `bad_tool_schema`; `block_not_taken` for another provider's."""
    part = f"tool:{tool.name}"
    if not takes_tool(tool, dialect):
        message = f"The tool '{tool.name}' belongs to another provider and is not sent to {dialect.name}."
        return Detail(Reason.BLOCK_NOT_TAKEN, message, part)
    if tool.definition is not None:
        return None
    fault = _fault(tool.input_schema, dialect.name)
    if fault is None:
        return None
    message = f"{dialect.name} would refuse the schema of the tool '{tool.name}': {fault}. Leave the tool out."
    return Detail(Reason.BAD_TOOL_SCHEMA, message, part)


# The same tools come with every inspect.
@lru_cache(maxsize=512)
def _fault(schema: str, provider: str) -> str | None:
    if provider == "offline":
        return None
    try:
        read = jsontext.read(schema.encode())
    except HangoError:
        return "it cannot be read"
    if not isinstance(read, dict) or read.get("type") != "object":
        return 'its top level must have "type": "object"'
    if found := [key for key in COMBINING if key in read]:
        return f"{found[0]} is not taken at its top level"
    if provider == "anthropic":
        properties = read.get("properties")
        names = properties if isinstance(properties, dict) else {}
        if any(not PROPERTY.fullmatch(name) for name in names):
            return "the names of its properties may hold letters, digits, dot, dash and underline, 64 at most"
        return None
    if found := [key for key in ("enum", "not") if key in read]:
        return f"{found[0]} is not taken at its top level"
    if any(_is_loose_array(part) for part in _parts(read)):
        return 'an array in it has no "items"'
    return None


def _parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and every schema inside it, of those places that a provider looks at."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        yield here
        properties = here.get("properties")
        inside = [*properties.values()] if isinstance(properties, dict) else []
        inside.append(here.get("items"))
        for key in COMBINING:
            inside += here[key] if isinstance(here.get(key), list) else []
        waiting += [part for part in inside if isinstance(part, dict)]


def _is_loose_array(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    return array and "items" not in schema and "prefixItems" not in schema
