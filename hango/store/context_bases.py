"""Bases: what a request is made of, by id. Whatever a base names never changes, so it can be assembled again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from hango.domain import AgentID, AgentVersionID, BaseID, FileVersionID, SavedOverride, SessionID, Summary, SummaryID
from hango.store import context_overrides, override_sets, token_factors
from hango.store.connection import Scope, one
from hango.store.db import context_bases as rows
from hango.store.ids import new_id
from hango.store.sessions import summary_of
from hango.store.token_factors import Factors

MAX_SKILLS = 256

# A file in the order of BaseFile's fields.
_File = tuple[UUID, str, int, int, datetime]
_files = msgspec.json.Decoder(list[_File])


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One version of a file, without its text."""

    version_id: FileVersionID
    path: str
    version: int
    chars: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CurrentBase:
    """All that a request of a session is made of but its messages: as it is now, or as it was when it was kept.

    `files`, by path, are those that the agent's version needs: its memory, and its skills, of which one more than
    MAX_SKILLS is there when there are more. `overrides` are the saved ones: the agent's in the order they were given,
    then the session's, and `override_text` their JSON text; `override_key` is equal for equal ones, "" for none.
    `factors` are what was learnt of models until now, also of a base that was kept.
    `skill_version_id` is the skill that a run has loaded last.
    """

    session_id: SessionID
    agent_id: AgentID
    agent_version_id: AgentVersionID
    through_seq: int
    summary: Summary | None
    files: tuple[BaseFile, ...]
    overrides: tuple[SavedOverride, ...] = ()
    override_key: str = ""
    override_text: str = "[]"
    skill_version_id: FileVersionID | None = None
    factors: Factors = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentBase:
    """What every request of an agent is made of, whatever the session. The fields are those of CurrentBase."""

    agent_id: AgentID
    agent_version_id: AgentVersionID
    files: tuple[BaseFile, ...]
    overrides: tuple[SavedOverride, ...] = ()
    override_key: str = ""
    factors: Factors = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextBase:
    """A base as it is kept."""

    id: BaseID
    session_id: SessionID
    agent_version_id: AgentVersionID
    through_seq: int
    summary_id: SummaryID | None
    override_set_id: UUID | None
    file_version_ids: tuple[FileVersionID, ...]
    skill_version_id: FileVersionID | None
    created_at: datetime


async def current(scope: Scope, session_id: UUID) -> CurrentBase | None:
    """What the next request of a session is made of, read in one statement. None: no such session."""
    row = await _current(scope, session_id=session_id)
    if row is None:
        return None
    overrides, override_key = context_overrides.from_json(row.overrides)
    return CurrentBase(
        session_id=SessionID(session_id),
        agent_id=AgentID(row.agent_id),
        agent_version_id=AgentVersionID(row.agent_version_id),
        through_seq=row.last_seq,
        summary=summary_of(row.summary_id, row.summary_text, row.summary_through_seq),
        files=_read_files(row.files),
        overrides=overrides,
        override_key=override_key,
        override_text=row.overrides,
        factors=token_factors.from_json(row.factors),
    )


async def current_agent(scope: Scope, agent_id: UUID) -> AgentBase | None:
    """What the next request of any session of an agent has from the agent. None: no such agent."""
    row = await _current(scope, agent_id=agent_id)
    if row is None:
        return None
    overrides, override_key = context_overrides.from_json(row.overrides)
    return AgentBase(
        agent_id=AgentID(row.agent_id),
        agent_version_id=AgentVersionID(row.agent_version_id),
        files=_read_files(row.files),
        overrides=overrides,
        override_key=override_key,
        factors=token_factors.from_json(row.factors),
    )


async def find_or_create(scope: Scope, base: CurrentBase) -> BaseID:
    """Keep a base with its saved overrides; equal bases of a tenant are one row."""
    override_set_id = await override_sets.find_or_create(scope, base.override_text) if base.overrides else None
    summary_id = base.summary.id if base.summary else None
    file_ids = [file.version_id for file in base.files]
    hash = _hash(base, summary_id, override_set_id, file_ids)
    kept = await rows.keep_base(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=new_id(),
        session_id=base.session_id,
        agent_version_id=base.agent_version_id,
        through_seq=base.through_seq,
        summary_id=summary_id,
        override_set_id=override_set_id,
        file_version_ids=file_ids,
        skill_version_id=base.skill_version_id,
        hash=hash,
    )
    # The other's row is committed: the statement above waited for it.
    return BaseID(kept or one(await rows.find_base(scope.conn, tenant_id=scope.tenant_id, hash=hash)))


async def get(scope: Scope, base_id: UUID) -> ContextBase | None:
    row = await rows.get_base(scope.conn, tenant_id=scope.tenant_id, id=base_id)
    if row is None:
        return None
    return ContextBase(
        id=BaseID(row.id),
        session_id=SessionID(row.session_id),
        agent_version_id=AgentVersionID(row.agent_version_id),
        through_seq=row.through_seq,
        summary_id=None if row.summary_id is None else SummaryID(row.summary_id),
        override_set_id=row.override_set_id,
        file_version_ids=tuple(FileVersionID(id) for id in row.file_version_ids),
        skill_version_id=None if row.skill_version_id is None else FileVersionID(row.skill_version_id),
        created_at=row.created_at,
    )


async def load(scope: Scope, base: ContextBase) -> CurrentBase | None:
    """What a kept base is made of, whatever was changed since. None when the session is deleted."""
    row = await rows.load_base(scope.conn, tenant_id=scope.tenant_id, id=base.id)
    if row is None:
        return None
    overrides, override_key = context_overrides.from_json(row.overrides)
    return CurrentBase(
        session_id=base.session_id,
        agent_id=AgentID(row.agent_id),
        agent_version_id=base.agent_version_id,
        through_seq=base.through_seq,
        summary=summary_of(base.summary_id, row.summary_text, row.summary_through_seq),
        files=_read_files(row.files),
        overrides=overrides,
        override_key=override_key,
        override_text=row.overrides,
        skill_version_id=base.skill_version_id,
        factors=token_factors.from_json(row.factors),
    )


def with_overrides(base: CurrentBase, overrides: Sequence[SavedOverride]) -> CurrentBase:
    """The base with some of its overrides."""
    text = context_overrides.to_json(overrides)
    kept, key = context_overrides.from_json(text)
    return replace(base, overrides=kept, override_key=key, override_text=text)


async def _current(
    scope: Scope, *, session_id: UUID | None = None, agent_id: UUID | None = None
) -> rows.CurrentBaseRow | None:
    return await rows.current_base(
        scope.conn,
        tenant_id=scope.tenant_id,
        session_id=session_id,
        agent_id=agent_id,
        most_skills=MAX_SKILLS + 1,
    )


def _read_files(text: str) -> tuple[BaseFile, ...]:
    return tuple(BaseFile(FileVersionID(file[0]), *file[1:]) for file in _files.decode(text))


def _hash(base: CurrentBase, summary_id: UUID | None, override_set_id: UUID | None, file_ids: Sequence[UUID]) -> bytes:
    skill = () if base.skill_version_id is None else ("skill", base.skill_version_id)
    named = (base.session_id, base.agent_version_id, base.through_seq, summary_id, override_set_id, *file_ids, *skill)
    return sha256(" ".join(map(str, named)).encode()).digest()
