"""The API's replies, as far as tables show them. Other fields are ignored."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from hango.cli.exits import Failure

GROUPS = ("system", "tools", "messages")

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True):
    id: str
    kind: str
    label: str
    preview: str
    tokens: int
    included: bool
    sent: bool
    override: str
    cached_prefix: bool = False
    paired: bool = False
    drifted: bool = False
    role: str | None = None
    tokens_original: int | None = None
    paired_with: str | None = None


class Totals(msgspec.Struct, frozen=True):
    before: int
    after: int


class Problem(msgspec.Struct, frozen=True):
    reason: str
    message: str
    part: str | None = None


class Stale(msgspec.Struct, frozen=True):
    part: str
    action: str
    scope: str
    reason: str | None = None


class Snapshot(msgspec.Struct, frozen=True):
    session_id: str
    agent_id: str
    model: str
    system: tuple[Part, ...]
    tools: tuple[Part, ...]
    messages: tuple[Part, ...]
    groups: dict[str, Totals]
    total_before: int
    total_after: int
    counted: str
    would_compact: bool
    estimate_after: int | None = None
    compact_at: int | None = None
    window: int | None = None
    problems: tuple[Problem, ...] = ()
    stale: tuple[Stale, ...] = ()

    def parts(self, group: str) -> tuple[Part, ...]:
        """One of GROUPS."""
        return {"system": self.system, "tools": self.tools, "messages": self.messages}[group]


class FullPart(msgspec.Struct, frozen=True):
    """One part in full. The contents stay JSON texts: a number in them keeps its digits."""

    id: str
    kind: str
    label: str
    content: msgspec.Raw
    tokens: int
    included: bool
    override: str
    text: str | None = None
    content_original: msgspec.Raw = msgspec.Raw(b"null")


class Session(msgspec.Struct, frozen=True):
    agent_id: str


class SavedOverride(msgspec.Struct, frozen=True):
    part: str
    action: str
    replacement: str | None = None

    def as_sent(self) -> dict[str, str]:
        sent = {"part": self.part, "action": self.action}
        return sent if self.replacement is None else {**sent, "replacement": self.replacement}


class Added(msgspec.Struct, frozen=True):
    part: str
    because: str


class Overrides(msgspec.Struct, frozen=True):
    """A saved set, the partners that leave with it, and its parts that are not there now."""

    overrides: tuple[SavedOverride, ...]
    added: tuple[Added, ...] = ()
    stale: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """One page of a list."""

    data: tuple[dict[str, Any], ...]
    next_cursor: str | None = None


class Flag(msgspec.Struct, frozen=True):
    """Something odd in an imported session: which part, and why."""

    reason: str
    part: str | None = None


class ImportedSession(msgspec.Struct, frozen=True):
    session_id: str
    title: str
    messages: int
    flagged: tuple[Flag, ...] = ()


class Imported(msgspec.Struct, frozen=True):
    agent_id: str
    format: str
    sessions: tuple[ImportedSession, ...]


def read(body: bytes, kind: type[T]) -> T:
    """Raises Failure when the reply is of another version of the API."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Failure("the API answered in a form that this version does not know. Use one version for both.") from None
