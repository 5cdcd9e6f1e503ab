"""Tries to test the store with, made through the store, and what PostgreSQL says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hango.domain import BaseID, BatchID, Principal, SessionID, TryID
from hango.messages import StopReason, Usage
from hango.store import context_bases, quotas, tries, try_batches
from hango.store.connection import Scope, Store
from hango.store.ids import new_id
from hango.tries import Admission, Changes, NewRequest, Settlement, Texts, TryError, TryStatus, TryUsage
from tests.rows import make_agent, make_session

RETENTION_SECONDS = 24 * 3600.0
MODEL = "offline/extract"
RESERVED = 100
ACTUAL = TryUsage(Usage(10, 5, 3, 2), 0.25, estimated=False)
ACTUAL_TOKENS = 20
ESTIMATE = TryUsage(Usage(60, 40), None, estimated=True)  # all of RESERVED
SUCCEEDED = Settlement(
    TryStatus.SUCCEEDED,
    ACTUAL,
    answer='[{"type":"text","text":"Yes."}]',
    stop_reason=StopReason.END_TURN,
    provider_status=200,
    provider_request_id="req_1",
)
TIMED_OUT = Settlement(TryStatus.TIMED_OUT, ESTIMATE, TryError.TIMEOUT)
REFUSED = Settlement(
    TryStatus.FAILED,
    TryUsage(Usage(), 0.0, estimated=False),
    TryError.PROVIDER_REFUSED,
    said="no such model",
    provider_status=404,
)
LOST = Settlement(TryStatus.LOST, ESTIMATE, TryError.WORKER_LOST)


NOTHING = Changes()


@dataclass(frozen=True, slots=True)
class Desk:
    """A session to try things on, its base kept, and who asks."""

    principal: Principal
    session_id: SessionID
    base_id: BaseID


async def make_desk(store: Store, principal: Principal) -> Desk:
    async with store.begin(principal) as scope:
        return await lay_desk(scope)


async def lay_desk(scope: Scope) -> Desk:
    session = await make_session(scope, await make_agent(scope), ["a question", "an answer", "another"])
    current = await context_bases.current(scope, session.id)
    assert current is not None
    return Desk(scope.principal, session.id, await context_bases.find_or_create(scope, current))


def variant(label: str | None = None, changes: Changes = NOTHING, *, reserved: int = RESERVED) -> NewRequest:
    """What one call shall change. Each replacement's text names its part."""
    return NewRequest(
        label=label,
        model=MODEL,
        changes=changes,
        texts=Texts({part: f"instead of {part}" for part in changes.replace}, "and now?"),
        sent='["system:base"]',
        excluded="[]",
        request_sha256="5" * 64,
        tokens_before=60,
        tokens_after=50,
        max_output_tokens=40,
        reserved=reserved,
    )


PLAIN = variant()


async def admission(
    scope: Scope, tokens: int, *, ttl_seconds: float = 60.0, retention_seconds: float = RETENTION_SECONDS
) -> Admission:
    """The quota's month that holds these tokens, and the limits of a try. Raises QuotaExceeded."""
    return Admission(
        ttl_seconds=ttl_seconds,
        timeout_seconds=120.0,
        retention_seconds=retention_seconds,
        quota_period=await quotas.reserve(scope, tokens),
        traceparent=TRACEPARENT,
    )


async def admit(scope: Scope, desk: Desk, requests: Sequence[NewRequest] = (PLAIN,), **limits: float) -> list[TryID]:
    """Single tries, as POST try makes them: quota first, then the rows."""
    made: list[TryID] = []
    for request in requests:
        admitted = await admission(scope, request.reserved, **limits)
        made += await tries.create(scope, desk.session_id, desk.base_id, [request], admitted)
    return made


async def admit_batch(
    scope: Scope, desk: Desk, requests: Sequence[NewRequest] = (PLAIN,), repeats: int = 1
) -> tuple[BatchID, list[TryID]]:
    """A batch, as POST try-batches makes it: all of it or nothing."""
    admitted = await admission(scope, repeats * sum(request.reserved for request in requests), ttl_seconds=3600.0)
    count = len(requests) * repeats
    batch_id = BatchID(new_id())
    await try_batches.create(scope, batch_id, desk.session_id, desk.base_id, label="a batch", tries=count)
    made = await tries.create(
        scope, desk.session_id, desk.base_id, requests, admitted, repeats=repeats, batch_id=batch_id
    )
    return batch_id, made


async def one_try(store: Store, desk: Desk, request: NewRequest = PLAIN, **limits: float) -> TryID:
    async with store.begin(desk.principal) as scope:
        (made,) = await admit(scope, desk, [request], **limits)
    return made


async def take(store: Store, principal: Principal, *ids: UUID, called: bool = False, owner: UUID | None = None) -> int:
    """Have a worker claim these and no others, and mark their calls. Returns their attempt."""
    async with store.begin(principal) as scope:
        cursor = await scope.conn.execute(
            "update tries set status = 'running', attempt = attempt + 1, lease_owner = %s,"
            " lease_until = clock_timestamp() + interval '30 s', started_at = coalesce(started_at, clock_timestamp()),"
            " called_at = case when %s then clock_timestamp() end"
            " where tenant_id = %s and id = any (%s) and status = 'queued' returning attempt",
            (owner or uuid4(), called, scope.tenant_id, list(ids)),
        )
        attempts = {attempt for (attempt,) in await cursor.fetchall()}
    (attempt,) = attempts
    return int(attempt)


async def alter(store: Store, principal: Principal, what: LiteralString, *ids: UUID) -> None:
    """Put time forward: change columns of these tries, such as `lease_until = now() - interval '1 s'`."""
    statement = sql.SQL("update tries set {} where tenant_id = %s and id = any (%s)").format(sql.SQL(what))
    async with store.begin(principal) as scope:
        await scope.conn.execute(statement, (scope.tenant_id, list(ids)))


TRACEPARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
LEASE_OVER = "lease_until = clock_timestamp() - interval '1 s'"
QUEUE_OVER = "queue_expires_at = clock_timestamp() - interval '1 s'"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a tenant owes and holds."""

    used: int
    reserved: int


async def ledger(store: Store, principal: Principal) -> Ledger:
    async with store.read(principal) as scope:
        cursor = await scope.conn.execute("select coalesce(sum(used), 0), coalesce(sum(reserved), 0) from quotas")
        ((used, reserved),) = await cursor.fetchall()
    return Ledger(int(used), int(reserved))


def rows_of(dsn: str, query: str, *values: Any) -> list[dict[str, Any]]:
    """What a statement finds, as the superuser sees it."""
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        return conn.execute(query.encode(), values).fetchall()
