"""Made by sqlc from context_overrides.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_overrides', 'count_overrides', 'delete_overrides', 'hold_agent', 'hold_session', 'list_overrides']


HOLD_AGENT = """\
select id
from agents
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
for no key update
"""


async def hold_agent(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> UUID | None:
    """Hold an agent until the transaction ends, so that its sets come one after another. What is read afterwards, by a statement of its own, is what the one before wrote. Keys to the agent may still be made."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(HOLD_AGENT, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


HOLD_SESSION = """\
select id
from sessions
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
for no key update
"""


async def hold_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> UUID | None:
    """The same of a session; an append waits too, so that a set is checked against the history that it is saved with."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(HOLD_SESSION, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_OVERRIDES = """\
select part, action, replacement, against, created_by, created_at
from context_overrides
where tenant_id = %(tenant_id)s
  and (agent_id = %(agent_id)s::uuid or session_id = %(session_id)s::uuid)
order by position
"""


@dataclass(frozen=True, slots=True)
class ListOverridesRow:
    part: str
    action: str
    replacement: str | None
    against: str
    created_by: UUID
    created_at: datetime


async def list_overrides(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID | None,
    session_id: UUID | None,
) -> list[ListOverridesRow]:
    """The set of an agent or of a session, in the order it was given."""
    cursor = conn.cursor(row_factory=args_row(ListOverridesRow))
    await cursor.execute(LIST_OVERRIDES, {"tenant_id": tenant_id, "agent_id": agent_id, "session_id": session_id})
    return await cursor.fetchall()


DELETE_OVERRIDES = """\
delete from context_overrides
where tenant_id = %(tenant_id)s
  and (agent_id = %(agent_id)s::uuid or session_id = %(session_id)s::uuid)
"""


async def delete_overrides(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID | None,
    session_id: UUID | None,
) -> None:
    """Take the set of an agent or of a session away."""
    cursor = conn.cursor()
    await cursor.execute(DELETE_OVERRIDES, {"tenant_id": tenant_id, "agent_id": agent_id, "session_id": session_id})


ADD_OVERRIDES = """\
insert into context_overrides (
  tenant_id, id, agent_id, session_id, position, part, action, replacement, against, created_by
)
select
  %(tenant_id)s, n.id, %(agent_id)s::uuid, %(session_id)s::uuid, n.position, n.part, n.action,
  n.replacement, n.against, %(user_id)s
from (
  select
    unnest(%(ids)s::uuid[]) as id,
    unnest(%(positions)s::integer[]) as position,
    unnest(%(parts)s::text[]) as part,
    unnest(%(actions)s::text[]) as action,
    unnest(%(replacements)s::text[]) as replacement,
    unnest(%(againsts)s::text[]) as against
) n
"""


async def add_overrides(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID | None,
    session_id: UUID | None,
    user_id: UUID,
    ids: Sequence[UUID | None],
    positions: Sequence[int | None],
    parts: Sequence[str | None],
    actions: Sequence[str | None],
    replacements: Sequence[str | None],
    againsts: Sequence[str | None],
) -> None:
    """A whole set in one statement, one array a column; the set before was taken away in the same transaction."""
    cursor = conn.cursor()
    await cursor.execute(ADD_OVERRIDES, {"tenant_id": tenant_id, "agent_id": agent_id, "session_id": session_id, "user_id": user_id, "ids": list(ids), "positions": list(positions), "parts": list(parts), "actions": list(actions), "replacements": list(replacements), "againsts": list(againsts)})


COUNT_OVERRIDES = """\
select count(*)
from context_overrides o
left join agents a on a.tenant_id = o.tenant_id and a.id = o.agent_id
left join sessions s on s.tenant_id = o.tenant_id and s.id = o.session_id
where o.tenant_id = %(tenant_id)s and a.deleted_at is null and s.deleted_at is null
"""


async def count_overrides(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> int | None:
    """Overrides of agents and sessions that are not deleted."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(COUNT_OVERRIDES, {"tenant_id": tenant_id})
    return await cursor.fetchone()

