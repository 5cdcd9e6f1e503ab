"""The API's replies about runs, their calls and their messages, as far as the commands show them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from hango.cli.replies import Part, Snapshot
from hango.cli.try_replies import Fault, Usage

UNFINISHED = frozenset({"queued", "running"})


class Run(msgspec.Struct, frozen=True):
    """`turns` counts the run's own model calls; `usage` sums all that it made."""

    id: str
    session_id: str
    status: str
    model: str
    created_at: datetime
    turns: int = 0
    overrides: int = 0
    stop_reason: str | None = None
    usage: Usage | None = None
    error: Fault | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.status not in UNFINISHED

    @property
    def waits_for_client(self) -> bool:
        """It ended because the model called tools that the client has to answer."""
        return self.status == "requires_action"

    @property
    def seconds(self) -> float | None:
        """From its first start to its end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class RunPage(msgspec.Struct, frozen=True):
    data: tuple[Run, ...]
    next_cursor: str | None = None


class Message(msgspec.Struct, frozen=True):
    """A persisted message. The blocks stay JSON texts: a number in them keeps its digits."""

    seq: int
    role: str
    content: tuple[msgspec.Raw, ...]
    run_id: str | None = None


class MessagePage(msgspec.Struct, frozen=True):
    data: tuple[Message, ...]


class Summary(msgspec.Struct, frozen=True):
    text: str
    through_seq: int


class LastRun(msgspec.Struct, frozen=True):
    id: str
    status: str


class Session(msgspec.Struct, frozen=True):
    """`messages` counts the persisted history, whose seqs have no gaps."""

    id: str
    agent_id: str
    messages: int
    title: str = ""
    summary: Summary | None = None
    last_run: LastRun | None = None


class Call(msgspec.Struct, frozen=True):
    """One model call of a run. `exact`: made by the API's own release of hango."""

    n: int
    purpose: str
    model: str
    exact: bool
    overrides: int = 0
    excluded_tokens: int = 0
    usage: Usage | None = None
    stop_reason: str | None = None
    error: str | None = None
    ended_at: datetime | None = None


class CallPage(msgspec.Struct, frozen=True):
    data: tuple[Call, ...]
    next_cursor: str | None = None


class PastSnapshot(Snapshot, frozen=True):
    """The context of a past call, made again. `exact`: its request is the one that was sent, byte for byte."""

    exact: bool = False


class ChangedPart(msgspec.Struct, frozen=True):
    part: str
    before: Part
    after: Part


class Diff(msgspec.Struct, frozen=True):
    """From one call to another, of what was sent."""

    added: tuple[Part, ...]
    removed: tuple[Part, ...]
    changed: tuple[ChangedPart, ...]
    tokens_before: int
    tokens_after: int
    cache_broken_at: str | None = None
    cache_reason: str | None = None


class SummaryPreview(msgspec.Struct, frozen=True):
    """The summary that a run would make. `missing` is what its text no longer mentions."""

    id: str
    status: str
    through_seq: int
    text: str | None = None
    missing: tuple[str, ...] = ()
    usage: Usage | None = None
    error: Fault | None = None

    @property
    def ended(self) -> bool:
        return self.status not in UNFINISHED
