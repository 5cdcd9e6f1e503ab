"""A run and its model calls as records: user's words in, calls and tools, until the model stops. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hango.domain import (
    BaseID,
    CallID,
    FileVersionID,
    Principal,
    Purpose,
    RunID,
    RunStatus,
    SessionID,
    TenantID,
    UserID,
)
from hango.messages import StopReason
from hango.tries import TryUsage

OPEN = frozenset({RunStatus.QUEUED, RunStatus.RUNNING})


class RunError(StrEnum):
    """Why a run did not come to an answer. A closed set, listed in docs/http-api.md and checked by the database."""

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
    QUOTA_EXCEEDED = "quota_exceeded"
    TOO_MANY_TURNS = "too_many_turns"
    TOO_MANY_TOKENS = "too_many_tokens"
    UNSENDABLE = "unsendable"  # the context is one that a provider would refuse


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its owner sees it. `usage` is the sum of its calls, None before the first."""

    id: RunID
    session_id: SessionID
    session_owner: UserID
    status: RunStatus
    turns: int
    model: str
    overrides: int
    stop_reason: StopReason | None
    usage: TryUsage | None
    error: RunError | None
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is fixed when a run is accepted. `first_seq` is the session's end before the run's own message."""

    base_id: BaseID
    model: str
    first_seq: int
    overrides: int
    ttl_seconds: float
    timeout_seconds: float
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that a worker has: as whom, and the fencing number that proves it."""

    principal: Principal
    id: RunID
    attempt: int
    timeout_seconds: float  # of the whole run, from its first start
    started_at: datetime
    traceparent: str | None

    @property
    def tenant_id(self) -> TenantID:
        return self.principal.tenant_id


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands: what it is made of, and how far it has come."""

    session_id: SessionID
    base_id: BaseID
    model: str
    first_seq: int
    skill_version_id: FileVersionID | None
    turns: int
    overrides: int
    has_compacted: bool  # or tried to


@dataclass(frozen=True, slots=True)
class NewCall:
    """A model call that is about to be made. `reserved` tokens are held for it."""

    purpose: Purpose
    session_id: SessionID  # of the conversation: a subagent has one of its own
    base_id: BaseID
    model: str
    request_sha256: str
    overrides: int
    excluded_tokens: int
    max_output_tokens: int
    reserved: int


@dataclass(frozen=True, slots=True)
class BegunCall:
    """A call that may be made: the nth of its run."""

    id: CallID
    n: int


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended, and what it is billed at."""

    usage: TryUsage
    stop_reason: StopReason | None = None
    error: RunError | None = None
    provider_status: int | None = None
    provider_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is under way, or was when its worker fell silent."""

    id: CallID
    model: str
    reserved: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class RunCall:
    """A model call of a run as people see it. `version` is the hango that made it."""

    id: CallID
    n: int
    purpose: Purpose
    session_id: SessionID
    base_id: BaseID
    model: str
    request_sha256: str
    version: str
    overrides: int
    excluded_tokens: int
    usage: TryUsage | None
    stop_reason: StopReason | None
    error: RunError | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class OverdueRun:
    """A run whose worker has been silent past its lease."""

    principal: Principal
    id: RunID
    attempt: int
    rescues: int
    cancelled: bool
    traceparent: str | None = None
