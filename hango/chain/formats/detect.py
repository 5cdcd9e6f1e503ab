"""Which format a file is in. The tests are tried in the order of the table; the first that holds decides.

1. claude_code: a line with `sessionId` (or `session_id`) and `type`, or `leafUuid`
2. chatgpt: `mapping`
3. sharegpt: `conversations`, or turns with `from`
4. swe_agent: `trajectory` or `history`, or `trajectory_format`
5. langchain: `lc` and `kwargs`, or `type` with `data`, or types human and ai
6. openai_responses: `input` or `output`, or items with a `type` of Responses
7. openai_chat: roles developer, tool, function, or a leading system message, or OpenAI's members and parts
8. anthropic: Anthropic's members, blocks or tools, or a model named claude
9. openai_chat: any other list of messages with role and content
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from hango.chain.formats.reading import is_array, is_object, is_string, on_line, strict
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Reason

# Enough lines to pass the bookkeeping that opens a session file.
_LINES = 100
_MESSAGES = 200

_OPENAI_ROLES = frozenset({"developer", "tool", "function"})
_OPENAI_MEMBERS = frozenset(
    {"max_completion_tokens", "response_format", "functions", "function_call", "frequency_penalty"}
    | {"presence_penalty", "logit_bias", "logprobs", "reasoning_effort", "stream_options", "parallel_tool_calls"}
)
_OPENAI_MESSAGE = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content"})
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_ANTHROPIC_MEMBERS = frozenset(
    {"system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking", "top_k", "mcp_servers"}
)
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"}
)
_LANGCHAIN_TYPES = frozenset({"human", "ai", "AIMessageChunk", "HumanMessage", "AIMessage"})
_RESPONSES_ITEMS = frozenset(
    {"function_call", "function_call_output", "reasoning", "item_reference", "custom_tool_call"}
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ENVELOPES = ("request", "body", "params")

_CHATS = (Format.OPENAI_CHAT, Format.ANTHROPIC)

_Members = Mapping[str, msgspec.Raw]


def detect(source: Source) -> Format:
    """The format of the file. Raises Invalid (`unknown_format`) that says what was looked for."""
    lines = source.is_lines()
    found = _of_lines(source) if lines else _of_value(_readable(source.document()))
    if found is not None:
        return found
    # What is wrong with the text itself is told first.
    if not lines:
        strict(source.document())
    for line in islice(source.lines(), _LINES) if lines else ():
        with on_line(line.number):
            strict(line.text)
    message = (
        "The format was not recognised: looked for Claude Code session lines, ChatGPT's `mapping`, ShareGPT's "
        "`conversations`, SWE-agent's `history` or `trajectory`, LangChain's `type` and `data`, OpenAI's `input` or "
        "`messages`, Anthropic's `messages`. Name it with `format`."
    )
    raise Invalid.because(Reason.UNKNOWN_FORMAT, message)


def _of_lines(source: Source) -> Format | None:
    """The format of the first lines: each a value of its own, or together the messages of one conversation."""
    bodies = []
    for line in islice(source.lines(), _LINES):
        with on_line(line.number):
            bodies.append(_readable(line.text))
    objects = [msgspec.json.decode(body, type=dict[str, msgspec.Raw]) for body in bodies if is_object(body)]
    if len(objects) == len(bodies) and "role" in objects[0] and _of_object(objects[0]) in _CHATS:
        return _of_list_members(objects)
    return next(filter(None, map(_of_value, bodies)), None)


def _readable(body: bytes) -> bytes:
    """The body as the decoder reads it. Strictness is the reader's: the whole of a large file is read for it."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return strict(body)[0]
    return body


def _of_value(body: bytes) -> Format | None:
    if is_array(body):
        return _of_list(msgspec.json.decode(body, type=list[msgspec.Raw]))
    if not is_object(body):
        return None
    return _of_object(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))


def _of_object(members: _Members) -> Format | None:
    if "leafUuid" in members or ("type" in members and members.keys() & {"sessionId", "session_id"}):
        return Format.CLAUDE_CODE
    if "mapping" in members:
        return Format.CHATGPT
    if members.keys() & {"conversations", "conversation", "from"}:
        return Format.SHAREGPT
    if members.keys() & {"trajectory", "history", "trajectory_format"}:
        return Format.SWE_AGENT
    if _is_langchain(members):
        return Format.LANGCHAIN
    if "messages" in members and is_array(members["messages"]):
        return _of_messages(msgspec.json.decode(members["messages"], type=list[msgspec.Raw]), members)
    if members.keys() & {"input", "output"} and not members.keys() & {"role", "type"}:
        return Format.OPENAI_RESPONSES
    for name in _ENVELOPES:
        if name in members and is_object(members[name]):
            return _of_object(msgspec.json.decode(members[name], type=dict[str, msgspec.Raw]))
    return _of_pieces([members])


def _of_list(items: Sequence[msgspec.Raw]) -> Format | None:
    if items and is_array(items[0]):
        return _of_list(msgspec.json.decode(items[0], type=list[msgspec.Raw]))
    return _of_list_members(_objects(items))


def _of_list_members(items: Sequence[_Members]) -> Format | None:
    """The format of a list of messages, items or conversations."""
    if not items:
        return None
    first = items[0]
    if first.keys() & {"mapping", "conversations", "conversation", "from", "trajectory", "history", "messages"}:
        return _of_object(first)
    return _of_pieces(items)


def _of_pieces(items: Sequence[_Members]) -> Format | None:
    """The format of a list of messages or items."""
    if any(_is_langchain(item) for item in items):
        return Format.LANGCHAIN
    if any(_text(item.get("type")) in _RESPONSES_ITEMS for item in items if "message" not in item):
        return Format.OPENAI_RESPONSES
    if any(_part_types(item) & _RESPONSES_PARTS for item in items):
        return Format.OPENAI_RESPONSES
    return _chat(items, {}) if all("role" in item for item in items) else None


def _of_messages(raws: Sequence[msgspec.Raw], members: _Members) -> Format | None:
    items = _objects(raws)
    if any(_is_langchain(item) for item in items):
        return Format.LANGCHAIN
    return _chat(items, members)


def _chat(items: Sequence[_Members], members: _Members) -> Format:
    roles = [_text(item.get("role")) for item in items]
    parts = {type for item in items for type in _part_types(item)}
    tools = _objects(_list(members.get("tools")))
    if (
        _OPENAI_ROLES.intersection(roles)
        or roles[:1] == ["system"]
        or any(item.keys() & _OPENAI_MESSAGE for item in items)
        or members.keys() & _OPENAI_MEMBERS
        or parts & _OPENAI_PARTS
        or any("function" in tool for tool in tools)
    ):
        return Format.OPENAI_CHAT
    if (
        members.keys() & _ANTHROPIC_MEMBERS
        or parts & _ANTHROPIC_BLOCKS
        or any("input_schema" in tool for tool in tools)
        or "claude" in _text(members.get("model"))
    ):
        return Format.ANTHROPIC
    return Format.OPENAI_CHAT


def _is_langchain(item: _Members) -> bool:
    if "lc" in item and "kwargs" in item:
        return True
    type = _text(item.get("type"))
    return type in _LANGCHAIN_TYPES or (type in ("system", "tool") and "data" in item)


def _part_types(item: _Members) -> set[str]:
    return {_text(part.get("type")) for part in _objects(_list(item.get("content")))}


def _objects(raws: Sequence[msgspec.Raw]) -> list[dict[str, msgspec.Raw]]:
    return [msgspec.json.decode(raw, type=dict[str, msgspec.Raw]) for raw in raws[:_MESSAGES] if is_object(raw)]


def _list(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    return msgspec.json.decode(raw, type=list[msgspec.Raw]) if raw is not None and is_array(raw) else []


def _text(raw: msgspec.Raw | None) -> str:
    value: Any = msgspec.json.decode(raw) if raw is not None and is_string(raw) else ""
    return str(value)
