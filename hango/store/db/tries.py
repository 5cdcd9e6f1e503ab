"""Made by sqlc from tries.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_tries', 'add_try_audits', 'add_try_requests', 'correct_lost', 'count_outstanding', 'defer_try', 'end_uncalled', 'forget_tries', 'forget_try_batches', 'forget_try_requests', 'get_cancel', 'get_try', 'hold_expired', 'hold_open_tries', 'keep_session', 'list_tries', 'list_try_requests', 'mark_called', 'purge_contents', 'request_cancel', 'rescue_try', 'settle_tries']


ADD_TRY_REQUESTS = """\
insert into try_requests (
  tenant_id, id, session_id, base_id, batch_id, variant, label, model, changes, texts, sent, excluded, request_sha256,
  tokens_before, tokens_after, max_output_tokens, through_seq, expires_at
)
select
  %(tenant_id)s, n.id, %(session_id)s, %(base_id)s, %(batch_id)s::uuid,
  case when %(batch_id)s::uuid is null then null else n.variant end,
  n.label, n.model, n.changes, n.texts, n.sent, n.excluded, n.request_sha256, n.tokens_before, n.tokens_after,
  n.max_output_tokens, n.through_seq, clock_timestamp() + make_interval(secs => %(retention_seconds)s::float8)
from (
  select
    unnest(%(ids)s::uuid[]) as id,
    unnest(%(variants)s::integer[]) as variant,
    unnest(%(labels)s::text[]) as label,
    unnest(%(models)s::text[]) as model,
    unnest(%(changes)s::text[]) as changes,
    unnest(%(texts)s::text[]) as texts,
    unnest(%(sents)s::text[]) as sent,
    unnest(%(excludeds)s::text[]) as excluded,
    unnest(%(request_sha256s)s::text[]) as request_sha256,
    unnest(%(tokens_befores)s::bigint[]) as tokens_before,
    unnest(%(tokens_afters)s::bigint[]) as tokens_after,
    unnest(%(max_output_tokens)s::integer[]) as max_output_tokens,
    unnest(%(through_seqs)s::integer[]) as through_seq
) n
"""


async def add_try_requests(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    base_id: UUID,
    batch_id: UUID | None,
    retention_seconds: float,
    ids: Sequence[UUID | None],
    variants: Sequence[int | None],
    labels: Sequence[str | None],
    models: Sequence[str | None],
    changes: Sequence[str | None],
    texts: Sequence[str | None],
    sents: Sequence[str | None],
    excludeds: Sequence[str | None],
    request_sha256s: Sequence[str | None],
    tokens_befores: Sequence[int | None],
    tokens_afters: Sequence[int | None],
    max_output_tokens: Sequence[int | None],
    through_seqs: Sequence[int | None],
) -> None:
    """What the tries of one POST change, one array a column; without a batch there is one."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TRY_REQUESTS, {"tenant_id": tenant_id, "session_id": session_id, "base_id": base_id, "batch_id": batch_id, "retention_seconds": retention_seconds, "ids": list(ids), "variants": list(variants), "labels": list(labels), "models": list(models), "changes": list(changes), "texts": list(texts), "sents": list(sents), "excludeds": list(excludeds), "request_sha256s": list(request_sha256s), "tokens_befores": list(tokens_befores), "tokens_afters": list(tokens_afters), "max_output_tokens": list(max_output_tokens), "through_seqs": list(through_seqs)})


ADD_TRIES = """\
insert into tries (
  tenant_id, id, session_id, user_id, api_key_id, request_id, batch_id, queue_expires_at, timeout_ms, quota_period,
  reserved, traceparent
)
select
  %(tenant_id)s, n.id, %(session_id)s, %(user_id)s, %(api_key_id)s, n.request_id, %(batch_id)s::uuid,
  clock_timestamp() + make_interval(secs => %(ttl_seconds)s::float8), %(timeout_ms)s, %(quota_period)s, n.reserved,
  %(traceparent)s
from (
  select
    unnest(%(ids)s::uuid[]) as id,
    unnest(%(request_ids)s::uuid[]) as request_id,
    unnest(%(reserveds)s::bigint[]) as reserved
) n
"""


async def add_tries(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    user_id: UUID,
    api_key_id: UUID,
    batch_id: UUID | None,
    ttl_seconds: float,
    timeout_ms: int,
    quota_period: date,
    traceparent: str | None,
    ids: Sequence[UUID | None],
    request_ids: Sequence[UUID | None],
    reserveds: Sequence[int | None],
) -> None:
    """The tries themselves, waiting for a worker. The month is the one whose quota holds the reservation."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TRIES, {"tenant_id": tenant_id, "session_id": session_id, "user_id": user_id, "api_key_id": api_key_id, "batch_id": batch_id, "ttl_seconds": ttl_seconds, "timeout_ms": timeout_ms, "quota_period": quota_period, "traceparent": traceparent, "ids": list(ids), "request_ids": list(request_ids), "reserveds": list(reserveds)})


ADD_TRY_AUDITS = """\
insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
select %(tenant_id)s, n.id, n.action, n.target_kind, n.target_id, %(user_id)s, n.detail::jsonb
from (
  select
    unnest(%(ids)s::uuid[]) as id,
    unnest(%(actions)s::text[]) as action,
    unnest(%(target_kinds)s::text[]) as target_kind,
    unnest(%(target_ids)s::uuid[]) as target_id,
    unnest(%(details)s::text[]) as detail
) n
"""


async def add_try_audits(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    user_id: UUID | None,
    ids: Sequence[UUID | None],
    actions: Sequence[str | None],
    target_kinds: Sequence[str | None],
    target_ids: Sequence[UUID | None],
    details: Sequence[str | None],
) -> None:
    """One event a try, one array a column."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TRY_AUDITS, {"tenant_id": tenant_id, "user_id": user_id, "ids": list(ids), "actions": list(actions), "target_kinds": list(target_kinds), "target_ids": list(target_ids), "details": list(details)})


KEEP_SESSION = """\
select id
from sessions
where tenant_id = %(tenant_id)s and id = %(id)s and deleted_at is null
for share
"""


async def keep_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> UUID | None:
    """A session that is not deleted, and is not while the transaction goes on."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(KEEP_SESSION, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


COUNT_OUTSTANDING = """\
select (
  (select count(*) from tries w where w.tenant_id = %(tenant_id)s and w.status = 'queued')
  + (select count(*) from tries r where r.tenant_id = %(tenant_id)s and r.status = 'running')
)::bigint as tries
"""


async def count_outstanding(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> int | None:
    """Tries of the tenant that wait or run: two counts, each by its index."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(COUNT_OUTSTANDING, {"tenant_id": tenant_id})
    return await cursor.fetchone()


GET_TRY = """\
select
  t.id, t.session_id, s.created_by as session_owner, t.batch_id, r.variant, r.label, t.status, r.base_id, r.model,
  r.changes, r.texts, r.sent, r.excluded, r.request_sha256, r.tokens_before, r.tokens_after, r.purged_at, r.through_seq,
  p.answer, p.said, t.stop_reason, t.error_code, t.provider_status, t.attempt, t.created_at, t.started_at, t.finished_at,
  u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.cost_usd, u.estimated
from tries t
join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id and s.deleted_at is null
join try_requests r on r.tenant_id = t.tenant_id and r.id = t.request_id
left join try_payloads p on p.tenant_id = t.tenant_id and p.try_id = t.id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where t.tenant_id = %(tenant_id)s and t.id = %(id)s and (r.through_seq is not null) = %(is_preview)s::boolean
"""


@dataclass(frozen=True, slots=True)
class GetTryRow:
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
    texts: str | None
    sent: str
    excluded: str
    request_sha256: str
    tokens_before: int
    tokens_after: int
    purged_at: datetime | None
    through_seq: int | None
    answer: str | None
    said: str | None
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


async def get_try(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    is_preview: bool,
) -> GetTryRow | None:
    """A try, or the preview of a summary, with its texts and answer, of a session that is not deleted."""
    cursor = conn.cursor(row_factory=args_row(GetTryRow))
    await cursor.execute(GET_TRY, {"tenant_id": tenant_id, "id": id, "is_preview": is_preview})
    return await cursor.fetchone()


LIST_TRIES = """\
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
  and r.through_seq is null
  and (%(before)s::uuid is null or t.id < %(before)s::uuid)
order by t.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListTriesRow:
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


async def list_tries(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListTriesRow]:
    """Tries of a session, the newest first, without texts and answers."""
    cursor = conn.cursor(row_factory=args_row(ListTriesRow))
    await cursor.execute(LIST_TRIES, {"tenant_id": tenant_id, "session_id": session_id, "before": before, "most": most})
    return await cursor.fetchall()


LIST_TRY_REQUESTS = """\
select id, session_id, base_id, model, changes, texts, request_sha256, max_output_tokens, through_seq
from try_requests
where tenant_id = %(tenant_id)s and id = any (%(ids)s::uuid[])
"""


@dataclass(frozen=True, slots=True)
class ListTryRequestsRow:
    id: UUID
    session_id: UUID
    base_id: UUID
    model: str
    changes: str
    texts: str | None
    request_sha256: str
    max_output_tokens: int
    through_seq: int | None


async def list_try_requests(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> list[ListTryRequestsRow]:
    """What a worker needs to make calls again: the base of each and what is changed on it."""
    cursor = conn.cursor(row_factory=args_row(ListTryRequestsRow))
    await cursor.execute(LIST_TRY_REQUESTS, {"tenant_id": tenant_id, "ids": list(ids)})
    return await cursor.fetchall()


MARK_CALLED = """\
with held as (
  select t.id
  from tries t
  join (select unnest(%(ids)s::uuid[]) as id, unnest(%(attempts)s::integer[]) as attempt) n
    on n.id = t.id and n.attempt = t.attempt
  where t.tenant_id = %(tenant_id)s
    and t.id = any (%(ids)s::uuid[])
    and t.status = 'running'
    and t.lease_until > clock_timestamp()
    and t.called_at is null
    and t.cancel_requested_at is null
  order by t.id
  for update of t
)
update tries t
set called_at = clock_timestamp()
from held h
where t.tenant_id = %(tenant_id)s and t.id = any (%(ids)s::uuid[]) and t.id = h.id
returning t.id, t.attempt
"""


@dataclass(frozen=True, slots=True)
class MarkCalledRow:
    id: UUID
    attempt: int


async def mark_called(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
    attempts: Sequence[int | None],
) -> list[MarkCalledRow]:
    """Before the first byte goes out: no row, no call. Once for a claim, and not after a cancel or past the lease. One array a column; rows are locked in the order of whoever locks several."""
    cursor = conn.cursor(row_factory=args_row(MarkCalledRow))
    await cursor.execute(MARK_CALLED, {"tenant_id": tenant_id, "ids": list(ids), "attempts": list(attempts)})
    return await cursor.fetchall()


SETTLE_TRIES = """\
with asked as (
  select
    unnest(%(ids)s::uuid[]) as id,
    unnest(%(attempts)s::integer[]) as attempt,
    unnest(%(statuses)s::text[]) as status,
    unnest(%(error_codes)s::text[]) as error_code,
    unnest(%(stop_reasons)s::text[]) as stop_reason,
    unnest(%(provider_statuses)s::integer[]) as provider_status,
    unnest(%(provider_request_ids)s::text[]) as provider_request_id,
    unnest(%(usage_ids)s::uuid[]) as usage_id,
    unnest(%(input_tokens)s::bigint[]) as input_tokens,
    unnest(%(output_tokens)s::bigint[]) as output_tokens,
    unnest(%(cache_read_tokens)s::bigint[]) as cache_read_tokens,
    unnest(%(cache_write_tokens)s::bigint[]) as cache_write_tokens,
    unnest(%(costs_usd)s::numeric[]) as cost_usd,
    unnest(%(estimateds)s::boolean[]) as estimated,
    unnest(%(tokens)s::bigint[]) as tokens,
    unnest(%(answers)s::text[]) as answer,
    unnest(%(saids)s::text[]) as said,
    unnest(%(audit_ids)s::uuid[]) as audit_id
),
held as (
  select a.id, a.attempt
  from tries t
  join asked a on a.id = t.id and a.attempt = t.attempt
  where t.tenant_id = %(tenant_id)s
    and t.id = any (%(ids)s::uuid[])
    and t.status = 'running'
    and t.called_at is not null
    and (not %(lease_over)s::boolean or t.lease_until < clock_timestamp())
  order by t.id
  for update of t
),
ended as (
  update tries t
  set
    status = a.status,
    error_code = a.error_code,
    stop_reason = a.stop_reason,
    provider_status = a.provider_status,
    provider_request_id = a.provider_request_id,
    finished_at = clock_timestamp(),
    lease_owner = null,
    lease_until = null
  from held h
  join asked a on a.id = h.id and a.attempt = h.attempt
  where t.tenant_id = %(tenant_id)s and t.id = any (%(ids)s::uuid[]) and t.id = h.id
  returning t.tenant_id, t.id, t.session_id, t.user_id, t.request_id, t.quota_period, t.reserved, a.attempt
),
billed as (
  insert into usage_records (
    tenant_id, id, purpose, run_id, try_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost_usd, estimated
  )
  select
    e.tenant_id, a.usage_id, case when r.through_seq is null then 'context_try' else 'summary' end, null, e.id,
    e.session_id, e.user_id, r.model, a.input_tokens, a.output_tokens, a.cache_read_tokens, a.cache_write_tokens,
    a.cost_usd, a.estimated
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
),
sums as (
  select e.quota_period, sum(e.reserved)::bigint as reserved, sum(a.tokens)::bigint as tokens
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  group by e.quota_period
),
months as (
  select q.period
  from quotas q
  where q.tenant_id = %(tenant_id)s and q.period in (select s.quota_period from sums s)
  order by q.period
  for update
),
paid as (
  update quotas q
  set reserved = q.reserved - s.reserved, used = q.used + s.tokens
  from sums s, months m
  where q.tenant_id = %(tenant_id)s and q.period = s.quota_period and m.period = s.quota_period
),
kept as (
  insert into try_payloads (tenant_id, try_id, answer, said, expires_at)
  select
    e.tenant_id, e.id, a.answer, a.said, clock_timestamp() + make_interval(secs => %(retention_seconds)s::float8)
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
),
told as (
  insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
  select
    e.tenant_id, a.audit_id,
    case when r.through_seq is null then 'context.try_finished' else 'summary.preview_finished' end,
    case when r.through_seq is null then 'try' else 'summary_preview' end, e.id, e.user_id,
    jsonb_build_object('session_id', e.session_id, 'model', r.model, 'outcome', a.status, 'error', a.error_code)
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
)
select id, attempt::integer as attempt
from ended
"""


@dataclass(frozen=True, slots=True)
class SettleTriesRow:
    id: UUID
    attempt: int


async def settle_tries(
    conn: AsyncConnection[Any],
    *,
    ids: Sequence[UUID | None],
    attempts: Sequence[int | None],
    statuses: Sequence[str | None],
    error_codes: Sequence[str | None],
    stop_reasons: Sequence[str | None],
    provider_statuses: Sequence[int | None],
    provider_request_ids: Sequence[str | None],
    usage_ids: Sequence[UUID | None],
    input_tokens: Sequence[int | None],
    output_tokens: Sequence[int | None],
    cache_read_tokens: Sequence[int | None],
    cache_write_tokens: Sequence[int | None],
    costs_usd: Sequence[Decimal | None],
    estimateds: Sequence[bool | None],
    tokens: Sequence[int | None],
    answers: Sequence[str | None],
    saids: Sequence[str | None],
    audit_ids: Sequence[UUID | None],
    tenant_id: UUID,
    lease_over: bool,
    retention_seconds: float,
) -> list[SettleTriesRow]:
    """The ends of calls, one array a column: status, bill, quota, answer and audit of each in one statement. Those whose claim is no longer in force are missing in the answer and unchanged, so a second settle does nothing. `lease_over` lets only claims go whose worker has been silent for too long. Rows and months are locked in their order."""
    cursor = conn.cursor(row_factory=args_row(SettleTriesRow))
    await cursor.execute(SETTLE_TRIES, {"ids": list(ids), "attempts": list(attempts), "statuses": list(statuses), "error_codes": list(error_codes), "stop_reasons": list(stop_reasons), "provider_statuses": list(provider_statuses), "provider_request_ids": list(provider_request_ids), "usage_ids": list(usage_ids), "input_tokens": list(input_tokens), "output_tokens": list(output_tokens), "cache_read_tokens": list(cache_read_tokens), "cache_write_tokens": list(cache_write_tokens), "costs_usd": list(costs_usd), "estimateds": list(estimateds), "tokens": list(tokens), "answers": list(answers), "saids": list(saids), "audit_ids": list(audit_ids), "tenant_id": tenant_id, "lease_over": lease_over, "retention_seconds": retention_seconds})
    return await cursor.fetchall()


CORRECT_LOST = """\
with corrected as (
  update usage_records u
  set
    input_tokens = %(input_tokens)s,
    output_tokens = %(output_tokens)s,
    cache_read_tokens = %(cache_read_tokens)s,
    cache_write_tokens = %(cache_write_tokens)s,
    cost_usd = %(cost_usd)s::numeric,
    estimated = false
  from tries t
  where t.tenant_id = %(tenant_id)s
    and t.id = %(id)s
    and t.attempt = %(attempt)s
    and t.status = 'lost'
    and u.tenant_id = t.tenant_id
    and u.try_id = t.id
    and u.estimated
  returning t.tenant_id, t.quota_period, t.reserved
),
paid as (
  update quotas q
  set used = q.used - c.reserved + %(tokens)s::bigint
  from corrected c
  where q.tenant_id = c.tenant_id and q.period = c.quota_period
)
select reserved
from corrected
"""


async def correct_lost(
    conn: AsyncConnection[Any],
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    cost_usd: Decimal | None,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
    tokens: int,
) -> int | None:
    """The figures of a call that was given up as lost came after all: the estimated bill gets them, once."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(CORRECT_LOST, {"input_tokens": input_tokens, "output_tokens": output_tokens, "cache_read_tokens": cache_read_tokens, "cache_write_tokens": cache_write_tokens, "cost_usd": cost_usd, "tenant_id": tenant_id, "id": id, "attempt": attempt, "tokens": tokens})
    return await cursor.fetchone()


END_UNCALLED = """\
with ended as (
  update tries t
  set
    status = %(status)s,
    error_code = %(error_code)s,
    cancel_requested_at = case
      when %(status)s = 'cancelled' then coalesce(t.cancel_requested_at, clock_timestamp())
      else t.cancel_requested_at
    end,
    finished_at = clock_timestamp(),
    lease_owner = null,
    lease_until = null
  from (select unnest(%(ids)s::uuid[]) as id, unnest(%(audit_ids)s::uuid[]) as audit_id) n
  where t.tenant_id = %(tenant_id)s
    and t.id = any (%(ids)s::uuid[])
    and t.id = n.id
    and t.status = %(from_status)s
    and t.called_at is null
    and (%(attempt)s::integer is null or t.attempt = %(attempt)s::integer)
    and (%(status)s <> 'cancelled' or t.status = 'queued' or t.cancel_requested_at is not null)
  returning t.tenant_id, t.id, t.session_id, t.user_id, t.request_id, t.quota_period, t.reserved, n.audit_id
),
sums as (
  select e.quota_period, sum(e.reserved)::bigint as reserved
  from ended e
  group by e.quota_period
),
held as (
  select q.period
  from quotas q
  where q.tenant_id = %(tenant_id)s and q.period in (select s.quota_period from sums s)
  order by q.period
  for update
),
released as (
  update quotas q
  set reserved = q.reserved - s.reserved
  from sums s, held h
  where q.tenant_id = %(tenant_id)s and q.period = s.quota_period and h.period = s.quota_period
),
told as (
  insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
  select
    e.tenant_id, e.audit_id,
    case when r.through_seq is null then 'context.try_finished' else 'summary.preview_finished' end,
    case when r.through_seq is null then 'try' else 'summary_preview' end, e.id, e.user_id,
    jsonb_build_object('session_id', e.session_id, 'model', r.model, 'outcome', %(status)s, 'error', %(error_code)s)
  from ended e
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
)
select e.id, (case when r.through_seq is null then 'context_try' else 'summary' end)::text as purpose
from ended e
join try_requests r on r.tenant_id = %(tenant_id)s and r.id = e.request_id
"""


@dataclass(frozen=True, slots=True)
class EndUncalledRow:
    id: UUID
    purpose: str


async def end_uncalled(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    status: str,
    error_code: str | None,
    ids: Sequence[UUID | None],
    from_status: str,
    attempt: int | None,
    audit_ids: Sequence[UUID | None],
) -> list[EndUncalledRow]:
    """The end of tries whose call never began: nothing is billed, the reservation is given back. One array a column. Of those that a worker has, only one whose owner asked for it is cancelled. Months are locked in their order."""
    cursor = conn.cursor(row_factory=args_row(EndUncalledRow))
    await cursor.execute(END_UNCALLED, {"tenant_id": tenant_id, "status": status, "error_code": error_code, "ids": list(ids), "from_status": from_status, "attempt": attempt, "audit_ids": list(audit_ids)})
    return await cursor.fetchall()


DEFER_TRY = """\
update tries
set
  status = 'queued',
  deferrals = deferrals + 1,
  not_before = clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8),
  called_at = null,
  lease_owner = null,
  lease_until = null
where tenant_id = %(tenant_id)s
  and id = %(id)s
  and attempt = %(attempt)s
  and status = 'running'
  and deferrals < 5
  and cancel_requested_at is null
  and queue_expires_at > clock_timestamp() + make_interval(secs => %(delay_seconds)s::float8)
returning id
"""


async def defer_try(
    conn: AsyncConnection[Any],
    *,
    delay_seconds: float,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
) -> UUID | None:
    """The provider did not take the call: it waits again, without its mark, while there is time."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(DEFER_TRY, {"delay_seconds": delay_seconds, "tenant_id": tenant_id, "id": id, "attempt": attempt})
    return await cursor.fetchone()


GET_CANCEL = """\
select (cancel_requested_at is not null)::boolean as cancelled
from tries
where tenant_id = %(tenant_id)s and id = %(id)s and attempt = %(attempt)s and status = 'running'
"""


async def get_cancel(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
) -> bool | None:
    """Whether somebody wants a claimed try to be cancelled."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(GET_CANCEL, {"tenant_id": tenant_id, "id": id, "attempt": attempt})
    return await cursor.fetchone()


RESCUE_TRY = """\
update tries
set status = 'queued', rescues = rescues + 1, lease_owner = null, lease_until = null
where tenant_id = %(tenant_id)s
  and id = %(id)s
  and attempt = %(attempt)s
  and status = 'running'
  and lease_until < clock_timestamp()
  and called_at is null
  and cancel_requested_at is null
  and rescues < 3
returning id
"""


async def rescue_try(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
) -> UUID | None:
    """Its worker fell silent before the call: another may have it."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(RESCUE_TRY, {"tenant_id": tenant_id, "id": id, "attempt": attempt})
    return await cursor.fetchone()


HOLD_OPEN_TRIES = """\
select t.id, t.status
from tries t
where t.tenant_id = %(tenant_id)s
  and (t.status = 'queued' or t.status = 'running')
  and (%(id)s::uuid is null or t.id = %(id)s::uuid)
  and (%(batch_id)s::uuid is null or t.batch_id = %(batch_id)s::uuid)
  and (%(session_id)s::uuid is null or t.session_id = %(session_id)s::uuid)
  and (
    %(agent_id)s::uuid is null
    or t.session_id in (
      select s.id from sessions s where s.tenant_id = %(tenant_id)s and s.agent_id = %(agent_id)s::uuid
    )
  )
order by t.id
for update
"""


@dataclass(frozen=True, slots=True)
class HoldOpenTriesRow:
    id: UUID
    status: str


async def hold_open_tries(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID | None,
    batch_id: UUID | None,
    session_id: UUID | None,
    agent_id: UUID | None,
) -> list[HoldOpenTriesRow]:
    """The tries of one id, batch, session or agent that have not ended, held until the transaction ends."""
    cursor = conn.cursor(row_factory=args_row(HoldOpenTriesRow))
    await cursor.execute(HOLD_OPEN_TRIES, {"tenant_id": tenant_id, "id": id, "batch_id": batch_id, "session_id": session_id, "agent_id": agent_id})
    return await cursor.fetchall()


HOLD_EXPIRED = """\
select id
from tries
where tenant_id = %(tenant_id)s and status = 'queued' and queue_expires_at < statement_timestamp()
order by id
limit %(most)s
for update skip locked
"""


async def hold_expired(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    most: int,
) -> list[UUID]:
    """Tries that waited for too long, held until the transaction ends."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(HOLD_EXPIRED, {"tenant_id": tenant_id, "most": most})
    return await cursor.fetchall()


REQUEST_CANCEL = """\
update tries
set cancel_requested_at = clock_timestamp()
where tenant_id = %(tenant_id)s
  and id = any (%(ids)s::uuid[])
  and status = 'running'
  and cancel_requested_at is null
"""


async def request_cancel(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> None:
    """Ask the workers of running tries to end them."""
    cursor = conn.cursor()
    await cursor.execute(REQUEST_CANCEL, {"tenant_id": tenant_id, "ids": list(ids)})


PURGE_CONTENTS = """\
with due as (
  select r.id
  from try_requests r
  where r.tenant_id = %(tenant_id)s
    and r.purged_at is null
    and r.expires_at < now()
    and 0 = (
      select count(*)
      from tries t
      left join try_payloads p on p.tenant_id = t.tenant_id and p.try_id = t.id
      where t.tenant_id = r.tenant_id
        and t.request_id = r.id
        and (t.finished_at is null or p.expires_at >= now())
    )
  order by r.expires_at
  limit %(most)s
),
purged as (
  update try_requests r
  set texts = null, purged_at = clock_timestamp()
  where r.tenant_id = %(tenant_id)s and r.id = any (array(select d.id from due d))
  returning r.id
),
emptied as (
  delete from try_payloads p
  where p.tenant_id = %(tenant_id)s
    and p.try_id = any (
      array(
        select t.id
        from tries t
        where t.tenant_id = %(tenant_id)s and t.request_id = any (array(select u.id from purged u))
      )
    )
)
select count(*) as requests
from purged
"""


async def purge_contents(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    most: int,
) -> int | None:
    """Take the texts of so many old requests out, and all answers to them: at once, when every try of a request has ended and the time of its answer is over too. What is left says which parts were changed. Returns of how many. Without joins, which would go through all tries of the tenant when they were planned on few, and by a time that an index can be asked for."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(PURGE_CONTENTS, {"tenant_id": tenant_id, "most": most})
    return await cursor.fetchone()


FORGET_TRIES = """\
delete from tries f
where f.tenant_id = %(tenant_id)s
  and f.id = any (
    array(
      select t.id
      from tries t
      where t.tenant_id = %(tenant_id)s and t.finished_at < now() - make_interval(secs => %(age_seconds)s::float8)
      order by t.finished_at
      limit %(most)s
    )
  )
returning f.request_id
"""


async def forget_tries(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    age_seconds: float,
    most: int,
) -> list[UUID]:
    """So many tries that ended long ago. Their bills stay. Returns their requests."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FORGET_TRIES, {"tenant_id": tenant_id, "age_seconds": age_seconds, "most": most})
    return await cursor.fetchall()


FORGET_TRY_REQUESTS = """\
delete from try_requests r
where r.tenant_id = %(tenant_id)s
  and r.id = any (%(ids)s::uuid[])
  and not exists (select from tries t where t.tenant_id = r.tenant_id and t.request_id = r.id)
returning r.batch_id
"""


async def forget_try_requests(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> list[UUID | None]:
    """Those of these that no try is left for. Returns their batches."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FORGET_TRY_REQUESTS, {"tenant_id": tenant_id, "ids": list(ids)})
    return await cursor.fetchall()


FORGET_TRY_BATCHES = """\
delete from try_batches b
where b.tenant_id = %(tenant_id)s
  and b.id = any (%(ids)s::uuid[])
  and not exists (select from try_requests r where r.tenant_id = b.tenant_id and r.batch_id = b.id)
"""


async def forget_try_batches(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> None:
    """Those of these that no request is left of."""
    cursor = conn.cursor()
    await cursor.execute(FORGET_TRY_BATCHES, {"tenant_id": tenant_id, "ids": list(ids)})

