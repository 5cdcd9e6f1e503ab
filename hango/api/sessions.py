"""Sessions: list, create (with a history), show, delete."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from pydantic import Field

from hango.api import session_messages
from hango.api.authz import is_admin, may_read_agent
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import Body, IdText, Moment, SearchQuery, parse_id
from hango.api.listing import Listing
from hango.api.session_messages import MessageIn
from hango.chain import estimator
from hango.domain import AgentID, AuditAction, RunStatus, Session
from hango.errors import Invalid, NotFound, Reason
from hango.store import agents, audit, messages, runs, sessions, tries
from hango.store.connection import Scope
from hango.tries import TryStatus
from hango.workers import counting

TITLE_CHARS = 500


class SummaryIn(Body):
    """The compaction summary: messages up to `through_seq` are no longer sent."""

    text: Annotated[str, Field(min_length=1)]
    through_seq: Annotated[int, Field(ge=1)]


class SessionIn(Body):
    """A new session of an agent, with the history it has so far."""

    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("messages", "*", "content"),)

    agent_id: IdText
    title: Annotated[str, Field(max_length=TITLE_CHARS)] = ""
    messages: Annotated[list[MessageIn], Field(default_factory=list)]
    summary: SummaryIn | None = None


class SessionsQuery(SearchQuery):
    agent_id: IdText | None = None


class SummaryOut(msgspec.Struct, frozen=True):
    text: str
    through_seq: int


class LastRunOut(msgspec.Struct, frozen=True):
    id: UUID
    status: RunStatus
    created_at: Moment


class SessionOut(msgspec.Struct, frozen=True):
    """`messages` and `tokens` count the persisted history."""

    id: UUID
    agent_id: UUID
    title: str
    messages: int
    tokens: int
    summary: SummaryOut | None
    last_run: LastRunOut | None
    created_by: UUID
    created_at: Moment

    @classmethod
    def of(cls, session: Session) -> SessionOut:
        summary, run = session.summary, session.last_run
        return cls(
            id=session.id,
            agent_id=session.agent_id,
            title=session.title,
            messages=session.messages,
            tokens=session.tokens,
            summary=SummaryOut(summary.text, summary.through_seq) if summary else None,
            last_run=LastRunOut(run.id, run.status, run.created_at) if run else None,
            created_by=session.created_by,
            created_at=session.created_at,
        )


async def list_sessions(call: Call[None, None, SessionsQuery]) -> Listing[SessionOut]:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await sessions.list_all(
            scope,
            viewer_is_admin=is_admin(call.principal),
            agent_id=AgentID(parse_id(query.agent_id)) if query.agent_id else None,
            q=query.q,
            limit=query.limit,
            cursor=query.cursor,
        )
    return Listing([SessionOut.of(session) for session in page.data], page.next_cursor)


async def create_session(call: Call[None, SessionIn]) -> Reply[SessionOut]:
    wanted = call.body
    agent_id = AgentID(parse_id(wanted.agent_id))
    await _check_agent(call, agent_id)
    history = await session_messages.read_messages(wanted.messages)
    summary_tokens = await asyncio.to_thread(_check_summary, wanted)
    async with call.deps.store.begin(call.principal) as scope:
        session = await sessions.create(scope, agent_id, wanted.title)
        await messages.append(scope, session.id, history)
        if wanted.summary:
            text, through_seq = wanted.summary.text, wanted.summary.through_seq
            await sessions.set_summary(scope, session.id, text, through_seq, summary_tokens)
        await audit.record(scope, AuditAction.SESSION_CREATE, "session", session.id, {"messages": len(history)})
        session = await _again(scope, session)
    return created(f"/v1/sessions/{session.id}", SessionOut.of(session))


async def show_session(call: Call[Session, None]) -> SessionOut:
    return SessionOut.of(call.target)


async def delete_session(call: Call[Session, None]) -> None:
    async with call.deps.store.begin(call.principal) as scope:
        if not await sessions.delete(scope, call.target.id):
            raise NotFound
        cancelled = await tries.cancel(scope, session_id=call.target.id)
        cancelled_runs = await runs.cancel(scope, session_id=call.target.id)
        await audit.record(scope, AuditAction.SESSION_DELETE, "session", call.target.id, {})
    counting.ended(TryStatus.CANCELLED, cancelled)
    counting.run_ended(RunStatus.CANCELLED, cancelled_runs)


async def _check_agent(call: Call[None, SessionIn], agent_id: AgentID) -> None:
    """Raises NotFound for an agent that is not there or that the caller may not read."""
    async with call.deps.store.read(call.principal) as scope:
        agent = await agents.get(scope, agent_id)
    if agent is None or not may_read_agent(call.principal, agent):
        raise NotFound


def _check_summary(wanted: SessionIn) -> int:
    """Tokens of the summary's text. Raises Invalid when it covers messages that are not there, or says nothing."""
    if wanted.summary is None:
        return 0
    if wanted.summary.through_seq > len(wanted.messages):
        message = f"A summary goes through one of the {len(wanted.messages)} messages that come with it."
        raise Invalid.because(Reason.BAD_FIELD, message, pointer="/summary/through_seq")
    if not wanted.summary.text.strip():
        raise Invalid.because(Reason.EMPTY_TEXT, "A summary is not blank.", pointer="/summary/text")
    return estimator.count([wanted.summary.text])[0]


async def _again(scope: Scope, session: Session) -> Session:
    found = await sessions.get(scope, session.id)
    if found is None:
        raise NotFound
    return found
