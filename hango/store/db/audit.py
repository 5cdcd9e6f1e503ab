"""Made by sqlc from audit.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_event', 'list_events']


ADD_EVENT = """\
insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
values (%(tenant_id)s, %(id)s, %(action)s, %(target_kind)s, %(target_id)s, %(user_id)s, %(detail)s::jsonb)
"""


async def add_event(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    action: str,
    target_kind: str,
    target_id: UUID | None,
    user_id: UUID | None,
    detail: Any,
) -> None:
    """One event of the audit log."""
    cursor = conn.cursor()
    await cursor.execute(ADD_EVENT, {"tenant_id": tenant_id, "id": id, "action": action, "target_kind": target_kind, "target_id": target_id, "user_id": user_id, "detail": detail})


LIST_EVENTS = """\
select id, action, target_kind, target_id, user_id, detail, created_at
from audit_events
where tenant_id = %(tenant_id)s
  and (%(before)s::uuid is null or id < %(before)s::uuid)
order by id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListEventsRow:
    id: UUID
    action: str
    target_kind: str
    target_id: UUID | None
    user_id: UUID | None
    detail: Any
    created_at: datetime


async def list_events(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListEventsRow]:
    """The audit log, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListEventsRow))
    await cursor.execute(LIST_EVENTS, {"tenant_id": tenant_id, "before": before, "most": most})
    return await cursor.fetchall()

