"""The API's replies about tries and batches, as far as the commands show them. Other fields are ignored."""

from __future__ import annotations

from datetime import datetime

import msgspec

UNFINISHED = frozenset({"queued", "running"})


class Usage(msgspec.Struct, frozen=True):
    """What a call took. `input_tokens` are those that were neither read from the cache nor written to it."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @property
    def all_input(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class Fault(msgspec.Struct, frozen=True):
    """Why a try has no answer."""

    code: str
    message: str


class Answer(msgspec.Struct, frozen=True):
    """What the model said. The blocks stay JSON texts: a number in them keeps its digits."""

    content: tuple[msgspec.Raw, ...]


class Request(msgspec.Struct, frozen=True):
    """What a try asked for; of the replaced parts the ids alone are of interest here."""

    model: str
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    replace: dict[str, str | None] | tuple[str, ...] | None = None


class Try(msgspec.Struct, frozen=True):
    id: str
    session_id: str
    status: str
    request: Request
    created_at: datetime
    label: str | None = None
    batch_id: str | None = None
    variant: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    excluded: tuple[str, ...] | None = None
    answer: Answer | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: Fault | None = None
    purged: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.status not in UNFINISHED

    @property
    def succeeded(self) -> bool:
        return self.status == "succeeded"

    @property
    def seconds(self) -> float | None:
        """From the start of the call to its end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class BatchVariant(msgspec.Struct, frozen=True):
    """The tries of one variant of a batch."""

    label: str | None = None
    tries: tuple[str, ...] = ()


class Batch(msgspec.Struct, frozen=True):
    id: str
    counts: dict[str, int]
    variants: tuple[BatchVariant, ...]
    created_at: datetime
    label: str | None = None

    @property
    def calls(self) -> int:
        return sum(self.counts.values())

    @property
    def unfinished(self) -> int:
        return sum(self.counts.get(status, 0) for status in UNFINISHED)

    @property
    def ended(self) -> bool:
        return not self.unfinished

    @property
    def succeeded(self) -> bool:
        return self.counts.get("succeeded", 0) == self.calls


class Costs(msgspec.Struct, frozen=True):
    least: float
    most: float


class Quote(msgspec.Struct, frozen=True):
    """What a batch would take, before it is sent."""

    calls: int
    input_tokens: int
    output_tokens_most: int
    cost_usd: Costs | None = None
    quota_left: int | None = None


class TryPage(msgspec.Struct, frozen=True):
    data: tuple[Try, ...]
    next_cursor: str | None = None


class BatchPage(msgspec.Struct, frozen=True):
    data: tuple[Batch, ...]
    next_cursor: str | None = None
