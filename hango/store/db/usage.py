"""Made by sqlc from usage.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['list_usage', 'record_usage', 'sum_usage', 'use_quota']


RECORD_USAGE = """\
insert into usage_records (
  tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
  cache_write_tokens, cost_usd, estimated
)
values (
  %(tenant_id)s, %(id)s, %(purpose)s, %(run_id)s, %(session_id)s, %(user_id)s, %(model)s, %(input_tokens)s, %(output_tokens)s,
  %(cache_read_tokens)s, %(cache_write_tokens)s, %(cost_usd)s, %(estimated)s
)
"""


async def record_usage(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    purpose: str,
    run_id: UUID | None,
    session_id: UUID,
    user_id: UUID,
    model: str,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    cost_usd: Decimal | None,
    estimated: bool,
) -> None:
    """One model call; without a run when it was a try."""
    cursor = conn.cursor()
    await cursor.execute(RECORD_USAGE, {"tenant_id": tenant_id, "id": id, "purpose": purpose, "run_id": run_id, "session_id": session_id, "user_id": user_id, "model": model, "input_tokens": input_tokens, "output_tokens": output_tokens, "cache_read_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens, "cost_usd": cost_usd, "estimated": estimated})


USE_QUOTA = """\
insert into quotas (tenant_id, period, used)
values (%(tenant_id)s, date_trunc('month', now() at time zone 'utc')::date, %(tokens)s::bigint)
on conflict (tenant_id, period) do update
set used = quotas.used + excluded.used
"""


async def use_quota(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    tokens: int,
) -> None:
    """Count tokens as used in this month."""
    cursor = conn.cursor()
    await cursor.execute(USE_QUOTA, {"tenant_id": tenant_id, "tokens": tokens})


SUM_USAGE = """\
select
  (
    case %(group_by)s::text
      when 'purpose' then u.purpose
      when 'model' then u.model
      when 'user' then u.user_id::text
      when 'session' then u.session_id::text
      else to_char(u.created_at at time zone 'utc', 'YYYY-MM-DD')
    end
  )::text as group_name,
  count(*) as records,
  sum(u.input_tokens)::bigint as input_tokens,
  sum(u.output_tokens)::bigint as output_tokens,
  sum(u.cache_read_tokens)::bigint as cache_read_tokens,
  sum(u.cache_write_tokens)::bigint as cache_write_tokens,
  count(u.cost_usd) as priced,
  coalesce(sum(u.cost_usd), 0)::float8 as cost_usd
from usage_records u
where u.tenant_id = %(tenant_id)s
  and (%(since)s::timestamptz is null or u.created_at >= %(since)s::timestamptz)
  and (%(before)s::timestamptz is null or u.created_at < %(before)s::timestamptz)
group by 1
order by 1
"""


@dataclass(frozen=True, slots=True)
class SumUsageRow:
    group_name: str
    records: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    priced: int
    cost_usd: float


async def sum_usage(
    conn: AsyncConnection[Any],
    *,
    group_by: str,
    tenant_id: UUID,
    since: datetime | None,
    before: datetime | None,
) -> list[SumUsageRow]:
    """Usage in a stretch of time, in groups. `priced` counts the records whose cost is known."""
    cursor = conn.cursor(row_factory=args_row(SumUsageRow))
    await cursor.execute(SUM_USAGE, {"group_by": group_by, "tenant_id": tenant_id, "since": since, "before": before})
    return await cursor.fetchall()


LIST_USAGE = """\
select
  id, purpose, run_id, try_id, session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
  estimated, created_at
from usage_records
where tenant_id = %(tenant_id)s
  and (%(purpose)s::text is null or purpose = %(purpose)s::text)
  and (%(session_id)s::uuid is null or session_id = %(session_id)s::uuid)
  and (%(before)s::uuid is null or id < %(before)s::uuid)
order by id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListUsageRow:
    id: UUID
    purpose: str
    run_id: UUID | None
    try_id: UUID | None
    session_id: UUID
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal | None
    estimated: bool
    created_at: datetime


async def list_usage(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    purpose: str | None,
    session_id: UUID | None,
    before: UUID | None,
    most: int,
) -> list[ListUsageRow]:
    """Records, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListUsageRow))
    await cursor.execute(LIST_USAGE, {"tenant_id": tenant_id, "purpose": purpose, "session_id": session_id, "before": before, "most": most})
    return await cursor.fetchall()

