"""Sessions and their compaction summary."""

from __future__ import annotations

from uuid import UUID

from hango.domain import AgentID, LastRun, RunID, RunStatus, Session, SessionID, Summary, SummaryID, UserID
from hango.errors import Invalid, NotFound, Reason
from hango.store.connection import Scope
from hango.store.db import sessions as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page


async def get(scope: Scope, session_id: UUID) -> Session | None:
    """A session that is not deleted."""
    row = await rows.get_session(scope.conn, tenant_id=scope.tenant_id, id=session_id)
    return _session(row) if row else None


async def end_of(scope: Scope, session_id: UUID) -> int:
    """The last seq of a session, of a subagent's too. Raises NotFound."""
    found = await rows.get_session_end(scope.conn, tenant_id=scope.tenant_id, id=session_id)
    if found is None:
        raise NotFound
    return found


async def list_all(
    scope: Scope,
    *,
    viewer_is_admin: bool,
    agent_id: UUID | None = None,
    q: str | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page[Session]:
    """The own ones, for an admin all; `q` is a part of the title; the newest first."""
    found = await rows.list_sessions(
        scope.conn,
        tenant_id=scope.tenant_id,
        see_all=viewer_is_admin,
        user_id=scope.user_id,
        agent_id=agent_id,
        q=q,
        before=id_of(cursor),
        most=limit + 1,
    )
    return page(found, limit, _session, lambda session: session.id)


async def create(scope: Scope, agent_id: UUID, title: str) -> Session:
    """An empty session of the caller. Raises NotFound when there is no such agent."""
    session_id = new_id()
    made = await rows.create_session(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=session_id,
        agent_id=agent_id,
        title=title,
        user_id=scope.user_id,
    )
    found = await get(scope, session_id) if made else None
    if found is None:
        raise NotFound
    return found


async def delete(scope: Scope, session_id: UUID) -> bool:
    """Hide it; messages and usage stay. False when there is no such session."""
    return await rows.delete_session(scope.conn, tenant_id=scope.tenant_id, id=session_id) == 1


async def set_summary(scope: Scope, session_id: UUID, text: str, through_seq: int, tokens: int) -> Summary:
    """Put a new summary in force: messages up to `through_seq` are no longer sent. The last one stays as a row.

    Raises Invalid (`bad_field`) when the session has no such message.
    """
    summary_id = new_id()
    made = await rows.create_summary(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=summary_id,
        session_id=session_id,
        text=text,
        through_seq=through_seq,
        tokens=tokens,
    )
    if not made:
        message = f"A summary ends with a message of the session; there is no message {through_seq}."
        raise Invalid.because(Reason.BAD_FIELD, message, pointer="/summary/through_seq")
    await rows.use_summary(scope.conn, tenant_id=scope.tenant_id, session_id=session_id, summary_id=summary_id)
    return Summary(SummaryID(summary_id), text, through_seq)


async def undo_summary(scope: Scope, session_id: UUID) -> bool:
    """Take the last summary back: the one before it is in force again, or none. False when there is none."""
    return await rows.undo_summary(scope.conn, tenant_id=scope.tenant_id, session_id=session_id) is not None


def summary_of(summary_id: UUID | None, text: str | None, through_seq: int | None) -> Summary | None:
    """The summary out of three columns of an outer join."""
    if summary_id is None or text is None or through_seq is None:
        return None
    return Summary(SummaryID(summary_id), text, through_seq)


def _session(row: rows.GetSessionRow | rows.ListSessionsRow) -> Session:
    return Session(
        id=SessionID(row.id),
        agent_id=AgentID(row.agent_id),
        title=row.title,
        messages=row.last_seq,  # seqs have no gaps
        tokens=row.tokens,
        last_seq=row.last_seq,
        summary=summary_of(row.summary_id, row.summary_text, row.summary_through_seq),
        last_run=_last_run(row),
        created_by=UserID(row.created_by),
        created_at=row.created_at,
    )


def _last_run(row: rows.GetSessionRow | rows.ListSessionsRow) -> LastRun | None:
    if row.run_id is None or row.run_status is None or row.run_created_at is None:
        return None
    return LastRun(RunID(row.run_id), RunStatus(row.run_status), row.run_created_at)
