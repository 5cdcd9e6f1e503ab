"""An answer of Anthropic's Messages API as a response. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hango.chain.providers.answers import Names, Unreadable, bounded, checked, members, tokens
from hango.messages import Block, Response, StopReason, Usage


class _Message(msgspec.Struct, frozen=True):
    content: list[msgspec.Raw]
    type: str = "message"
    role: str = "assistant"
    stop_reason: str | None = None
    usage: Any = None


def read(body: bytes, names: Names) -> Response:
    """`names` gives the agent's own name for each changed name on the wire. Raises Unreadable and errors of reading."""
    said = members(body, _Message)
    if (said.type, said.role) != ("message", "assistant"):
        raise Unreadable("type")
    content = tuple(checked(Block.of(raw)) for raw in bounded(said.content))
    usage = _usage(said.usage)
    return Response(
        _renamed(content, names), _stop_reason(said.stop_reason), usage or Usage(), usage_known=usage is not None
    )


def _renamed(content: tuple[Block, ...], names: Names) -> tuple[Block, ...]:
    if not any(block.type == "tool_use" for block in content):
        return content
    own = names()
    return tuple(
        block.with_fields(name=own[block.view.name or ""])
        if block.type == "tool_use" and block.view.name in own
        else block
        for block in content
    )


def _stop_reason(written: str | None) -> StopReason:
    """A reason that nobody knows is an end: the answer is whole as far as anybody can tell."""
    return StopReason(written) if written in set(StopReason) else StopReason.END_TURN


def _usage(figures: Any) -> Usage | None:
    """`input_tokens` is without the cached ones and those written to the cache, by the API's own count."""
    found = tokens(
        figures, ["input_tokens", "output_tokens"], ["cache_read_input_tokens", "cache_creation_input_tokens"]
    )
    return Usage(*found) if found else None
