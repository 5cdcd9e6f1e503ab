"""A try and its batch as records: one model call with a changed context that never touches its session. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from hango.domain import BaseID, BatchID, Principal, Purpose, SessionID, TenantID, TryID, UserID
from hango.messages import StopReason, Usage


class TryStatus(StrEnum):
    """Where a try stands. All but the first two are terminal: they never change."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # no worker took it in time
    LOST = "lost"  # its worker vanished while the model was called: outcome unknown, not repeated


ENDED = frozenset(TryStatus) - {TryStatus.QUEUED, TryStatus.RUNNING}


class TryError(StrEnum):
    """Why a try has no answer. A closed set, listed in docs/http-api.md and checked by the database."""

    TIMEOUT = "timeout"
    QUEUE_EXPIRED = "queue_expired"
    CANCELLED = "cancelled"
    WORKER_LOST = "worker_lost"
    PROVIDER_UNREACHABLE = "provider_unreachable"
    PROVIDER_RATE_LIMITED = "provider_rate_limited"
    PROVIDER_OVERLOADED = "provider_overloaded"
    PROVIDER_ERROR = "provider_error"
    PROVIDER_PROTOCOL = "provider_protocol"
    RESPONSE_TOO_LARGE = "response_too_large"
    PROVIDER_REFUSED = "provider_refused"
    CONTEXT_CHANGED = "context_changed"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Changes:
    """Which parts a call changes, by id and in the caller's order: names, no content."""

    exclude: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """The caller's own words: replacements by part, and extra text of the user. Content."""

    replace: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What the repeats of one variant have in common, as it was accepted.

    `sent` and `excluded` are lists of part ids as JSON text (`chain/part_lists.py`). `reserved` tokens are held for
    one call. `through_seq`: the call asks for a summary of the messages up to this one.
    """

    label: str | None
    model: str
    changes: Changes
    texts: Texts
    sent: str
    excluded: str
    request_sha256: str
    tokens_before: int
    tokens_after: int
    max_output_tokens: int
    reserved: int
    through_seq: int | None = None


@dataclass(frozen=True, slots=True)
class TryUsage:
    """What a call was billed at; `estimated` when the provider's figures never came."""

    tokens: Usage
    cost_usd: float | None
    estimated: bool


@dataclass(frozen=True, slots=True)
class Try:
    """A try as its owner sees it. `texts`, `sent`, `answer` and `said` are None in lists, and the texts once purged."""

    id: TryID
    session_id: SessionID
    session_owner: UserID
    batch_id: BatchID | None
    variant: int | None
    label: str | None
    status: TryStatus
    base_id: BaseID  # of a summary's preview what it covers is made again
    model: str
    changes: Changes
    texts: Texts | None
    sent: str | None
    excluded: str
    request_sha256: str
    tokens_before: int
    tokens_after: int
    answer: str | None  # JSON text of content blocks
    said: str | None  # the provider's own words about its refusal
    stop_reason: StopReason | None
    usage: TryUsage | None
    error: TryError | None
    provider_status: int | None
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    purged: bool
    through_seq: int | None = None  # of the preview of a summary


@dataclass(frozen=True, slots=True)
class TryBatch:
    id: BatchID
    session_id: SessionID
    session_owner: UserID
    label: str | None
    tries: int
    remaining: int
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class VariantSum:
    """What the tries of one variant came to. `usage` None: none of them was billed; its cost None: none has one."""

    variant: int
    label: str | None
    counts: Mapping[TryStatus, int]
    usage: TryUsage | None
    tries: tuple[TryID, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A try that a worker has: as whom, and the fencing number that proves it."""

    principal: Principal
    id: TryID
    session_id: SessionID
    request_id: UUID
    batch_id: BatchID | None
    attempt: int
    timeout_seconds: float
    reserved: int
    traceparent: str | None
    created_at: datetime

    @property
    def tenant_id(self) -> TenantID:
        return self.principal.tenant_id


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    """What a claimed try shall send."""

    base_id: BaseID
    model: str
    changes: Changes
    texts: Texts | None
    request_sha256: str
    max_output_tokens: int
    through_seq: int | None = None

    @property
    def purpose(self) -> Purpose:
        """Of a try, or of the preview of a summary."""
        return Purpose.CONTEXT_TRY if self.through_seq is None else Purpose.SUMMARY


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a call ended, and what it is billed at. `answer` is JSON text of content blocks."""

    status: TryStatus
    usage: TryUsage
    error: TryError | None = None
    answer: str | None = None
    stop_reason: StopReason | None = None
    said: str | None = None
    provider_status: int | None = None
    provider_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Overdue:
    """A try whose worker has been silent past its lease."""

    principal: Principal
    id: TryID
    request_id: UUID
    attempt: int
    reserved: int
    called: bool
    cancelled: bool
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """Where and for how long new tries wait: the quota's month and the limits in force."""

    ttl_seconds: float
    timeout_seconds: float
    retention_seconds: float
    quota_period: date
    traceparent: str | None = None
