"""Runs to test the store and the worker with: accepted as a POST does, claimed, and what PostgreSQL says of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID, uuid4

from psycopg import sql

from hango.agent_definition import AgentDefinition
from hango.chain.deps import Deps
from hango.chain.digest import digest
from hango.domain import Agent, Principal, RunID, Session, SessionID
from hango.messages import MessageRole, content_json, text_block
from hango.runs import OPEN, ClaimedRun, Run, RunCall
from hango.store import files, messages, run_calls, runs, sessions
from hango.store.connection import Store
from hango.store.messages import NewMessage
from tests.picking import MODEL, MOST_TOKENS, POLL_SECONDS, SECONDS
from tests.providers_server import Answer, chat, says
from tests.rows import make_agent, make_run, make_session

RUN_LEASE_OVER = "lease_until = clock_timestamp() - interval '1 s'"
RUN_QUEUE_OVER = "queue_expires_at = clock_timestamp() - interval '1 s'"
DEFINITION = AgentDefinition(
    model=MODEL,
    max_output_tokens=MOST_TOKENS,
)


def calling(tool: str = "read_file", **arguments: Any) -> Answer:
    """An answer that calls one tool."""
    text = json.dumps(arguments or {"path": "/notes.md"})
    call = {"id": "a", "type": "function", "function": {"name": tool, "arguments": text}}
    return says(chat(None, finish_reason="tool_calls", tool_calls=[call]))


@dataclass(frozen=True, slots=True)
class RunDesk:
    """A member with an agent and a session, who starts runs on it."""

    deps: Deps
    principal: Principal
    agent: Agent
    session: Session

    @property
    def session_id(self) -> SessionID:
        return self.session.id

    async def start(self, text: str | None = "And the nuts?", **limits: float) -> RunID:
        """A run with a message of its own, as a POST accepts it."""
        async with self.deps.store.begin(self.principal) as scope:
            run_id = await make_run(scope, self.session, model=self.agent.definition.model, **limits)
            if text is not None:
                blocks = (text_block(text),)
                said = NewMessage(
                    MessageRole.USER, content_json(blocks), digest(MessageRole.USER, blocks, None), run_id=run_id
                )
                await messages.append(scope, self.session_id, [said])
        return run_id

    async def append(self, *content: Sequence[Any], role: MessageRole = MessageRole.USER) -> None:
        """Messages of these blocks at the end of the session."""
        new = [NewMessage(role, content_json(tuple(one)), digest(role, tuple(one), None)) for one in content]
        async with self.deps.store.begin(self.principal) as scope:
            await messages.append(scope, self.session_id, new)

    async def look(self, run_id: UUID) -> Run:
        async with self.deps.store.read(self.principal) as scope:
            found = await runs.get(scope, run_id)
        assert found is not None
        return found

    async def until(self, run_id: UUID) -> Run:
        """The run, once it has ended."""
        async with asyncio.timeout(SECONDS):
            while True:
                if (found := await self.look(run_id)).status not in OPEN:
                    return found
                await asyncio.sleep(POLL_SECONDS)

    async def calls(self, run_id: UUID) -> list[RunCall]:
        async with self.deps.store.read(self.principal) as scope:
            return await run_calls.list_all(scope, run_id)

    async def cancel(self, run_id: UUID) -> None:
        async with self.deps.store.begin(self.principal) as scope:
            await runs.cancel(scope, run_id=run_id)

    async def delete_session(self) -> None:
        async with self.deps.store.begin(self.principal) as scope:
            await sessions.delete(scope, self.session_id)
            await runs.cancel(scope, session_id=self.session_id)

    async def write(self, path: str, text: str) -> None:
        async with self.deps.store.begin(self.principal) as scope:
            await files.write(scope, self.agent.id, path, text)

    async def read(self, path: str) -> str | None:
        async with self.deps.store.read(self.principal) as scope:
            found = await files.read(scope, self.agent.id, path)
        return None if found is None else found.content

    async def history(self) -> list[tuple[str, str]]:
        """Role and content of every message, in order."""
        async with self.deps.store.read(self.principal) as scope:
            page = await messages.page(scope, self.session_id, 0, 1000)
        return [(one.role, one.content) for one in page]


async def make_run_desk(
    deps: Deps, principal: Principal, texts: Sequence[str] = ("Where are the bolts?", "In drawer 3."), **fields: Any
) -> RunDesk:
    """`fields` are those of the agent's definition."""
    async with deps.store.begin(principal) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, **fields))
        for path, text in FILES.items():
            await files.write(scope, agent.id, path, text)
        session = await make_session(scope, agent, texts)
    return RunDesk(deps, principal, agent, session)


FILES: Mapping[str, str] = {"/notes.md": "Forty bolts."}


async def take_run(store: Store, principal: Principal, run_id: RunID) -> ClaimedRun:
    """Claim this run and no other."""
    async with store.begin(principal) as scope:
        cursor = await scope.conn.execute(
            "update runs set status = 'running', attempt = attempt + 1, lease_owner = %s,"
            " lease_until = clock_timestamp() + interval '30 s', started_at = coalesce(started_at, clock_timestamp())"
            " where tenant_id = %s and id = %s and status = 'queued' returning attempt, timeout_ms, started_at",
            (uuid4(), scope.tenant_id, run_id),
        )
        ((attempt, timeout_ms, started_at),) = await cursor.fetchall()
    assert isinstance(started_at, datetime)
    return ClaimedRun(principal, run_id, attempt, timeout_ms / 1000, started_at, None)


async def alter_run(store: Store, principal: Principal, what: LiteralString, run_id: UUID) -> None:
    """Put time forward: change columns of this run."""
    statement = sql.SQL("update runs set {} where tenant_id = %s and id = %s").format(sql.SQL(what))
    async with store.begin(principal) as scope:
        await scope.conn.execute(statement, (scope.tenant_id, run_id))
