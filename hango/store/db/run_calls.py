"""Made by sqlc from run_calls.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_run_call', 'count_conversation_calls', 'find_open_call', 'last_stop_reason', 'list_run_calls', 'settle_run_call', 'sum_run_tokens']


ADD_RUN_CALL = """\
with added as (
  insert into run_calls (
    tenant_id, id, run_id, n, purpose, session_id, base_id, model, request_sha256, version, overrides, excluded_tokens,
    max_output_tokens, quota_period, reserved
  )
  select
    %(tenant_id)s, %(id)s, %(run_id)s, coalesce(max(c.n), 0) + 1, %(purpose)s, %(session_id)s, %(base_id)s, %(model)s, %(request_sha256)s,
    %(version)s, %(overrides)s, %(excluded_tokens)s, %(max_output_tokens)s, %(quota_period)s, %(reserved)s
  from run_calls c
  where c.tenant_id = %(tenant_id)s and c.run_id = %(run_id)s
  on conflict (tenant_id, run_id) where ended_at is null do nothing
  returning tenant_id, run_id, n, quota_period, reserved
),
held as (
  update runs r
  set reserved = a.reserved, quota_period = a.quota_period
  from added a
  where r.tenant_id = a.tenant_id and r.id = a.run_id
)
select n
from added
"""


async def add_run_call(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    run_id: UUID,
    purpose: str,
    session_id: UUID,
    base_id: UUID,
    model: str,
    request_sha256: str,
    version: str,
    overrides: int,
    excluded_tokens: int,
    max_output_tokens: int,
    quota_period: date,
    reserved: int,
) -> int | None:
    """A call that is about to be made, the next of its run, and what is held for it; no row while another one is under way."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(ADD_RUN_CALL, {"tenant_id": tenant_id, "id": id, "run_id": run_id, "purpose": purpose, "session_id": session_id, "base_id": base_id, "model": model, "request_sha256": request_sha256, "version": version, "overrides": overrides, "excluded_tokens": excluded_tokens, "max_output_tokens": max_output_tokens, "quota_period": quota_period, "reserved": reserved})
    return await cursor.fetchone()


SETTLE_RUN_CALL = """\
with ended as (
  update run_calls c
  set
    stop_reason = %(stop_reason)s,
    error_code = %(error_code)s,
    provider_status = %(provider_status)s,
    provider_request_id = %(provider_request_id)s,
    ended_at = clock_timestamp()
  where c.tenant_id = %(tenant_id)s and c.id = %(id)s and c.ended_at is null
  returning c.tenant_id, c.id, c.run_id, c.purpose, c.session_id, c.model, c.quota_period, c.reserved
),
billed as (
  insert into usage_records (
    tenant_id, id, purpose, run_id, call_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost_usd, estimated
  )
  select
    e.tenant_id, %(usage_id)s, e.purpose, e.run_id, e.id, r.session_id, r.user_id, e.model, %(input_tokens)s, %(output_tokens)s,
    %(cache_read_tokens)s, %(cache_write_tokens)s, %(cost_usd)s::numeric, %(estimated)s
  from ended e
  join runs r on r.tenant_id = e.tenant_id and r.id = e.run_id
),
freed as (
  update runs r
  set reserved = 0
  from ended e
  where r.tenant_id = e.tenant_id and r.id = e.run_id
),
paid as (
  update quotas q
  set reserved = q.reserved - e.reserved, used = q.used + %(tokens)s::bigint
  from ended e
  where q.tenant_id = e.tenant_id and q.period = e.quota_period
)
select reserved
from ended
"""


async def settle_run_call(
    conn: AsyncConnection[Any],
    *,
    stop_reason: str | None,
    error_code: str | None,
    provider_status: int | None,
    provider_request_id: str | None,
    tenant_id: UUID,
    id: UUID,
    usage_id: UUID,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    cost_usd: Decimal | None,
    estimated: bool,
    tokens: int,
) -> int | None:
    """The end of a call: what came of it, its bill and its quota in one statement; once."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(SETTLE_RUN_CALL, {"stop_reason": stop_reason, "error_code": error_code, "provider_status": provider_status, "provider_request_id": provider_request_id, "tenant_id": tenant_id, "id": id, "usage_id": usage_id, "input_tokens": input_tokens, "output_tokens": output_tokens, "cache_read_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens, "cost_usd": cost_usd, "estimated": estimated, "tokens": tokens})
    return await cursor.fetchone()


FIND_OPEN_CALL = """\
select id, model, reserved, max_output_tokens
from run_calls
where tenant_id = %(tenant_id)s and run_id = %(run_id)s and ended_at is null
"""


@dataclass(frozen=True, slots=True)
class FindOpenCallRow:
    id: UUID
    model: str
    reserved: int
    max_output_tokens: int


async def find_open_call(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID,
) -> FindOpenCallRow | None:
    """The call of a run that is under way, or was when its worker fell silent."""
    cursor = conn.cursor(row_factory=args_row(FindOpenCallRow))
    await cursor.execute(FIND_OPEN_CALL, {"tenant_id": tenant_id, "run_id": run_id})
    return await cursor.fetchone()


LIST_RUN_CALLS = """\
select
  c.id, c.n, c.purpose, c.session_id, c.base_id, c.model, c.request_sha256, c.version, c.overrides, c.excluded_tokens,
  c.stop_reason, c.error_code, c.created_at, c.ended_at, u.input_tokens, u.output_tokens, u.cache_read_tokens,
  u.cache_write_tokens, u.cost_usd, u.estimated
from run_calls c
left join usage_records u on u.tenant_id = c.tenant_id and u.call_id = c.id
where c.tenant_id = %(tenant_id)s
  and c.run_id = %(run_id)s
  and c.n > %(after)s::integer
order by c.n
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListRunCallsRow:
    id: UUID
    n: int
    purpose: str
    session_id: UUID
    base_id: UUID
    model: str
    request_sha256: str
    version: str
    overrides: int
    excluded_tokens: int
    stop_reason: str | None
    error_code: str | None
    created_at: datetime
    ended_at: datetime | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: Decimal | None
    estimated: bool | None


async def list_run_calls(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID,
    after: int,
    most: int,
) -> list[ListRunCallsRow]:
    """The calls of a run with their bills, in order."""
    cursor = conn.cursor(row_factory=args_row(ListRunCallsRow))
    await cursor.execute(LIST_RUN_CALLS, {"tenant_id": tenant_id, "run_id": run_id, "after": after, "most": most})
    return await cursor.fetchall()


SUM_RUN_TOKENS = """\
select coalesce(sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens), 0)::bigint as tokens
from usage_records
where tenant_id = %(tenant_id)s and run_id = %(run_id)s::uuid
"""


async def sum_run_tokens(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID,
) -> int | None:
    """What the calls of a run were billed at."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(SUM_RUN_TOKENS, {"tenant_id": tenant_id, "run_id": run_id})
    return await cursor.fetchone()


COUNT_CONVERSATION_CALLS = """\
select count(*)::integer as calls
from run_calls
where tenant_id = %(tenant_id)s and run_id = %(run_id)s and session_id = %(session_id)s
"""


async def count_conversation_calls(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID,
    session_id: UUID,
) -> int | None:
    """The calls of one conversation of a run so far, those that failed too."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(COUNT_CONVERSATION_CALLS, {"tenant_id": tenant_id, "run_id": run_id, "session_id": session_id})
    return await cursor.fetchone()


LAST_STOP_REASON = """\
select stop_reason
from run_calls
where tenant_id = %(tenant_id)s
  and run_id = %(run_id)s
  and session_id = %(session_id)s
  and purpose <> 'summary'
  and stop_reason is not null
order by n desc
limit 1
"""


async def last_stop_reason(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID,
    session_id: UUID,
) -> str | None:
    """How the last call of a conversation ended."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(LAST_STOP_REASON, {"tenant_id": tenant_id, "run_id": run_id, "session_id": session_id})
    return await cursor.fetchone()

