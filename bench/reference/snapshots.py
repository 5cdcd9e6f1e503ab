"""The answer of the reference, field by field as the product's. Shares no code with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

# A share of the window beyond which a history is compacted.
COMPACT_AT = 170_000


class Part(msgspec.Struct, gc=False):
    id: str
    kind: str
    label: str
    preview: str
    tokens: int
    included: bool
    sent: bool
    override: str
    cached_prefix: bool
    paired: bool
    drifted: bool
    chars: int
    role: str | msgspec.UnsetType = msgspec.UNSET
    seq: int | msgspec.UnsetType = msgspec.UNSET


class Group(msgspec.Struct):
    before: int
    after: int


class Snapshot(msgspec.Struct):
    model: str
    system: list[Part]
    tools: list[Part]
    messages: list[Part]
    groups: dict[str, Group]
    total_before: int
    total_after: int
    counted: str
    would_compact: bool


@dataclass(frozen=True, slots=True)
class Head:
    """What is read beside the messages. `total` is of the stored counts."""

    model: str
    total: int
    overrides: Sequence[tuple[str, str, str | None]]
    system: list[Part]


encode = msgspec.json.Encoder().encode


def system_part(part: str, label: str, text: str, tokens: int, cached: bool) -> Part:
    return Part(part, "system", label, text[:200], tokens, True, True, "none", cached, False, False, len(text))


def copied(part: Part) -> Part:
    return msgspec.structs.replace(part)


def snapshot(head: Head, tools: list[Part], messages: list[Part], message_tokens: int) -> Snapshot:
    """All of it; the message parts may be a stretch of the whole."""
    system_tokens, tool_tokens = sum(part.tokens for part in head.system), sum(part.tokens for part in tools)
    total = system_tokens + tool_tokens + message_tokens
    groups = {
        "system": Group(system_tokens, system_tokens),
        "tools": Group(tool_tokens, tool_tokens),
        "messages": Group(message_tokens, message_tokens),
    }
    return Snapshot(head.model, head.system, tools, messages, groups, total, total, "estimate", total > COMPACT_AT)
