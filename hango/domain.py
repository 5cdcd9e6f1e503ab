"""The nouns of the product: frozen records, typed ids, closed sets. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

import msgspec

from hango.messages import ToolSpec

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


class Builtin(StrEnum):
    """The built-in contributors an agent may switch on, in the order of their blocks."""

    TODO = "todo"
    FILESYSTEM = "filesystem"
    SUBAGENT = "subagent"
    MEMORY = "memory"
    SKILLS = "skills"


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


class SystemBlock(msgspec.Struct, frozen=True):
    """One named block of an agent's system prompt: the part `system:<name>`."""

    name: str
    text: str


class Compaction(msgspec.Struct, frozen=True):
    """When a history is summarized (tokens of the filtered request) and how many messages stay as they are."""

    trigger_tokens: int | None = None  # None: 85 % of the model's window
    keep_messages: int = 20


class Cache(msgspec.Struct, frozen=True):
    enabled: bool = True
    ttl: str = "5m"  # or "1h"


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """All that a request takes from an agent: immutable, one per version."""

    model: str  # "<provider>/<model>"
    system: tuple[SystemBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    builtin: frozenset[Builtin] = frozenset(Builtin)
    memory: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] | None = None  # None: all of them
    max_output_tokens: int = 4096
    params: Mapping[str, Any] = field(default_factory=dict)
    compaction: Compaction = Compaction()
    cache: Cache = Cache()

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def model_name(self) -> str:
        """The model without its provider's prefix."""
        return self.model.partition("/")[2]


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


class BlockDigest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What rules and totals need of one block, without its body.

    `id` is the id of a call or the id a result answers; `name` the tool's; `signer` the model that signed a
    thinking block ("" the agent's own, None nobody); `blank` a text of nothing but white space, or a picture or
    document of nothing; `odd` a call whose input is no JSON object.
    """

    type: str
    tokens: int
    id: str | None = None
    name: str | None = None
    signer: str | None = None
    blank: bool = False
    odd: bool = False


class Form(StrEnum):
    """How much of a message the rules must look at. Most messages are of the first three forms."""

    PLAIN = "plain"  # text alone: nothing to do
    CALLS = "calls"  # an assistant's text and client calls with sound ids
    RESULTS = "results"  # a user's results, then text
    OTHER = "other"  # anything else: looked at block by block


class MessageDigest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept beside a message's body, computed once, at the write.

    `ids` are the calls' or results' ids in order of the alphabet, one a line, for the forms that have them. `sha256`
    covers role, model and the body's text. `chars` and `preview` are of the message shown as text (200 code points).
    """

    seq: int
    role: str
    model: str | None
    chars: int
    tokens: int  # sum of the blocks
    preview: str
    sha256: str
    form: str
    ids: str
    raw_blocks: msgspec.Raw  # JSON text of the block digests: read only where a rule looks at them

    @property
    def plain(self) -> bool:
        return self.form == "plain"

    @property
    def blocks(self) -> tuple[BlockDigest, ...]:
        """The digests of the blocks, read anew at each call."""
        return read_block_digests(self.raw_blocks)


read_block_digests = msgspec.json.Decoder(tuple[BlockDigest, ...]).decode


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
