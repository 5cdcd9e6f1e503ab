"""Made by sqlc from try_batches.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_try_batch', 'get_try_batch', 'list_batch_tries', 'list_try_batches', 'sum_variants']


ADD_TRY_BATCH = """\
insert into try_batches (tenant_id, id, session_id, user_id, base_id, label, tries, remaining)
values (%(tenant_id)s, %(id)s, %(session_id)s, %(user_id)s, %(base_id)s, %(label)s, %(tries)s, %(tries)s)
"""


async def add_try_batch(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    session_id: UUID,
    user_id: UUID,
    base_id: UUID,
    label: str | None,
    tries: int,
) -> None:
    """A batch of so many tries, none of which has ended."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TRY_BATCH, {"tenant_id": tenant_id, "id": id, "session_id": session_id, "user_id": user_id, "base_id": base_id, "label": label, "tries": tries})


GET_TRY_BATCH = """\
select
  b.id, b.session_id, s.created_by as session_owner, b.label, b.tries, b.remaining, b.created_at, b.finished_at
from try_batches b
join sessions s on s.tenant_id = b.tenant_id and s.id = b.session_id and s.deleted_at is null
where b.tenant_id = %(tenant_id)s and b.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class GetTryBatchRow:
    id: UUID
    session_id: UUID
    session_owner: UUID
    label: str | None
    tries: int
    remaining: int
    created_at: datetime
    finished_at: datetime | None


async def get_try_batch(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetTryBatchRow | None:
    """A batch of a session that is not deleted."""
    cursor = conn.cursor(row_factory=args_row(GetTryBatchRow))
    await cursor.execute(GET_TRY_BATCH, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_TRY_BATCHES = """\
select
  b.id, b.session_id, s.created_by as session_owner, b.label, b.tries, b.remaining, b.created_at, b.finished_at
from try_batches b
join sessions s on s.tenant_id = b.tenant_id and s.id = b.session_id and s.deleted_at is null
where b.tenant_id = %(tenant_id)s
  and b.session_id = %(session_id)s
  and (%(before)s::uuid is null or b.id < %(before)s::uuid)
order by b.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListTryBatchesRow:
    id: UUID
    session_id: UUID
    session_owner: UUID
    label: str | None
    tries: int
    remaining: int
    created_at: datetime
    finished_at: datetime | None


async def list_try_batches(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListTryBatchesRow]:
    """The batches of a session, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListTryBatchesRow))
    await cursor.execute(LIST_TRY_BATCHES, {"tenant_id": tenant_id, "session_id": session_id, "before": before, "most": most})
    return await cursor.fetchall()


LIST_BATCH_TRIES = """\
select
  t.id, t.session_id, s.created_by as session_owner, t.batch_id, r.variant, r.label, t.status, r.base_id, r.model,
  r.changes, r.excluded, r.request_sha256, r.tokens_before, r.tokens_after, r.purged_at, t.stop_reason, t.error_code,
  t.provider_status, t.attempt, t.created_at, t.started_at, t.finished_at, u.input_tokens, u.output_tokens,
  u.cache_read_tokens, u.cache_write_tokens, u.cost_usd, u.estimated
from tries t
join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id and s.deleted_at is null
join try_requests r on r.tenant_id = t.tenant_id and r.id = t.request_id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where t.tenant_id = %(tenant_id)s
  and t.session_id = %(session_id)s
  and t.batch_id = %(batch_id)s::uuid
  and (%(before)s::uuid is null or t.id < %(before)s::uuid)
order by t.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListBatchTriesRow:
    id: UUID
    session_id: UUID
    session_owner: UUID
    batch_id: UUID | None
    variant: int | None
    label: str | None
    status: str
    base_id: UUID
    model: str
    changes: str
    excluded: str
    request_sha256: str
    tokens_before: int
    tokens_after: int
    purged_at: datetime | None
    stop_reason: str | None
    error_code: str | None
    provider_status: int | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: Decimal | None
    estimated: bool | None


async def list_batch_tries(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    batch_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListBatchTriesRow]:
    """Tries of a batch of a session, the newest first, without texts and answers: as list_tries does, by another index."""
    cursor = conn.cursor(row_factory=args_row(ListBatchTriesRow))
    await cursor.execute(LIST_BATCH_TRIES, {"tenant_id": tenant_id, "session_id": session_id, "batch_id": batch_id, "before": before, "most": most})
    return await cursor.fetchall()


SUM_VARIANTS = """\
select
  r.batch_id::uuid as batch_id,
  r.variant::integer as variant,
  r.label,
  t.status,
  count(*) as tries,
  array_agg(t.id order by t.id)::uuid[] as ids,
  coalesce(sum(u.input_tokens), 0)::bigint as input_tokens,
  coalesce(sum(u.output_tokens), 0)::bigint as output_tokens,
  coalesce(sum(u.cache_read_tokens), 0)::bigint as cache_read_tokens,
  coalesce(sum(u.cache_write_tokens), 0)::bigint as cache_write_tokens,
  count(u.id) as billed,
  count(u.cost_usd) as priced,
  coalesce(sum(u.cost_usd), 0)::float8 as cost_usd,
  coalesce(bool_or(u.estimated), false)::boolean as estimated
from try_requests r
join tries t on t.tenant_id = r.tenant_id and t.request_id = r.id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where r.tenant_id = %(tenant_id)s and r.batch_id = any (%(batch_ids)s::uuid[])
group by r.batch_id, r.variant, r.label, t.status
order by r.batch_id, r.variant, t.status
"""


@dataclass(frozen=True, slots=True)
class SumVariantsRow:
    batch_id: UUID
    variant: int
    label: str | None
    status: str
    tries: int
    ids: list[UUID]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    billed: int
    priced: int
    cost_usd: float
    estimated: bool


async def sum_variants(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    batch_ids: Sequence[UUID | None],
) -> list[SumVariantsRow]:
    """The variants of batches with what their tries came to, by status."""
    cursor = conn.cursor(row_factory=args_row(SumVariantsRow))
    await cursor.execute(SUM_VARIANTS, {"tenant_id": tenant_id, "batch_ids": list(batch_ids)})
    return await cursor.fetchall()

