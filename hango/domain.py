"""The nouns of the product: frozen records, typed ids, closed sets. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

from hango.agent_definition import AgentDefinition

TenantID = NewType("TenantID", UUID)
UserID = NewType("UserID", UUID)
KeyID = NewType("KeyID", UUID)
AgentID = NewType("AgentID", UUID)
AgentVersionID = NewType("AgentVersionID", UUID)
SessionID = NewType("SessionID", UUID)
FileVersionID = NewType("FileVersionID", UUID)
SummaryID = NewType("SummaryID", UUID)
RunID = NewType("RunID", UUID)
BaseID = NewType("BaseID", UUID)
TryID = NewType("TryID", UUID)
BatchID = NewType("BatchID", UUID)
CallID = NewType("CallID", UUID)
PartID = NewType("PartID", str)  # "system:memory:/memories/AGENTS.md", "tool:read_file", "message:42", "summary"


class Role(StrEnum):
    ADMIN = "admin"  # everything of the tenant
    MEMBER = "member"  # the own agents and sessions, and reading shared agents


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    REQUIRES_ACTION = "requires_action"  # waits for results of client tools


class OverrideAction(StrEnum):
    EXCLUDE = "exclude"
    REPLACE = "replace"


class OverrideScope(StrEnum):
    """What a saved override belongs to."""

    AGENT = "agent"  # system and tool parts, in every session of the agent
    SESSION = "session"  # messages and the summary


class Purpose(StrEnum):
    """What a model call was for: the groups of usage_records."""

    RUN = "run"
    SUBAGENT = "subagent"
    SUMMARY = "summary"
    CONTEXT_TRY = "context_try"  # a call outside of any run


class AuditAction(StrEnum):
    """The closed set of audit actions. A detail never holds content."""

    TENANT_CREATE = "tenant.create"
    TENANT_UPDATE = "tenant.update"
    USER_CREATE = "user.create"
    USER_UPDATE = "user.update"
    KEY_CREATE = "api_key.create"
    KEY_REVOKE = "api_key.revoke"
    AGENT_CREATE = "agent.create"
    AGENT_UPDATE = "agent.update"
    AGENT_DELETE = "agent.delete"
    FILE_WRITE = "file.write"
    FILE_DELETE = "file.delete"
    SESSION_CREATE = "session.create"
    SESSION_DELETE = "session.delete"
    SESSION_APPEND = "session.append"
    SESSION_IMPORT = "session.import"
    CONTEXT_OVERRIDE = "context.override"
    CONTEXT_TRY = "context.try"  # a try was accepted
    CONTEXT_TRY_FINISHED = "context.try_finished"  # it reached its end, whatever that was
    RUN_START = "run.start"
    RUN_FINISH = "run.finish"  # it reached its end, whatever that was
    SUMMARY_PREVIEW = "summary.preview"  # one was accepted: a call as of a try
    SUMMARY_PREVIEW_FINISHED = "summary.preview_finished"  # it reached its end, whatever that was
    SUMMARY_SAVE = "summary.save"
    SUMMARY_UNDO = "summary.undo"


@dataclass(frozen=True, slots=True)
class Tenant:
    """`quota_tokens` None means no limit; the quota is of a calendar month in UTC."""

    id: TenantID
    name: str
    quota_tokens: int | None
    quota_used: int
    quota_reserved: int
    period_start: date
    rate_per_minute: int | None
    trace_llm_content: bool


@dataclass(frozen=True, slots=True)
class User:
    id: UserID
    name: str
    role: Role
    disabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without its secret, which is shown once and stored only as a hash."""

    id: KeyID
    name: str
    user_id: UserID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking."""

    tenant_id: TenantID
    user_id: UserID
    key_id: KeyID
    role: Role
    rate_per_minute: int | None = None
    trace_llm_content: bool = False


@dataclass(frozen=True, slots=True)
class Agent:
    id: AgentID
    name: str
    shared: bool
    created_by: UserID
    created_at: datetime
    updated_at: datetime
    version_id: AgentVersionID
    definition: AgentDefinition


@dataclass(frozen=True, slots=True)
class Summary:
    """The compaction summary: messages up to `through_seq` are no longer sent."""

    id: SummaryID
    text: str
    through_seq: int


@dataclass(frozen=True, slots=True)
class LastRun:
    id: RunID
    status: RunStatus
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """`messages` and `tokens` count the persisted history; `last_seq` is its end (0 when empty)."""

    id: SessionID
    agent_id: AgentID
    title: str
    messages: int
    tokens: int
    last_seq: int
    summary: Summary | None
    last_run: LastRun | None
    created_by: UserID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A persisted message as people see it: never changed by overrides. `content` is the JSON text of its blocks."""

    seq: int
    role: str
    content: str
    model: str | None
    run_id: RunID | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One version of an agent's text file; `cut` when the text was cut at the size a part may have."""

    version_id: FileVersionID
    path: str
    content: str
    version: int
    chars: int
    updated_at: datetime
    cut: bool = False


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as a list shows it: without its text."""

    path: str
    version: int
    chars: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Override:
    part: PartID
    action: OverrideAction
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class SavedOverride:
    """An override as it is stored. `against` is the hash of the part's text that it was made against ("" when there was
    no such part)."""

    part: PartID
    action: OverrideAction
    replacement: str | None
    against: str
    scope: OverrideScope
    created_by: UserID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UsageRecord:
    id: UUID
    purpose: Purpose
    run_id: RunID | None
    try_id: TryID | None
    session_id: SessionID | None
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    estimated: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UsageGroup:
    group: str
    records: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class AuditEvent:
    id: UUID
    action: AuditAction
    target_kind: str
    target_id: UUID | None
    user_id: UserID | None
    detail: Mapping[str, Any]
    created_at: datetime
