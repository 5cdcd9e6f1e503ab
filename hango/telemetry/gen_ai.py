"""A model call in the words of OpenTelemetry's conventions for generative AI, and in those of Langfuse. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from hango.messages import Block, Message, Request, Response, StopReason, SystemText, Usage, is_call, is_result
from hango.telemetry.names import Attr, Name, Value


class Operation(StrEnum):
    CHAT = "chat"
    TOOL = "execute_tool"


class Observation(StrEnum):
    """What Langfuse takes a span for."""

    GENERATION = "generation"
    TOOL = "tool"
    AGENT = "agent"


class Figure(StrEnum):
    """Langfuse's names of tokens; it adds them up."""

    INPUT = "input"
    OUTPUT = "output"
    CACHE_READ = "cache_read_input_tokens"
    CACHE_WRITE = "cache_creation_input_tokens"
    TOTAL = "total"  # of a cost


_HEAVY: Final = frozenset({"image", "document"})  # megabytes, which nobody reads in a trace
_ENCODER: Final = msgspec.json.Encoder()


def of_request(provider: Name, request: Request) -> dict[Attr, Value]:
    return {
        Attr.OPERATION: Operation.CHAT,
        Attr.PROVIDER: provider,
        Attr.REQUEST_MODEL: Name(request.model),
        Attr.REQUEST_MAX_TOKENS: request.max_output_tokens,
        Attr.LANGFUSE_TYPE: Observation.GENERATION,
    }


def of_response(response: Response) -> dict[Attr, Value]:
    found: dict[Attr, Value] = {Attr.FINISH_REASONS: (StopReason(response.stop_reason),)}
    return found | of_usage(response.usage) if response.usage_known else found


def of_usage(usage: Usage) -> dict[Attr, Value]:
    """The conventions count cached and written tokens among those of the input, Langfuse apart from them."""
    figures: Mapping[StrEnum, int] = {
        Figure.INPUT: usage.input_tokens,
        Figure.OUTPUT: usage.output_tokens,
        Figure.CACHE_READ: usage.cache_read_tokens,
        Figure.CACHE_WRITE: usage.cache_write_tokens,
    }
    return {
        Attr.INPUT_TOKENS: usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        Attr.OUTPUT_TOKENS: usage.output_tokens,
        Attr.CACHE_READ_TOKENS: usage.cache_read_tokens,
        Attr.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        Attr.LANGFUSE_USAGE: figures,
    }


def of_cost(usd: float | None) -> dict[Attr, Value]:
    return {} if usd is None else {Attr.COST: usd, Attr.LANGFUSE_COST: {Figure.TOTAL: usd}}


def of_tool(tool: Name) -> dict[Attr, Value]:
    return {Attr.OPERATION: Operation.TOOL, Attr.TOOL_NAME: tool, Attr.LANGFUSE_TYPE: Observation.TOOL}


def system_json(system: Sequence[SystemText]) -> str:
    return _text([{"type": "text", "content": block.text} for block in system])


def messages_json(messages: Sequence[Message]) -> str:
    return _text(
        [{"role": str(message.role), "parts": [_part(block) for block in message.content]} for message in messages]
    )


def answer_json(response: Response) -> str:
    parts = [_part(block) for block in response.content]
    return _text([{"role": "assistant", "parts": parts, "finish_reason": str(response.stop_reason)}])


def _part(block: Block) -> dict[str, Any]:
    """A block as a part of the conventions; one that they do not know stays as it is, a picture or file by its name."""
    view = block.view
    if view.type == "text":
        return {"type": "text", "content": view.text or ""}
    if view.type == "thinking":
        return {"type": "reasoning", "content": view.thinking or ""}
    if is_call(view.type):
        return {"type": "tool_call", "id": view.id, "name": view.name, "arguments": _json(view.input)}
    if is_result(view.type):
        return {"type": "tool_call_response", "id": view.tool_use_id, "response": _json(view.content)}
    if view.type in _HEAVY:
        return {"type": view.type}
    members: dict[str, Any] = msgspec.json.decode(block.json)
    return members


def _json(raw: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(bytes(raw) or b"null")


def _text(value: Any) -> str:
    return _ENCODER.encode(value).decode()
