"""A strict reader of bodies for OpenAI's Chat Completions: each rule on which the API answers 400. Pure.

Of first and last roles, and of blank texts, compatible servers are the strict ones: their templates refuse them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.wire import reading
from tests.wire.reading import Found, Takes, is_blank, written

Part = Mapping[str, Any]

CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}", re.ASCII)
MAX_TOOLS = 128
PARTS = {
    "system": ("text",),
    "user": ("text", "image_url", "file"),
    "assistant": ("text",),
    "tool": ("text",),
}

TOO_MANY_TOOLS = "there are more than 128 tools"
PARALLEL_WITHOUT_TOOLS = "parallel calls are ruled, and there are no tools"
BAD_PART = "a part is of a type that the API does not take in this role"
BAD_ADDRESS = "a picture or file has no address that can be read"
BAD_ARGUMENTS = "the arguments of a call are no text of a JSON object"
BAD_CALL = "a call is none of a function"
EMPTY_CALLS = "the list of calls is empty"
STRAY_KEY = "a message holds a key that its role does not have"
KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


def faults(body: bytes, takes: Takes | None = None) -> list[str]:
    """The broken rules of a body, as `<place>: <rule>`."""
    read, takes = json.loads(body), takes or Takes()
    messages: list[Part] = read["messages"]
    return written(
        found
        for part in (
            _of_tools(read),
            _of_choice(read),
            _of_ends(messages, takes),
            _of_messages(messages),
            _of_calls(messages),
            _of_pairs(messages),
        )
        for found in part
    )


def _of_tools(read: Part) -> Found:
    tools = read.get("tools", [])
    if "tools" in read and not tools:
        yield "tools", reading.NO_TOOLS
    if len(tools) > MAX_TOOLS:
        yield "tools", TOO_MANY_TOOLS
    if "parallel_tool_calls" in read and not tools:
        yield "parallel_tool_calls", PARALLEL_WITHOUT_TOOLS
    yield from reading.of_names([tool[tool["type"]]["name"] for tool in tools])
    for at, tool in enumerate(tools):
        if tool["type"] == "function" and not _is_schema(tool["function"].get("parameters", {"type": "object"})):
            yield f"tools.{at}", reading.BAD_SCHEMA


def _is_schema(schema: object) -> bool:
    if not reading.is_object_schema(schema, *reading.COMBINING, "enum", "not"):
        return False
    return not any(_is_array(part) and "items" not in part and "prefixItems" not in part for part in _inside(schema))


def _is_array(schema: Part) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _inside(schema: Any) -> Iterator[Part]:
    """The schema and those of its properties and items."""
    if isinstance(schema, Mapping):
        yield schema
        properties = schema.get("properties")
        for inner in (*(properties.values() if isinstance(properties, Mapping) else ()), schema.get("items")):
            yield from _inside(inner)


def _of_choice(read: Part) -> Found:
    if "tool_choice" not in read:
        return
    choice = read["tool_choice"]
    if not read.get("tools"):
        yield "tool_choice", reading.CHOICE_WITHOUT_TOOLS
    elif isinstance(choice, dict):
        sent = [(tool["type"], tool[tool["type"]]["name"]) for tool in read["tools"]]
        if (choice["type"], choice[choice["type"]]["name"]) not in sent:
            yield "tool_choice", reading.CHOICE_NOT_SENT


def _of_ends(messages: Sequence[Part], takes: Takes) -> Found:
    if not messages:
        yield "messages", reading.NO_MESSAGES
    first = next((at for at, message in enumerate(messages) if message["role"] != "system"), None)
    if messages and (first is None or messages[first]["role"] != "user"):
        yield f"messages.{first or 0}", reading.NOT_USER_FIRST
    if messages and messages[-1]["role"] == "assistant" and not takes.prefill:
        yield f"messages.{len(messages) - 1}", reading.NOT_USER_LAST


def _of_messages(messages: Sequence[Part]) -> Found:
    for at, message in enumerate(messages):
        place, role, content = f"messages.{at}", message["role"], message.get("content")
        if role not in PARTS:
            yield place, reading.BAD_ROLE
            continue
        if set(message) - KEYS[role]:
            yield place, STRAY_KEY
        if content is None:
            if not message.get("tool_calls"):
                yield place, reading.EMPTY_CONTENT
        elif isinstance(content, str):
            if role != "tool" and is_blank(content):
                yield place, reading.BLANK_TEXT
        elif not content:
            yield place, reading.EMPTY_CONTENT
        else:
            for part in content:
                yield from _of_part(place, role, part)


def _of_part(place: str, role: str, part: Part) -> Found:
    if part["type"] not in PARTS[role]:
        yield place, BAD_PART
    elif part["type"] == "text":
        if role != "tool" and is_blank(part["text"]):
            yield place, reading.BLANK_TEXT
    elif part["type"] == "image_url":
        if not re.match(r"https?://.|data:[^,]+;base64,.", part["image_url"]["url"]):
            yield place, BAD_ADDRESS
    elif not part["file"].get("filename") or not re.match(r"data:[^,]+;base64,.", part["file"]["file_data"]):
        yield place, BAD_ADDRESS


def _of_calls(messages: Sequence[Part]) -> Found:
    seen: set[str] = set()
    for at, message in enumerate(messages):
        place = f"messages.{at}"
        if "tool_calls" in message and not message["tool_calls"]:
            yield place, EMPTY_CALLS
        for call in message.get("tool_calls", ()):
            if call["type"] != "function":
                yield place, BAD_CALL
                continue
            if not CALL_ID.fullmatch(call["id"]):
                yield place, reading.BAD_ID
            if call["id"] in seen:
                yield place, reading.DOUBLED_ID
            seen.add(call["id"])
            if not reading.NAME.fullmatch(call["function"]["name"]):
                yield place, reading.BAD_NAME
            if reading.read_object(call["function"]["arguments"]) is None:
                yield place, BAD_ARGUMENTS


def _of_pairs(messages: Sequence[Part]) -> Found:
    """The messages right after an assistant's calls are their results, one each."""
    at = 0
    while at < len(messages):
        calls = [call["id"] for call in messages[at].get("tool_calls", ())]
        place, answers = f"messages.{at}", []
        at += messages[at]["role"] != "tool"
        while at < len(messages) and messages[at]["role"] == "tool":
            answers.append(messages[at]["tool_call_id"])
            at += 1
        yield from reading.of_results(place, calls, answers)
