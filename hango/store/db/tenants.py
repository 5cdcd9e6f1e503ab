"""Made by sqlc from tenants.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['get_tenant', 'update_tenant']


GET_TENANT = """\
select
  t.id,
  t.name,
  t.quota_tokens,
  coalesce(q.used, 0)::bigint as quota_used,
  coalesce(q.reserved, 0)::bigint as quota_reserved,
  date_trunc('month', now() at time zone 'utc')::date as period_start,
  t.rate_per_minute,
  t.trace_llm_content
from tenants t
left join quotas q
  on q.tenant_id = t.id and q.period = date_trunc('month', now() at time zone 'utc')::date
where t.id = %(tenant_id)s
"""


@dataclass(frozen=True, slots=True)
class GetTenantRow:
    id: UUID
    name: str
    quota_tokens: int | None
    quota_used: int
    quota_reserved: int
    period_start: date
    rate_per_minute: int | None
    trace_llm_content: bool


async def get_tenant(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> GetTenantRow | None:
    """The caller's tenant, with this month's use of its quota."""
    cursor = conn.cursor(row_factory=args_row(GetTenantRow))
    await cursor.execute(GET_TENANT, {"tenant_id": tenant_id})
    return await cursor.fetchone()


UPDATE_TENANT = """\
update tenants
set
  name = coalesce(%(name)s, name),
  quota_tokens = case when %(set_quota_tokens)s::boolean then %(quota_tokens)s else quota_tokens end,
  rate_per_minute = case when %(set_rate_per_minute)s::boolean then %(rate_per_minute)s else rate_per_minute end,
  trace_llm_content = coalesce(%(trace_llm_content)s, trace_llm_content)
where id = %(tenant_id)s
"""


async def update_tenant(
    conn: AsyncConnection[Any],
    *,
    name: str | None,
    set_quota_tokens: bool,
    quota_tokens: int | None,
    set_rate_per_minute: bool,
    rate_per_minute: int | None,
    trace_llm_content: bool | None,
    tenant_id: UUID,
) -> int:
    """Change what is given; the nullable settings say by a flag of their own whether they are."""
    cursor = conn.cursor()
    await cursor.execute(UPDATE_TENANT, {"name": name, "set_quota_tokens": set_quota_tokens, "quota_tokens": quota_tokens, "set_rate_per_minute": set_rate_per_minute, "rate_per_minute": rate_per_minute, "trace_llm_content": trace_llm_content, "tenant_id": tenant_id})
    return cursor.rowcount

