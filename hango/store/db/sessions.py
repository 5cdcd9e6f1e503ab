"""Made by sqlc from sessions.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['create_session', 'create_summary', 'delete_session', 'get_session', 'get_session_end', 'list_sessions', 'undo_summary', 'use_summary']


GET_SESSION = """\
select
  s.id, s.agent_id, s.title, s.tokens, s.last_seq, s.created_by, s.created_at,
  m.id as summary_id, m.text as summary_text, m.through_seq as summary_through_seq,
  r.id as run_id, r.status as run_status, r.created_at as run_created_at
from sessions s
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id
left join runs r on r.tenant_id = s.tenant_id and r.id = s.last_run_id
where s.tenant_id = %(tenant_id)s and s.id = %(id)s and s.deleted_at is null and s.parent_run_id is null
"""


@dataclass(frozen=True, slots=True)
class GetSessionRow:
    id: UUID
    agent_id: UUID
    title: str
    tokens: int
    last_seq: int
    created_by: UUID
    created_at: datetime
    summary_id: UUID | None
    summary_text: str | None
    summary_through_seq: int | None
    run_id: UUID | None
    run_status: str | None
    run_created_at: datetime | None


async def get_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetSessionRow | None:
    """A session that is not deleted and no subagent's, with its summary and its last run."""
    cursor = conn.cursor(row_factory=args_row(GetSessionRow))
    await cursor.execute(GET_SESSION, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_SESSIONS = """\
select
  s.id, s.agent_id, s.title, s.tokens, s.last_seq, s.created_by, s.created_at,
  m.id as summary_id, m.text as summary_text, m.through_seq as summary_through_seq,
  r.id as run_id, r.status as run_status, r.created_at as run_created_at
from sessions s
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id
left join runs r on r.tenant_id = s.tenant_id and r.id = s.last_run_id
where s.tenant_id = %(tenant_id)s
  and s.deleted_at is null
  and s.parent_run_id is null
  and (%(see_all)s::boolean or s.created_by = %(user_id)s)
  and (%(agent_id)s::uuid is null or s.agent_id = %(agent_id)s::uuid)
  and (%(q)s::text is null or position(lower(%(q)s::text) in lower(s.title)) > 0)
  and (%(before)s::uuid is null or s.id < %(before)s::uuid)
order by s.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListSessionsRow:
    id: UUID
    agent_id: UUID
    title: str
    tokens: int
    last_seq: int
    created_by: UUID
    created_at: datetime
    summary_id: UUID | None
    summary_text: str | None
    summary_through_seq: int | None
    run_id: UUID | None
    run_status: str | None
    run_created_at: datetime | None


async def list_sessions(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    see_all: bool,
    user_id: UUID,
    agent_id: UUID | None,
    q: str | None,
    before: UUID | None,
    most: int,
) -> list[ListSessionsRow]:
    """Sessions that the caller may read, by agent and by a part of the title, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListSessionsRow))
    await cursor.execute(LIST_SESSIONS, {"tenant_id": tenant_id, "see_all": see_all, "user_id": user_id, "agent_id": agent_id, "q": q, "before": before, "most": most})
    return await cursor.fetchall()


CREATE_SESSION = """\
insert into sessions (tenant_id, id, agent_id, title, created_by)
select a.tenant_id, %(id)s, a.id, %(title)s, %(user_id)s
from agents a
where a.tenant_id = %(tenant_id)s and a.id = %(agent_id)s and a.deleted_at is null
"""


async def create_session(
    conn: AsyncConnection[Any],
    *,
    id: UUID,
    title: str,
    user_id: UUID,
    tenant_id: UUID,
    agent_id: UUID,
) -> int:
    """An empty session of an agent that is not deleted; no row when there is no such agent."""
    cursor = conn.cursor()
    await cursor.execute(CREATE_SESSION, {"id": id, "title": title, "user_id": user_id, "tenant_id": tenant_id, "agent_id": agent_id})
    return cursor.rowcount


DELETE_SESSION = """\
update sessions
set deleted_at = now()
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
"""


async def delete_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> int:
    """Hide the session; messages and usage stay."""
    cursor = conn.cursor()
    await cursor.execute(DELETE_SESSION, {"tenant_id": tenant_id, "id": id})
    return cursor.rowcount


CREATE_SUMMARY = """\
insert into summaries (tenant_id, id, session_id, text, through_seq, tokens, previous_id)
select s.tenant_id, %(id)s, s.id, %(text)s, %(through_seq)s, %(tokens)s, s.summary_id
from sessions s
where s.tenant_id = %(tenant_id)s
  and s.id = %(session_id)s
  and s.deleted_at is null
  and %(through_seq)s between 1 and s.last_seq
"""


async def create_summary(
    conn: AsyncConnection[Any],
    *,
    id: UUID,
    text: str,
    through_seq: int,
    tokens: int,
    tenant_id: UUID,
    session_id: UUID,
) -> int:
    """A summary of the history up to a message; no row when the session has no such message."""
    cursor = conn.cursor()
    await cursor.execute(CREATE_SUMMARY, {"id": id, "text": text, "through_seq": through_seq, "tokens": tokens, "tenant_id": tenant_id, "session_id": session_id})
    return cursor.rowcount


USE_SUMMARY = """\
update sessions
set summary_id = %(summary_id)s
where tenant_id = %(tenant_id)s and id = %(session_id)s
"""


async def use_summary(
    conn: AsyncConnection[Any],
    *,
    summary_id: UUID | None,
    tenant_id: UUID,
    session_id: UUID,
) -> None:
    """Put a summary in force."""
    cursor = conn.cursor()
    await cursor.execute(USE_SUMMARY, {"summary_id": summary_id, "tenant_id": tenant_id, "session_id": session_id})


GET_SESSION_END = """\
select last_seq
from sessions
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
"""


async def get_session_end(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> int | None:
    """The last seq of a session that is not deleted, of a subagent's too."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(GET_SESSION_END, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


UNDO_SUMMARY = """\
update sessions s
set summary_id = m.previous_id
from summaries m
where s.tenant_id = %(tenant_id)s
  and s.id = %(session_id)s
  and s.deleted_at is null
  and m.tenant_id = s.tenant_id
  and m.id = s.summary_id
returning s.id
"""


async def undo_summary(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
) -> UUID | None:
    """Put the summary in force again that was before the present one, or none; no row when there is none to take back."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(UNDO_SUMMARY, {"tenant_id": tenant_id, "session_id": session_id})
    return await cursor.fetchone()

