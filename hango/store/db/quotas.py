"""Made by sqlc from quotas.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['ensure_quota_row', 'reserve_quota']


ENSURE_QUOTA_ROW = """\
insert into quotas (tenant_id, period)
values (%(tenant_id)s, date_trunc('month', clock_timestamp() at time zone 'utc')::date)
on conflict (tenant_id, period) do nothing
"""


async def ensure_quota_row(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> None:
    """The row of this month (UTC)."""
    cursor = conn.cursor()
    await cursor.execute(ENSURE_QUOTA_ROW, {"tenant_id": tenant_id})


RESERVE_QUOTA = """\
update quotas q
set reserved = q.reserved + %(tokens)s::bigint
from tenants t
where q.tenant_id = %(tenant_id)s
  and q.period = date_trunc('month', clock_timestamp() at time zone 'utc')::date
  and t.id = q.tenant_id
  and (t.quota_tokens is null or q.used + q.reserved + %(tokens)s::bigint <= t.quota_tokens)
returning q.period
"""


async def reserve_quota(
    conn: AsyncConnection[Any],
    *,
    tokens: int,
    tenant_id: UUID,
) -> date | None:
    """Hold tokens of this month's quota when there are so many left. Whoever reserves next waits for this transaction."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(RESERVE_QUOTA, {"tokens": tokens, "tenant_id": tenant_id})
    return await cursor.fetchone()

