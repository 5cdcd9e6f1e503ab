"""Made by sqlc from agents.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['create_agent', 'create_agent_version', 'delete_agent', 'get_agent', 'get_definition', 'get_version_number', 'list_agents', 'lock_agent', 'update_agent']


GET_AGENT = """\
select
  a.id, a.name, a.shared, a.created_by, a.created_at, a.updated_at, a.current_version_id as version_id, v.definition
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = %(tenant_id)s and a.id = %(id)s and a.deleted_at is null
"""


@dataclass(frozen=True, slots=True)
class GetAgentRow:
    id: UUID
    name: str
    shared: bool
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    version_id: UUID
    definition: str


async def get_agent(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetAgentRow | None:
    """An agent that is not deleted, with its current definition."""
    cursor = conn.cursor(row_factory=args_row(GetAgentRow))
    await cursor.execute(GET_AGENT, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_AGENTS = """\
select
  a.id, a.name, a.shared, a.created_by, a.created_at, a.updated_at, a.current_version_id as version_id, v.definition
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = %(tenant_id)s
  and a.deleted_at is null
  and (%(see_all)s::boolean or a.shared or a.created_by = %(user_id)s)
  and (%(q)s::text is null or position(lower(%(q)s::text) in lower(a.name)) > 0)
  and (%(before)s::uuid is null or a.id < %(before)s::uuid)
order by a.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListAgentsRow:
    id: UUID
    name: str
    shared: bool
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    version_id: UUID
    definition: str


async def list_agents(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    see_all: bool,
    user_id: UUID,
    q: str | None,
    before: UUID | None,
    most: int,
) -> list[ListAgentsRow]:
    """Agents that the caller may read, by a part of the name, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListAgentsRow))
    await cursor.execute(LIST_AGENTS, {"tenant_id": tenant_id, "see_all": see_all, "user_id": user_id, "q": q, "before": before, "most": most})
    return await cursor.fetchall()


CREATE_AGENT = """\
insert into agents (tenant_id, id, name, shared, model, current_version_id, created_by)
values (%(tenant_id)s, %(id)s, %(name)s, %(shared)s, %(model)s, %(version_id)s, %(user_id)s)
"""


async def create_agent(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    name: str,
    shared: bool,
    model: str,
    version_id: UUID,
    user_id: UUID,
) -> None:
    """The agent; its version follows in the same transaction."""
    cursor = conn.cursor()
    await cursor.execute(CREATE_AGENT, {"tenant_id": tenant_id, "id": id, "name": name, "shared": shared, "model": model, "version_id": version_id, "user_id": user_id})


CREATE_AGENT_VERSION = """\
insert into agent_versions (tenant_id, id, agent_id, number, definition, memory, builtin, created_by)
values (%(tenant_id)s, %(id)s, %(agent_id)s, %(number)s, %(definition)s, %(memory)s::text[], %(builtin)s::text[], %(user_id)s)
"""


async def create_agent_version(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    agent_id: UUID,
    number: int,
    definition: str,
    memory: Sequence[str | None],
    builtin: Sequence[str | None],
    user_id: UUID,
) -> None:
    """A version, for good."""
    cursor = conn.cursor()
    await cursor.execute(CREATE_AGENT_VERSION, {"tenant_id": tenant_id, "id": id, "agent_id": agent_id, "number": number, "definition": definition, "memory": list(memory), "builtin": list(builtin), "user_id": user_id})


LOCK_AGENT = """\
select id
from agents
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
for update
"""


async def lock_agent(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> UUID | None:
    """Hold an agent, so that versions are numbered in turn. Its version is read afterwards, by a statement of its own: one that joins would, after waiting, look for the newer version among the rows it saw before."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(LOCK_AGENT, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


GET_VERSION_NUMBER = """\
select v.number
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = %(tenant_id)s and a.id = %(id)s
"""


async def get_version_number(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> int | None:
    """The number of the version in force."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(GET_VERSION_NUMBER, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


UPDATE_AGENT = """\
update agents
set name = %(name)s, shared = %(shared)s, model = %(model)s, current_version_id = %(version_id)s, updated_at = now()
where tenant_id = %(tenant_id)s and id = %(id)s
"""


async def update_agent(
    conn: AsyncConnection[Any],
    *,
    name: str,
    shared: bool,
    model: str,
    version_id: UUID,
    tenant_id: UUID,
    id: UUID,
) -> None:
    """Name, sharing and the version in force."""
    cursor = conn.cursor()
    await cursor.execute(UPDATE_AGENT, {"name": name, "shared": shared, "model": model, "version_id": version_id, "tenant_id": tenant_id, "id": id})


DELETE_AGENT = """\
update agents
set deleted_at = now()
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
"""


async def delete_agent(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> int:
    """Hide the agent; versions, sessions and usage stay."""
    cursor = conn.cursor()
    await cursor.execute(DELETE_AGENT, {"tenant_id": tenant_id, "id": id})
    return cursor.rowcount


GET_DEFINITION = """\
select definition
from agent_versions
where tenant_id = %(tenant_id)s and id = %(version_id)s
"""


async def get_definition(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    version_id: UUID,
) -> str | None:
    """A version's definition, also of a deleted agent."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(GET_DEFINITION, {"tenant_id": tenant_id, "version_id": version_id})
    return await cursor.fetchone()

