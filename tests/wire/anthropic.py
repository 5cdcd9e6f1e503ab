"""A strict reader of bodies for Anthropic's Messages API: each rule on which the API answers 400. Pure.

Knows nothing of how hango makes a body: it reads JSON alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tests.wire import reading
from tests.wire.reading import Found, Takes, is_blank, written

Block = Mapping[str, Any]

CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+", re.ASCII)
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
MAX_MARKS = 4
SECONDS = {"5m": 300, "1h": 3600}
THINKING = ("thinking", "redacted_thinking")
OF_THE_USER = ("image", "document", "tool_result")

TOO_MANY_MARKS = "there are more than 4 cache marks"
MARK_ON_EMPTY = "a cache mark stands on an empty text"
MARK_ON_THINKING = "a cache mark stands on thinking"
BAD_TTL = "a cache mark has a lifetime that there is not"
GROWING_TTL = "a cache mark lives longer than one before it"
SYSTEM_REFUSED = "a system message stands where the API takes none"
UNSIGNED_THINKING = "thinking is not signed by this model, or not as it was"
THINKING_LAST = "the final block of an assistant message is thinking"
THINKING_IN_PREFILL = "an assistant message in the final position holds thinking"
WRONG_ROLE = "a block stands in a message of a role that cannot have it"
NOT_FIRST = "results do not stand first"
BAD_INPUT = "the input of a call is no object"
SPACE_AT_END = "the final assistant text ends with white space"
TOOL_BLOCKS_ALONE = "there are calls or results, and no tools"
OPEN_SERVER_CALL = "a call of a provider's tool has no result in its turn"
LOST_SERVER_RESULT = "a result of a provider's tool has no call in its turn"


def faults(body: bytes, takes: Takes | None = None) -> list[str]:
    """The broken rules of a body, as `<place>: <rule>`."""
    read, takes = json.loads(body), takes or Takes()
    messages = [(message["role"], _blocks(message["content"])) for message in read["messages"]]
    return written(
        found
        for part in (
            _of_tools(read, messages, takes),
            _of_choice(read),
            _of_system(read),
            _of_marks(read, messages),
            _of_ends(messages, takes),
            _of_messages(messages, takes),
            _of_thinking(body, messages, takes),
            _of_ids(messages),
            _of_pairs(messages),
            _of_server_pairs(messages),
        )
        for found in part
    )


def _blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


Messages = Sequence[tuple[str, list[Block]]]


def _of_tools(read: Block, messages: Messages, takes: Takes) -> Found:
    tools = read.get("tools", [])
    if "tools" in read and not tools:
        yield "tools", reading.NO_TOOLS
    yield from reading.of_names([tool["name"] for tool in tools if "name" in tool])
    for at, tool in enumerate(tools):
        if "input_schema" not in tool and "type" in tool:
            continue  # a tool that only the provider knows
        schema = tool.get("input_schema")
        if not reading.is_object_schema(schema, *reading.COMBINING) or not all(
            PROPERTY.fullmatch(name) for name in schema.get("properties", {})
        ):
            yield f"tools.{at}", reading.BAD_SCHEMA
    if (
        takes.tools_required
        and not tools
        and any(block["type"].endswith(("tool_use", "tool_result")) for _, blocks in messages for block in blocks)
    ):
        yield "tools", TOOL_BLOCKS_ALONE


def _of_choice(read: Block) -> Found:
    choice = read.get("tool_choice")
    if choice is None:
        return
    if not read.get("tools"):
        yield "tool_choice", reading.CHOICE_WITHOUT_TOOLS
    elif choice["type"] == "tool" and choice["name"] not in [tool.get("name") for tool in read["tools"]]:
        yield "tool_choice", reading.CHOICE_NOT_SENT


def _of_system(read: Block) -> Found:
    if "system" not in read:
        return
    if not read["system"]:
        yield "system", reading.EMPTY_CONTENT
    for at, block in enumerate(_blocks(read["system"])):
        if is_blank(block.get("text")):
            yield f"system.{at}", reading.BLANK_TEXT


def _of_marks(read: Block, messages: Messages) -> Found:
    holders = [
        *_marked(read.get("tools", []), "tools"),
        *_marked(_blocks(read.get("system", [])), "system"),
        *(one for at, (_, blocks) in enumerate(messages) for one in _marked(blocks, f"messages.{at}")),
    ]
    if len(holders) > MAX_MARKS:
        yield "cache_control", TOO_MANY_MARKS
    before = max(SECONDS.values())
    for place, block in holders:
        if block.get("type") == "text" and is_blank(block.get("text")):
            yield place, MARK_ON_EMPTY
        if block.get("type") in THINKING:
            yield place, MARK_ON_THINKING
        seconds = SECONDS.get(block["cache_control"].get("ttl", "5m"))
        if seconds is None:
            yield place, BAD_TTL
        elif seconds > before:
            yield place, GROWING_TTL
        before = min(before, seconds or before)


def _marked(blocks: Sequence[Block], place: str) -> Iterator[tuple[str, Block]]:
    """Blocks with a mark, and those inside them; what stands in a tool's input or schema is no mark."""
    for at, block in enumerate(blocks):
        here = f"{place}.{at}"
        for inner in (block.get("content"), _inside(block.get("source"))):
            if isinstance(inner, list):
                yield from _marked([one for one in inner if isinstance(one, dict)], here)
        if "cache_control" in block:
            yield here, block


def _inside(source: object) -> object:
    return source.get("content") if isinstance(source, dict) else None


def _of_ends(messages: Messages, takes: Takes) -> Found:
    if not messages:
        yield "messages", reading.NO_MESSAGES
        return
    role, blocks = messages[0]
    if role != "user" or not [block for block in blocks if block["type"] != "tool_result"]:
        yield "messages.0", reading.NOT_USER_FIRST
    place, (role, blocks) = f"messages.{len(messages) - 1}", messages[-1]
    if role != "assistant" or not blocks:
        return
    if not takes.prefill:
        yield place, reading.NOT_USER_LAST
    # A turn that the provider paused goes on from its open call, with its thinking.
    if _of_types(blocks, *THINKING) and not blocks[-1]["type"].endswith("tool_use"):
        yield place, THINKING_IN_PREFILL
    if blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        yield place, SPACE_AT_END


def _of_messages(messages: Messages, takes: Takes) -> Found:
    for at, (role, blocks) in enumerate(messages):
        place = f"messages.{at}"
        if role not in ("user", "assistant", "system"):
            yield place, reading.BAD_ROLE
        if role == "system" and not _takes_system(messages, at, takes):
            yield place, SYSTEM_REFUSED
        if not blocks:
            yield place, reading.EMPTY_CONTENT
        for block in blocks:
            if block["type"] == "text" and is_blank(block["text"]):
                yield place, reading.BLANK_TEXT
            if not _may_say(role, block["type"]):
                yield place, WRONG_ROLE
            if block["type"].endswith("tool_use") and not isinstance(block.get("input"), dict):
                yield place, BAD_INPUT
            if block["type"] == "tool_use" and not reading.NAME.fullmatch(block["name"]):
                yield place, reading.BAD_NAME


def _takes_system(messages: Messages, at: int, takes: Takes) -> bool:
    after = messages[at + 1][0] if at + 1 < len(messages) else "assistant"
    only_text = all(block["type"] == "text" for block in messages[at][1])
    before = messages[at - 1][0] if at else None
    return takes.system_in_history and only_text and before == "user" and after == "assistant"


def _may_say(role: str, type: str) -> bool:
    if type in OF_THE_USER:
        return role == "user"
    of_the_assistant = type in THINKING or type.endswith(("tool_use", "tool_result"))
    return role == "assistant" or not of_the_assistant


class _Message(msgspec.Struct):
    content: list[msgspec.Raw] | str


class _Body(msgspec.Struct):
    messages: list[_Message]


def _of_thinking(body: bytes, messages: Messages, takes: Takes) -> Found:
    """Thinking goes back to the byte, and never ends a message."""
    texts = msgspec.json.decode(body, type=_Body).messages
    for at, (_, blocks) in enumerate(messages):
        if blocks and blocks[-1]["type"] in THINKING:
            yield f"messages.{at}", THINKING_LAST
        for block, text in zip(blocks, texts[at].content, strict=False):
            if block["type"] in THINKING and bytes(text).decode() not in takes.signed:  # type: ignore[arg-type]  # no thinking in a string
                yield f"messages.{at}", UNSIGNED_THINKING


def _of_ids(messages: Messages) -> Found:
    seen: set[str] = set()
    for at, (_, blocks) in enumerate(messages):
        for block in blocks:
            if not block["type"].endswith(("tool_use", "tool_result")):
                continue
            call = block["type"].endswith("tool_use")
            id = block["id"] if call else block["tool_use_id"]
            client = block["type"] in ("tool_use", "tool_result") or block["type"].startswith("mcp_")
            if not (CALL_ID if client else SERVER_ID).fullmatch(id):
                yield f"messages.{at}", reading.BAD_ID
            if call and id in seen:
                yield f"messages.{at}", reading.DOUBLED_ID
            if call:
                seen.add(id)


def _of_pairs(messages: Messages) -> Found:
    """The message right after a client's calls is the user's, and answers them all, first of all."""
    calls: list[str] = []
    for at, (_, blocks) in enumerate(messages):
        place = f"messages.{at}"
        answers = [block["tool_use_id"] for block in _of_types(blocks, "tool_result")]
        yield from reading.of_results(place, calls, answers)
        if len(_of_types(blocks[: len(answers)], "tool_result")) != len(answers):
            yield place, NOT_FIRST
        calls = [block["id"] for block in _of_types(blocks, "tool_use")]
    if calls:
        yield f"messages.{len(messages) - 1}", reading.NO_RESULT


def _of_server_pairs(messages: Messages) -> Found:
    """A provider's own call and its result stand in one turn of the assistant: only results of the client may stand
    between them. The last turn may end with an open call."""
    waiting: list[tuple[str, str]] = []
    for at, (role, blocks) in enumerate(messages):
        place = f"messages.{at}"
        if role != "assistant" and len(_of_types(blocks, "tool_result")) != len(blocks):
            yield from ((before, OPEN_SERVER_CALL) for before, _ in waiting)
            waiting = []
        for block in blocks:
            if block["type"] in ("tool_use", "tool_result"):
                continue
            maker = "mcp" if block["type"].startswith("mcp_") else "server"
            if block["type"].endswith("tool_use"):
                waiting.append((place, f"{maker} {block['id']}"))
            elif block["type"].endswith("tool_result"):
                call = next((one for one in waiting if one[1] == f"{maker} {block['tool_use_id']}"), None)
                if call is None:
                    yield place, LOST_SERVER_RESULT
                else:
                    waiting.remove(call)


def _of_types(blocks: Sequence[Block], *types: str) -> list[Block]:
    return [block for block in blocks if block["type"] in types]
