"""Made by sqlc from runs.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_child_session', 'add_run', 'count_turn', 'end_run', 'find_active_run', 'find_child_session', 'get_claimed_run', 'get_run', 'hold_open_runs', 'hold_run', 'list_runs', 'request_run_cancel', 'requeue_run', 'set_last_run', 'use_skill']


ADD_RUN = """\
insert into runs (
  tenant_id, id, session_id, user_id, api_key_id, base_id, model, first_seq, overrides, status, queue_expires_at,
  timeout_ms, traceparent
)
values (
  %(tenant_id)s, %(id)s, %(session_id)s, %(user_id)s, %(api_key_id)s, %(base_id)s, %(model)s, %(first_seq)s, %(overrides)s, 'queued',
  clock_timestamp() + make_interval(secs => %(ttl_seconds)s::float8), %(timeout_ms)s, %(traceparent)s
)
on conflict (tenant_id, session_id) where status in ('queued', 'running') do nothing
returning id
"""


async def add_run(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    session_id: UUID,
    user_id: UUID,
    api_key_id: UUID,
    base_id: UUID,
    model: str,
    first_seq: int,
    overrides: int,
    ttl_seconds: float,
    timeout_ms: int,
    traceparent: str | None,
) -> UUID | None:
    """A run that waits for a worker; no row while another one of the session has not ended."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(ADD_RUN, {"tenant_id": tenant_id, "id": id, "session_id": session_id, "user_id": user_id, "api_key_id": api_key_id, "base_id": base_id, "model": model, "first_seq": first_seq, "overrides": overrides, "ttl_seconds": ttl_seconds, "timeout_ms": timeout_ms, "traceparent": traceparent})
    return await cursor.fetchone()


SET_LAST_RUN = """\
update sessions
set last_run_id = %(run_id)s
where tenant_id = %(tenant_id)s and id = %(session_id)s
"""


async def set_last_run(
    conn: AsyncConnection[Any],
    *,
    run_id: UUID | None,
    tenant_id: UUID,
    session_id: UUID,
) -> None:
    """The session's last run."""
    cursor = conn.cursor()
    await cursor.execute(SET_LAST_RUN, {"run_id": run_id, "tenant_id": tenant_id, "session_id": session_id})


GET_RUN = """\
select
  r.id, r.session_id, s.created_by as session_owner, r.status, r.turns, r.model, r.overrides, r.stop_reason,
  r.error_code, r.attempt, r.created_at, r.started_at, r.finished_at,
  u.calls, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.priced, u.cost_usd, u.estimated
from runs r
join sessions s on s.tenant_id = r.tenant_id and s.id = r.session_id and s.deleted_at is null
cross join lateral (
  select
    count(*) as calls,
    coalesce(sum(c.input_tokens), 0)::bigint as input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint as output_tokens,
    coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read_tokens,
    coalesce(sum(c.cache_write_tokens), 0)::bigint as cache_write_tokens,
    count(c.cost_usd) as priced,
    coalesce(sum(c.cost_usd), 0)::float8 as cost_usd,
    coalesce(bool_or(c.estimated), false)::boolean as estimated
  from usage_records c
  where c.tenant_id = r.tenant_id and c.run_id = r.id
) u
where r.tenant_id = %(tenant_id)s and r.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class GetRunRow:
    id: UUID
    session_id: UUID
    session_owner: UUID
    status: str
    turns: int
    model: str
    overrides: int
    stop_reason: str | None
    error_code: str | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    priced: int
    cost_usd: float
    estimated: bool


async def get_run(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetRunRow | None:
    """A run of a session that is not deleted, with what its calls came to."""
    cursor = conn.cursor(row_factory=args_row(GetRunRow))
    await cursor.execute(GET_RUN, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_RUNS = """\
select
  r.id, r.session_id, s.created_by as session_owner, r.status, r.turns, r.model, r.overrides, r.stop_reason,
  r.error_code, r.attempt, r.created_at, r.started_at, r.finished_at,
  u.calls, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.priced, u.cost_usd, u.estimated
from runs r
join sessions s on s.tenant_id = r.tenant_id and s.id = r.session_id and s.deleted_at is null
cross join lateral (
  select
    count(*) as calls,
    coalesce(sum(c.input_tokens), 0)::bigint as input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint as output_tokens,
    coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read_tokens,
    coalesce(sum(c.cache_write_tokens), 0)::bigint as cache_write_tokens,
    count(c.cost_usd) as priced,
    coalesce(sum(c.cost_usd), 0)::float8 as cost_usd,
    coalesce(bool_or(c.estimated), false)::boolean as estimated
  from usage_records c
  where c.tenant_id = r.tenant_id and c.run_id = r.id
) u
where r.tenant_id = %(tenant_id)s
  and r.session_id = %(session_id)s
  and (%(before)s::uuid is null or r.id < %(before)s::uuid)
order by r.id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListRunsRow:
    id: UUID
    session_id: UUID
    session_owner: UUID
    status: str
    turns: int
    model: str
    overrides: int
    stop_reason: str | None
    error_code: str | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    priced: int
    cost_usd: float
    estimated: bool


async def list_runs(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListRunsRow]:
    """The runs of a session, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListRunsRow))
    await cursor.execute(LIST_RUNS, {"tenant_id": tenant_id, "session_id": session_id, "before": before, "most": most})
    return await cursor.fetchall()


FIND_ACTIVE_RUN = """\
select id
from runs
where tenant_id = %(tenant_id)s and session_id = %(session_id)s and status in ('queued', 'running')
"""


async def find_active_run(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
) -> UUID | None:
    """The run of a session that has not ended."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FIND_ACTIVE_RUN, {"tenant_id": tenant_id, "session_id": session_id})
    return await cursor.fetchone()


HOLD_OPEN_RUNS = """\
select r.id, r.status
from runs r
where r.tenant_id = %(tenant_id)s
  and r.status in ('queued', 'running')
  and (%(id)s::uuid is null or r.id = %(id)s::uuid)
  and (%(session_id)s::uuid is null or r.session_id = %(session_id)s::uuid)
  and (
    %(agent_id)s::uuid is null
    or r.session_id in (
      select s.id from sessions s where s.tenant_id = %(tenant_id)s and s.agent_id = %(agent_id)s::uuid
    )
  )
order by r.id
for update
"""


@dataclass(frozen=True, slots=True)
class HoldOpenRunsRow:
    id: UUID
    status: str


async def hold_open_runs(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID | None,
    session_id: UUID | None,
    agent_id: UUID | None,
) -> list[HoldOpenRunsRow]:
    """The runs of one id, session or agent that have not ended, held until the transaction ends."""
    cursor = conn.cursor(row_factory=args_row(HoldOpenRunsRow))
    await cursor.execute(HOLD_OPEN_RUNS, {"tenant_id": tenant_id, "id": id, "session_id": session_id, "agent_id": agent_id})
    return await cursor.fetchall()


REQUEST_RUN_CANCEL = """\
update runs
set cancel_requested_at = clock_timestamp()
where tenant_id = %(tenant_id)s
  and id = any (%(ids)s::uuid[])
  and status = 'running'
  and cancel_requested_at is null
"""


async def request_run_cancel(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> None:
    """Ask the worker of a running run to end it."""
    cursor = conn.cursor()
    await cursor.execute(REQUEST_RUN_CANCEL, {"tenant_id": tenant_id, "ids": list(ids)})


HOLD_RUN = """\
select r.id, (r.cancel_requested_at is not null)::boolean as cancelled, r.turns, r.skill_version_id
from runs r
where r.tenant_id = %(tenant_id)s
  and r.id = %(id)s
  and r.attempt = %(attempt)s
  and r.status = 'running'
  and r.lease_until > clock_timestamp()
for update
"""


@dataclass(frozen=True, slots=True)
class HoldRunRow:
    id: UUID
    cancelled: bool
    turns: int
    skill_version_id: UUID | None


async def hold_run(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
) -> HoldRunRow | None:
    """A claimed run, held until the transaction ends: nothing when the claim is no longer in force."""
    cursor = conn.cursor(row_factory=args_row(HoldRunRow))
    await cursor.execute(HOLD_RUN, {"tenant_id": tenant_id, "id": id, "attempt": attempt})
    return await cursor.fetchone()


GET_CLAIMED_RUN = """\
select
  r.session_id, r.base_id, r.model, r.first_seq, r.skill_version_id, r.turns, r.overrides,
  exists (
    select from run_calls c where c.tenant_id = r.tenant_id and c.run_id = r.id and c.purpose = 'summary'
  )::boolean as has_compacted
from runs r
where r.tenant_id = %(tenant_id)s and r.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class GetClaimedRunRow:
    session_id: UUID
    base_id: UUID
    model: str
    first_seq: int
    skill_version_id: UUID | None
    turns: int
    overrides: int
    has_compacted: bool


async def get_claimed_run(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetClaimedRunRow | None:
    """What a worker needs to go on with a run."""
    cursor = conn.cursor(row_factory=args_row(GetClaimedRunRow))
    await cursor.execute(GET_CLAIMED_RUN, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


COUNT_TURN = """\
update runs
set turns = turns + 1
where tenant_id = %(tenant_id)s and id = %(id)s
"""


async def count_turn(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> None:
    """A call of the run's own conversation has been answered."""
    cursor = conn.cursor()
    await cursor.execute(COUNT_TURN, {"tenant_id": tenant_id, "id": id})


USE_SKILL = """\
update runs
set skill_version_id = %(skill_version_id)s
where tenant_id = %(tenant_id)s and id = %(id)s
"""


async def use_skill(
    conn: AsyncConnection[Any],
    *,
    skill_version_id: UUID | None,
    tenant_id: UUID,
    id: UUID,
) -> None:
    """The run has loaded a skill."""
    cursor = conn.cursor()
    await cursor.execute(USE_SKILL, {"skill_version_id": skill_version_id, "tenant_id": tenant_id, "id": id})


END_RUN = """\
update runs
set
  status = %(status)s,
  stop_reason = %(stop_reason)s,
  error_code = %(error_code)s,
  finished_at = clock_timestamp(),
  lease_owner = null,
  lease_until = null
where tenant_id = %(tenant_id)s
  and id = %(id)s
  and status = %(from_status)s
  and (%(attempt)s::integer is null or attempt = %(attempt)s::integer)
returning id
"""


async def end_run(
    conn: AsyncConnection[Any],
    *,
    status: str,
    stop_reason: str | None,
    error_code: str | None,
    tenant_id: UUID,
    id: UUID,
    from_status: str,
    attempt: int | None,
) -> UUID | None:
    """The end of a run; nothing when the claim is no longer in force. Without an attempt: of one that waits."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(END_RUN, {"status": status, "stop_reason": stop_reason, "error_code": error_code, "tenant_id": tenant_id, "id": id, "from_status": from_status, "attempt": attempt})
    return await cursor.fetchone()


REQUEUE_RUN = """\
update runs
set
  status = 'queued',
  rescues = rescues + %(rescues)s::integer,
  queue_expires_at = clock_timestamp() + make_interval(secs => timeout_ms / 1000.0),
  lease_owner = null,
  lease_until = null
where tenant_id = %(tenant_id)s
  and id = %(id)s
  and attempt = %(attempt)s
  and status = 'running'
  and cancel_requested_at is null
returning id
"""


async def requeue_run(
    conn: AsyncConnection[Any],
    *,
    rescues: int,
    tenant_id: UUID,
    id: UUID,
    attempt: int,
) -> UUID | None:
    """It waits again, for as long as it may take: its worker fell silent between two calls, or ends."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(REQUEUE_RUN, {"rescues": rescues, "tenant_id": tenant_id, "id": id, "attempt": attempt})
    return await cursor.fetchone()


FIND_CHILD_SESSION = """\
select id
from sessions
where tenant_id = %(tenant_id)s and parent_run_id = %(run_id)s and parent_call = %(parent_call)s
"""


async def find_child_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    run_id: UUID | None,
    parent_call: str | None,
) -> UUID | None:
    """The conversation of a subagent, by the call that started it."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FIND_CHILD_SESSION, {"tenant_id": tenant_id, "run_id": run_id, "parent_call": parent_call})
    return await cursor.fetchone()


ADD_CHILD_SESSION = """\
insert into sessions (tenant_id, id, agent_id, title, created_by, parent_run_id, parent_call)
values (%(tenant_id)s, %(id)s, %(agent_id)s, 'subagent', %(user_id)s, %(run_id)s, %(parent_call)s)
"""


async def add_child_session(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    agent_id: UUID,
    user_id: UUID,
    run_id: UUID | None,
    parent_call: str | None,
) -> None:
    """A conversation that nobody lists."""
    cursor = conn.cursor()
    await cursor.execute(ADD_CHILD_SESSION, {"tenant_id": tenant_id, "id": id, "agent_id": agent_id, "user_id": user_id, "run_id": run_id, "parent_call": parent_call})

