"""The provider-neutral protocol: what is sent to a model and what comes back; to and from JSON text.

Blocks are the Anthropic content blocks. A block keeps its own JSON text, so that digits, key order and blocks nobody
knows survive from import to wire (rule: tool inputs and unknown blocks are sent as they came, white space apart).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from hango import jsontext
from hango.errors import Invalid, Reason


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"  # only inside a history; the system prompt is made of blocks


class StopReason(StrEnum):
    """Why a model stopped, in Anthropic's words for every provider."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    CONTEXT_EXCEEDED = "model_context_window_exceeded"


class BlockView(msgspec.Struct, frozen=True):
    """The few fields of a block that rules look at. Everything else stays in the block's text."""

    type: str
    text: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    content: msgspec.Raw = msgspec.Raw(b"")
    is_error: bool | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    source: msgspec.Raw = msgspec.Raw(b"")


class _Foreign(msgspec.Struct):
    type: str


_view = msgspec.json.Decoder(BlockView)
_foreign = msgspec.json.Decoder(_Foreign)


@dataclass(frozen=True)
class Block:
    """One content block as compact JSON text, with a lazily read view of it."""

    json: str

    @classmethod
    def of(cls, raw: bytes | str | msgspec.Raw) -> Block:
        """A block from JSON text. Raises Invalid (`bad_field`) when it is no object with a text `type`."""
        block = cls(jsontext.compact(raw))
        try:
            block.view  # noqa: B018 (reads it once: a block that cannot be read is refused here)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise Invalid.because(Reason.BAD_FIELD, f"A content block cannot be read: {error}.") from None
        return block

    @classmethod
    def make(cls, type: str, **fields: Any) -> Block:
        """A block from Python values, in the given order; None is left out, `msgspec.Raw` stays as it is."""
        return cls(jsontext.dumps({"type": type} | {k: v for k, v in fields.items() if v is not None}))

    @cached_property
    def view(self) -> BlockView:
        try:
            return _view.decode(self.json.encode())
        except msgspec.ValidationError:
            # A block nobody knows may use the same names for other things.
            type = _foreign.decode(self.json.encode()).type
            if is_known(type):
                raise
            return BlockView(type)

    @property
    def type(self) -> str:
        return self.view.type

    @property
    def may_hold_mark(self) -> bool:
        """Whether `cache_control` may stand in it. A key may be written with escapes: then the block is read."""
        return 'cache_control"' in self.json or "\\u" in self.json

    @cached_property
    def is_plain_text(self) -> bool:
        """True for a text block without any mark. May miss one that is; reads no JSON."""
        return self.json.startswith('{"type":"text"') and not self.may_hold_mark

    @cached_property
    def inner(self) -> tuple[Block, ...]:
        """The blocks of its content, such as a result's; none where that is no list of blocks."""
        return Block.all_of(self.view.content)

    @staticmethod
    def all_of(content: msgspec.Raw) -> tuple[Block, ...]:
        """The blocks of JSON text that lists blocks; none where it is anything else."""
        if not bytes(content).startswith(b"["):
            return ()
        try:
            found = tuple(Block(bytes(item).decode()) for item in msgspec.json.decode(content, type=list[msgspec.Raw]))
            return found if all(block.type for block in found) else ()
        except msgspec.ValidationError:  # a list of something else, which only its provider knows
            return ()

    def with_fields(self, **changes: Any) -> Block:
        """The same block with members set; a member set to None is taken out. Other members keep their text."""
        members: dict[str, Any] = dict(jsontext.fields(self.json))
        for key, value in changes.items():
            if value is None:
                members.pop(key, None)
            else:
                members[key] = value
        return Block(jsontext.dumps(members))


def text_block(text: str) -> Block:
    return Block.make("text", text=text)


def tool_result(tool_use_id: str, content: str, *, is_error: bool = False) -> Block:
    return Block.make("tool_result", tool_use_id=tool_use_id, content=content, is_error=is_error or None)


# A block costs time at every inspect; no model's answer comes near it.
MAX_BLOCKS = 10_000


def read_content(raw: bytes | str | msgspec.Raw) -> tuple[Block, ...]:
    """Blocks of a message's content: JSON text of a string or of a list of blocks. Raises Invalid (`bad_field`)."""
    text = jsontext.compact(raw)
    if text.startswith('"'):
        return (Block(f'{{"type":"text","text":{text}}}'),)
    try:
        items = msgspec.json.decode(text.encode(), type=list[msgspec.Raw])
    except (msgspec.ValidationError, msgspec.DecodeError):
        message = "The content of a message is a string or a list of blocks."
        raise Invalid.because(Reason.BAD_FIELD, message) from None
    if len(items) > MAX_BLOCKS:
        message = f"A message holds {len(items):,} blocks, and {MAX_BLOCKS:,} are the most. Send several messages."
        raise Invalid.because(Reason.BAD_FIELD, message)
    return tuple(Block.of(item) for item in items)


_items = msgspec.json.Decoder(list[msgspec.Raw])


def stored_content(text: str) -> tuple[Block, ...]:
    """Blocks of the text that `content_json` made: they were looked at then, and are not looked at again."""
    return tuple([Block(str(item, "utf-8")) for item in _items.decode(text)])


def content_json(blocks: Sequence[Block]) -> str:
    """Compact JSON text of a list of blocks: the form in which bodies are stored."""
    return "[" + ",".join(block.json for block in blocks) + "]"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `model` names the model that wrote it; None means the agent's own."""

    role: MessageRole
    content: tuple[Block, ...]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `input_schema` is JSON text.

    `definition` is the whole JSON text of a tool that only its own provider knows (a server tool); then the other
    fields are for display. Such a tool is sent as it came.
    """

    name: str
    description: str = ""
    input_schema: str = '{"type":"object"}'
    definition: str | None = None


@dataclass(frozen=True, slots=True)
class SystemText:
    """One block of the system prompt; `marked` when the cache mark stands on it."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One model call, before a provider's adapter writes it in the provider's words.

    Messages are repaired: every call has its results right after it, results stand first, ids are unique per turn,
    nothing empty is left. `params` holds the closed list of api.md (temperature, top_p, top_k, stop, seed,
    tool_choice, parallel_tool_calls, thinking, reasoning_effort).
    """

    model: str  # without the provider's prefix
    system: tuple[SystemText, ...]
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    max_output_tokens: int
    params: Mapping[str, Any] = field(default_factory=dict)
    mark_last_tool: bool = False  # the cache mark when no system block is sent
    cache_ttl: str = "5m"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `input_tokens` is without the cached ones, for every provider."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """What a model answered. `usage` counts nothing when it is not known: the provider told none that can be."""

    content: tuple[Block, ...]
    stop_reason: StopReason
    usage: Usage
    request_id: str | None = None
    usage_known: bool = True


# Block types by their part in a call. Server tools and MCP blocks pair like client tools, often inside one message.
CALL_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
_CONTENT_TYPES = frozenset({"text", "image", "document"})


def is_call(type: str) -> bool:
    return type in CALL_TYPES


def is_result(type: str) -> bool:
    """True for `tool_result`, `mcp_tool_result` and every server tool's `<name>_tool_result`."""
    return type.endswith("tool_result")


def is_known(type: str) -> bool:
    """True for the blocks of api.md: their fields have the types of BlockView."""
    return type in _CONTENT_TYPES or type in THINKING_TYPES or is_call(type) or is_result(type)


def is_blank(text: str) -> bool:
    """True for nothing but white space; the no-break space counts as white space."""
    return not text.strip()
