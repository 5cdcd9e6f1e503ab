"""Made by sqlc from system.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_tenant', 'claim_runs', 'claim_tries', 'count_claimable', 'count_claimable_runs', 'count_drift', 'find_key', 'hold_expired_runs', 'hold_overdue', 'hold_overdue_runs', 'hold_reconciler', 'list_claimed', 'list_claimed_runs', 'list_tenants', 'list_tenants_with_expired', 'renew_leases', 'renew_run_leases']


FIND_KEY = """\
select
  k.tenant_id, k.id as key_id, k.secret_hash, u.id as user_id, u.role, t.rate_per_minute, t.trace_llm_content
from api_keys k
join users u on u.tenant_id = k.tenant_id and u.id = k.user_id
join tenants t on t.id = k.tenant_id
where k.prefix = %(prefix)s and k.revoked_at is null and not u.disabled
"""


@dataclass(frozen=True, slots=True)
class FindKeyRow:
    tenant_id: UUID
    key_id: UUID
    secret_hash: bytes
    user_id: UUID
    role: str
    rate_per_minute: int | None
    trace_llm_content: bool


async def find_key(
    conn: AsyncConnection[Any],
    *,
    prefix: str,
) -> FindKeyRow | None:
    """Who a key belongs to, by its shown part; nothing for a revoked key or a disabled user. unscoped: the key is what tells the tenant."""
    cursor = conn.cursor(row_factory=args_row(FindKeyRow), binary=True)
    await cursor.execute(FIND_KEY, {"prefix": prefix})
    return await cursor.fetchone()


ADD_TENANT = """\
insert into tenants (id, name, quota_tokens)
values (%(id)s, %(name)s, %(quota_tokens)s)
"""


async def add_tenant(
    conn: AsyncConnection[Any],
    *,
    id: UUID,
    name: str,
    quota_tokens: int | None,
) -> None:
    """A new tenant. unscoped: a tenant is made before anyone can act in it."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TENANT, {"id": id, "name": name, "quota_tokens": quota_tokens})


CLAIM_TRIES = """\
select c.ids::uuid[] as ids, c.more::boolean as more
from claim_tries(%(owner)s::uuid, make_interval(secs => %(lease_seconds)s::float8), %(cap)s::integer, %(most)s::integer) c
"""


@dataclass(frozen=True, slots=True)
class ClaimTriesRow:
    ids: list[UUID]
    more: bool


async def claim_tries(
    conn: AsyncConnection[Any],
    *,
    owner: UUID,
    lease_seconds: float,
    cap: int,
    most: int,
) -> ClaimTriesRow | None:
    """The fair pick. Ids of the tries that this worker has from now on, all of one tenant; whether another tenant waits too. unscoped: a worker looks for work across tenants."""
    cursor = conn.cursor(row_factory=args_row(ClaimTriesRow))
    await cursor.execute(CLAIM_TRIES, {"owner": owner, "lease_seconds": lease_seconds, "cap": cap, "most": most})
    return await cursor.fetchone()


LIST_CLAIMED = """\
select
  t.tenant_id, t.id, t.session_id, t.user_id, t.api_key_id, t.request_id, t.batch_id, t.attempt, t.timeout_ms,
  t.reserved, t.traceparent, t.created_at, n.trace_llm_content
from tries t
join tenants n on n.id = t.tenant_id
where t.id = any (%(ids)s::uuid[]) and t.lease_owner = %(owner)s and t.status = 'running'
order by t.created_at, t.id
"""


@dataclass(frozen=True, slots=True)
class ListClaimedRow:
    tenant_id: UUID
    id: UUID
    session_id: UUID
    user_id: UUID
    api_key_id: UUID
    request_id: UUID
    batch_id: UUID | None
    attempt: int
    timeout_ms: int
    reserved: int
    traceparent: str | None
    created_at: datetime
    trace_llm_content: bool


async def list_claimed(
    conn: AsyncConnection[Any],
    *,
    ids: Sequence[UUID | None],
    owner: UUID | None,
) -> list[ListClaimedRow]:
    """What a worker needs to know of the tries that it has claimed. unscoped: the claim told the tenant."""
    cursor = conn.cursor(row_factory=args_row(ListClaimedRow))
    await cursor.execute(LIST_CLAIMED, {"ids": list(ids), "owner": owner})
    return await cursor.fetchall()


RENEW_LEASES = """\
with held as (
  select t.tenant_id, t.id
  from tries t
  join (select unnest(%(ids)s::uuid[]) as id, unnest(%(attempts)s::integer[]) as attempt) n
    on n.id = t.id and n.attempt = t.attempt
  where t.lease_owner = %(owner)s and t.status = 'running'
  order by t.tenant_id, t.id
  for update of t
)
update tries t
set lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s::float8)
from held h
where t.tenant_id = h.tenant_id and t.id = h.id and t.status = 'running'
returning t.id, (t.cancel_requested_at is not null)::boolean as cancelled
"""


@dataclass(frozen=True, slots=True)
class RenewLeasesRow:
    id: UUID
    cancelled: bool


async def renew_leases(
    conn: AsyncConnection[Any],
    *,
    lease_seconds: float,
    ids: Sequence[UUID | None],
    attempts: Sequence[int | None],
    owner: UUID | None,
) -> list[RenewLeasesRow]:
    """A sign of life for the tries of a worker; those that it has no more are missing in the answer. Their rows are locked in the order of whoever locks several. unscoped: one statement for the tries of all tenants that a worker runs."""
    cursor = conn.cursor(row_factory=args_row(RenewLeasesRow))
    await cursor.execute(RENEW_LEASES, {"lease_seconds": lease_seconds, "ids": list(ids), "attempts": list(attempts), "owner": owner})
    return await cursor.fetchall()


HOLD_RECONCILER = """\
select pg_try_advisory_xact_lock(7002)::boolean as held
"""


async def hold_reconciler(
    conn: AsyncConnection[Any],
) -> bool | None:
    """Whether this process may look after the tries of all for the time of its transaction: one does at a time. unscoped: it is about no tenant."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(HOLD_RECONCILER, {})
    return await cursor.fetchone()


HOLD_OVERDUE = """\
select
  t.tenant_id, t.id, t.user_id, t.api_key_id, t.request_id, t.attempt, t.reserved,
  (t.called_at is not null)::boolean as called, (t.cancel_requested_at is not null)::boolean as cancelled, t.traceparent
from tries t
where t.status = 'running' and t.lease_until < statement_timestamp()
order by t.tenant_id, t.id
limit %(most)s
for update skip locked
"""


@dataclass(frozen=True, slots=True)
class HoldOverdueRow:
    tenant_id: UUID
    id: UUID
    user_id: UUID
    api_key_id: UUID
    request_id: UUID
    attempt: int
    reserved: int
    called: bool
    cancelled: bool
    traceparent: str | None


async def hold_overdue(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> list[HoldOverdueRow]:
    """Tries whose worker has been silent past its lease, held until the transaction ends. unscoped: whoever looks after them does so for all tenants."""
    cursor = conn.cursor(row_factory=args_row(HoldOverdueRow))
    await cursor.execute(HOLD_OVERDUE, {"most": most})
    return await cursor.fetchall()


LIST_TENANTS_WITH_EXPIRED = """\
select distinct tenant_id
from tries
where status = 'queued' and queue_expires_at < statement_timestamp()
order by tenant_id
limit %(most)s
"""


async def list_tenants_with_expired(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> list[UUID]:
    """Tenants with tries that waited for too long. unscoped: whoever looks after them does so for all tenants."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(LIST_TENANTS_WITH_EXPIRED, {"most": most})
    return await cursor.fetchall()


COUNT_CLAIMABLE = """\
select
  count(*) as tries,
  coalesce(extract(epoch from clock_timestamp() - min(c.created_at)), 0)::float8 as oldest_seconds
from (
  select t.created_at
  from tries t
  where t.status = 'queued'
    and t.queue_expires_at > clock_timestamp()
    and (t.not_before is null or t.not_before <= clock_timestamp())
  order by t.queue_expires_at
  limit %(most)s
) c
"""


@dataclass(frozen=True, slots=True)
class CountClaimableRow:
    tries: int
    oldest_seconds: float


async def count_claimable(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> CountClaimableRow | None:
    """How many tries a worker could take now, counted up to a bound, and the age of the oldest in seconds. unscoped: whoever rings does so for all tenants."""
    cursor = conn.cursor(row_factory=args_row(CountClaimableRow))
    await cursor.execute(COUNT_CLAIMABLE, {"most": most})
    return await cursor.fetchone()


COUNT_DRIFT = """\
with live as (
  select w.tenant_id, w.quota_period, w.reserved, w.queue_expires_at from tries w where w.status = 'queued'
  union all
  select r.tenant_id, r.quota_period, r.reserved, r.queue_expires_at from tries r where r.status = 'running'
  union all
  select x.tenant_id, x.quota_period, x.reserved, null::timestamptz from runs x where x.reserved > 0
),
sums as (
  select l.tenant_id, l.quota_period, sum(l.reserved) as reserved
  from live l
  group by l.tenant_id, l.quota_period
)
select
  (
    select count(*)
    from quotas q
    left join sums s on s.tenant_id = q.tenant_id and s.quota_period = q.period
    where q.reserved <> coalesce(s.reserved, 0)
  )::bigint as ledgers,
  (
    select count(*)
    from live l
    where l.queue_expires_at < clock_timestamp() - make_interval(secs => %(bound_seconds)s::float8)
  )::bigint as overdue
"""


@dataclass(frozen=True, slots=True)
class CountDriftRow:
    ledgers: int
    overdue: int


async def count_drift(
    conn: AsyncConnection[Any],
    *,
    bound_seconds: float,
) -> CountDriftRow | None:
    """Months whose reservation is not the sum of what is under way, and tries that are older than any may be: both are 0. unscoped: a check over all tenants."""
    cursor = conn.cursor(row_factory=args_row(CountDriftRow))
    await cursor.execute(COUNT_DRIFT, {"bound_seconds": bound_seconds})
    return await cursor.fetchone()


LIST_TENANTS = """\
select id
from tenants
order by id
"""


async def list_tenants(
    conn: AsyncConnection[Any],
) -> list[UUID]:
    """Every tenant. unscoped: the purge goes through all."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(LIST_TENANTS, {})
    return await cursor.fetchall()


CLAIM_RUNS = """\
select claim_runs(%(owner)s::uuid, make_interval(secs => %(lease_seconds)s::float8), %(cap)s::integer, %(most)s::integer)::uuid[]
  as ids
"""


async def claim_runs(
    conn: AsyncConnection[Any],
    *,
    owner: UUID,
    lease_seconds: float,
    cap: int,
    most: int,
) -> list[UUID] | None:
    """The fair pick of runs. Ids of the runs that this worker has from now on, all of one tenant. unscoped: a worker looks for work across tenants."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(CLAIM_RUNS, {"owner": owner, "lease_seconds": lease_seconds, "cap": cap, "most": most})
    return await cursor.fetchone()


LIST_CLAIMED_RUNS = """\
select
  r.tenant_id, r.id, r.user_id, r.api_key_id, r.attempt, r.timeout_ms, r.traceparent, r.started_at,
  n.trace_llm_content
from runs r
join tenants n on n.id = r.tenant_id
where r.id = any (%(ids)s::uuid[]) and r.lease_owner = %(owner)s and r.status = 'running'
order by r.created_at, r.id
"""


@dataclass(frozen=True, slots=True)
class ListClaimedRunsRow:
    tenant_id: UUID
    id: UUID
    user_id: UUID
    api_key_id: UUID
    attempt: int
    timeout_ms: int
    traceparent: str | None
    started_at: datetime | None
    trace_llm_content: bool


async def list_claimed_runs(
    conn: AsyncConnection[Any],
    *,
    ids: Sequence[UUID | None],
    owner: UUID | None,
) -> list[ListClaimedRunsRow]:
    """What a worker needs to know of the runs that it has claimed. unscoped: the claim told the tenant."""
    cursor = conn.cursor(row_factory=args_row(ListClaimedRunsRow))
    await cursor.execute(LIST_CLAIMED_RUNS, {"ids": list(ids), "owner": owner})
    return await cursor.fetchall()


RENEW_RUN_LEASES = """\
with mine as (
  select r.tenant_id, r.id, (r.cancel_requested_at is not null)::boolean as cancelled
  from runs r
  join (select unnest(%(ids)s::uuid[]) as id, unnest(%(attempts)s::integer[]) as attempt) n
    on n.id = r.id and n.attempt = r.attempt
  where r.lease_owner = %(owner)s and r.status = 'running'
),
free as (
  select r.tenant_id, r.id
  from runs r
  join mine on mine.tenant_id = r.tenant_id and mine.id = r.id
  where r.lease_owner = %(owner)s and r.status = 'running'
  order by r.tenant_id, r.id
  for update of r skip locked
),
renewed as (
  update runs r
  set lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s::float8)
  from free
  where r.tenant_id = free.tenant_id and r.id = free.id
)
select id, cancelled
from mine
"""


@dataclass(frozen=True, slots=True)
class RenewRunLeasesRow:
    id: UUID
    cancelled: bool


async def renew_run_leases(
    conn: AsyncConnection[Any],
    *,
    ids: Sequence[UUID | None],
    attempts: Sequence[int | None],
    owner: UUID | None,
    lease_seconds: float,
) -> list[RenewRunLeasesRow]:
    """A sign of life for the runs of a worker; those that it has no more are missing in the answer. A run that is held right now, as during a tool, is not waited for, or the leases of all others would run out with its own. unscoped: one statement for the runs of all tenants that a worker has."""
    cursor = conn.cursor(row_factory=args_row(RenewRunLeasesRow))
    await cursor.execute(RENEW_RUN_LEASES, {"ids": list(ids), "attempts": list(attempts), "owner": owner, "lease_seconds": lease_seconds})
    return await cursor.fetchall()


HOLD_OVERDUE_RUNS = """\
select
  r.tenant_id, r.id, r.user_id, r.api_key_id, r.attempt, r.rescues, r.traceparent,
  (r.cancel_requested_at is not null)::boolean as cancelled
from runs r
where r.status = 'running' and r.lease_until < clock_timestamp()
order by r.tenant_id, r.id
limit %(most)s
for update skip locked
"""


@dataclass(frozen=True, slots=True)
class HoldOverdueRunsRow:
    tenant_id: UUID
    id: UUID
    user_id: UUID
    api_key_id: UUID
    attempt: int
    rescues: int
    traceparent: str | None
    cancelled: bool


async def hold_overdue_runs(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> list[HoldOverdueRunsRow]:
    """Runs whose worker has been silent past its lease, held until the transaction ends. unscoped: whoever looks after them does so for all tenants."""
    cursor = conn.cursor(row_factory=args_row(HoldOverdueRunsRow))
    await cursor.execute(HOLD_OVERDUE_RUNS, {"most": most})
    return await cursor.fetchall()


HOLD_EXPIRED_RUNS = """\
select r.tenant_id, r.id, r.user_id, r.api_key_id
from runs r
where r.status = 'queued' and r.queue_expires_at < clock_timestamp()
order by r.tenant_id, r.id
limit %(most)s
for update skip locked
"""


@dataclass(frozen=True, slots=True)
class HoldExpiredRunsRow:
    tenant_id: UUID
    id: UUID
    user_id: UUID
    api_key_id: UUID


async def hold_expired_runs(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> list[HoldExpiredRunsRow]:
    """Runs that waited for too long, held until the transaction ends. unscoped: whoever looks after them does so for all tenants."""
    cursor = conn.cursor(row_factory=args_row(HoldExpiredRunsRow))
    await cursor.execute(HOLD_EXPIRED_RUNS, {"most": most})
    return await cursor.fetchall()


COUNT_CLAIMABLE_RUNS = """\
select count(*)
from (
  select r.id
  from runs r
  where r.status = 'queued'
    and r.queue_expires_at > clock_timestamp()
  limit %(most)s
) c
"""


async def count_claimable_runs(
    conn: AsyncConnection[Any],
    *,
    most: int,
) -> int | None:
    """How many runs a worker could take now, counted up to a bound. unscoped: whoever rings does so for all tenants."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(COUNT_CLAIMABLE_RUNS, {"most": most})
    return await cursor.fetchone()

