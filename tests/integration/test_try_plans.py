"""What a statement reads of the tables of tries: as much as it is about, whatever else is there.

A connection plans its statements once, perhaps when the tables are empty; so they are planned first and filled then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
import pytest

from hango.domain import BatchID, Principal, TryID
from hango.store import claims, retention, tries, try_batches, try_claims
from hango.store.connection import Connection, Scope, Store, SystemScope
from hango.tries import TryError, TryStatus
from tests.conftest import Database
from tests.rows import make_tenant
from tests.tries import ACTUAL, PLAIN, SUCCEEDED, Desk, admit, admit_batch, make_desk, take

CROWD = 10_000
REPEATS = 30
# Far over what any of these touches, far under the crowd: rows by index and by sequential scans, of all its tables.
MOST_ROWS_READ = 500


@dataclass(frozen=True, slots=True)
class Here:
    """Tries of one session in the states that statements look for."""

    desk: Desk
    batch_id: BatchID
    waiting: TryID
    claimed: list[TryID]
    called: list[TryID]
    ended: TryID
    request_id: UUID


Own = Callable[[Scope, Here], Awaitable[object]]
Unscoped = Callable[[SystemScope, Here], Awaitable[object]]

# In an order in which each finds something to do.
OWN: Mapping[str, Own] = {
    "admit": lambda s, h: admit(s, h.desk),
    "count": lambda s, h: tries.count_outstanding(s),
    "get": lambda s, h: tries.get(s, h.ended),
    "list": lambda s, h: tries.list_all(s, h.desk.session_id),
    "list batch": lambda s, h: tries.list_all(s, h.desk.session_id, batch_id=h.batch_id),
    "variants": lambda s, h: try_batches.variants(s, h.batch_id),
    "request": lambda s, h: try_claims.request(s, h.request_id),
    "rescue": lambda s, h: try_claims.rescue(s, h.claimed[0], 1),
    "end uncalled": lambda s, h: try_claims.end_uncalled(s, h.claimed[0], 1, TryStatus.FAILED, TryError.INTERNAL),
    "mark": lambda s, h: try_claims.mark_all_called(s, [(id, 1) for id in h.claimed]),
    "defer": lambda s, h: try_claims.defer(s, h.called[0], 1, 1.0),
    "settle": lambda s, h: try_claims.settle_all(s, {(id, 1): SUCCEEDED for id in h.called}, retention_seconds=-1),
    "correct": lambda s, h: try_claims.correct_lost(s, h.ended, 1, ACTUAL),
    "purge": lambda s, h: retention.purge(s),
    "expire": lambda s, h: tries.expire(s, 50),
    "cancel": lambda s, h: tries.cancel(s, try_id=h.waiting),
    "cancel batch": lambda s, h: tries.cancel(s, batch_id=h.batch_id),
}
UNSCOPED: Mapping[str, Unscoped] = {
    "count claimable": lambda s, h: claims.count_claimable(s, 8),
    "count drift": lambda s, h: claims.count_drift(s, 60.0),
    "hold overdue": lambda s, h: claims.hold_overdue(s, 50),
    "renew": lambda s, h: claims.renew(s, uuid4(), [(id, 1) for id in h.claimed], 30.0),
    "tenants with expired": lambda s, h: claims.tenants_with_expired(s, 50),
    "claim": lambda s, h: claims.claim(s, uuid4(), lease_seconds=30.0, cap=16, most=4),
}


@pytest.fixture
async def alone(fresh_database: Database) -> AsyncIterator[Store]:
    """One connection, on a database without the tries of other tests: it plans each statement once."""
    opened = await Store.open(fresh_database.app_dsn, max_size=1)
    yield opened
    await opened.close()


@pytest.fixture
async def admin_alone(alone: Store) -> Principal:
    return await make_tenant(alone)


async def some(store: Store, tenant: Principal) -> Here:
    desk = await make_desk(store, tenant)
    async with store.begin(desk.principal) as scope:
        batch_id, _ = await admit_batch(scope, desk, [PLAIN], repeats=REPEATS)
        waiting, ended, *others = await admit(scope, desk, [PLAIN] * 8, retention_seconds=-1)
        cursor = await scope.conn.execute("select request_id from tries where id = %s", (waiting,))
        ((request_id,),) = await cursor.fetchall()
    await take(store, desk.principal, *others[:3])
    await take(store, desk.principal, ended, *others[3:], called=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, ended, 1, SUCCEEDED, retention_seconds=60)
    return Here(desk, batch_id, waiting, others[:3], others[3:], ended, request_id)


async def test_no_statement_reads_what_it_is_not_about(
    alone: Store, admin_alone: Principal, fresh_database: Database
) -> None:
    """Beside 10,000 ended tries of the same tenant every statement reads a few rows, planned on an empty database or
    with all that PostgreSQL knows."""
    here = await some(alone, admin_alone)
    await read_by_each(alone, here)
    crowd(fresh_database, here.waiting, CROWD)
    planned_when_empty = await read_by_each(alone, await some(alone, admin_alone))
    with psycopg.connect(fresh_database.superuser_dsn, autocommit=True) as conn:
        conn.execute("vacuum analyze")
    planned_in_the_know = await read_by_each(alone, await some(alone, admin_alone))

    assert {name: rows for name, rows in planned_when_empty.items() if rows > MOST_ROWS_READ} == {}
    assert {name: rows for name, rows in planned_in_the_know.items() if rows > MOST_ROWS_READ} == {}


async def test_a_pick_reads_what_it_takes(alone: Store, admin_alone: Principal, fresh_database: Database) -> None:
    """Among 10,000 waiting tries a pick reads those that it takes, and the first of each tenant."""
    here = await some(alone, admin_alone)
    await read_by_each(alone, here)
    crowd(fresh_database, here.waiting, CROWD, waiting=True)
    async with alone.system() as scope:
        before = await rows_read(scope.conn)
        pick = await claims.claim(scope, uuid4(), lease_seconds=30.0, cap=16, most=4)
        rows = await rows_read(scope.conn) - before

    assert len(pick.claimed) == 4
    assert rows < 100


async def read_by_each(store: Store, here: Here) -> dict[str, int]:
    """How many rows each statement reads. Each is committed: after a rollback a connection plans anew."""
    found = {}
    for name, own in OWN.items():
        async with store.begin(here.desk.principal) as scope:
            before = await rows_read(scope.conn)
            await own(scope, here)
            found[name] = await rows_read(scope.conn) - before
    for name, unscoped in UNSCOPED.items():
        async with store.system() as scope_of_all:
            before = await rows_read(scope_of_all.conn)
            await unscoped(scope_of_all, here)
            found[name] = await rows_read(scope_of_all.conn) - before
    return found


async def rows_read(conn: Connection) -> int:
    """By this connection so far, of the tables that grow with each try."""
    cursor = await conn.execute(
        "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer from pg_stat_xact_user_tables"
        " where relname in ('tries', 'try_requests', 'try_payloads', 'usage_records')"
    )
    ((rows,),) = await cursor.fetchall()
    return int(rows)


def crowd(database: Database, like: UUID, count: int, *, waiting: bool = False) -> None:
    """So many tries like one that waits: waiting too, or ended, billed and with their answers."""
    with psycopg.connect(database.superuser_dsn) as conn:
        conn.execute(
            """
            create temporary table copies on commit drop as
            select t.tenant_id, t.request_id as like_request, gen_random_uuid() as id, gen_random_uuid() as request_id
            from tries t, generate_series(1, %s)
            where t.id = %s
            """,
            (count, like),
        )
        conn.execute(
            """
            insert into try_requests (
              tenant_id, id, session_id, base_id, model, changes, texts, sent, excluded, request_sha256, tokens_before,
              tokens_after, max_output_tokens, expires_at
            )
            select
              r.tenant_id, c.request_id, r.session_id, r.base_id, r.model, r.changes, r.texts, r.sent, r.excluded,
              r.request_sha256, r.tokens_before, r.tokens_after, r.max_output_tokens, now() + interval '1 day'
            from copies c
            join try_requests r on r.tenant_id = c.tenant_id and r.id = c.like_request
            """
        )
        conn.execute(
            """
            insert into tries (
              tenant_id, id, session_id, user_id, api_key_id, request_id, queue_expires_at, timeout_ms, quota_period,
              reserved
            )
            select
              t.tenant_id, c.id, t.session_id, t.user_id, t.api_key_id, c.request_id, now() + interval '1 hour',
              t.timeout_ms, t.quota_period, t.reserved
            from copies c
            join tries t on t.id = %s
            """,
            (like,),
        )
        if not waiting:
            conn.execute(
                """
                update tries t
                set status = 'failed', error_code = 'internal', called_at = now(), finished_at = now()
                from copies c
                where t.id = c.id
                """
            )
            conn.execute(
                """
                insert into usage_records (
                  tenant_id, id, purpose, try_id, session_id, user_id, model, input_tokens, output_tokens,
                  cache_read_tokens, cache_write_tokens
                )
                select t.tenant_id, gen_random_uuid(), 'context_try', t.id, t.session_id, t.user_id, 'a/x', 1, 1, 0, 0
                from tries t
                join copies c on c.id = t.id
                """
            )
            conn.execute(
                "insert into try_payloads (tenant_id, try_id, answer, expires_at)"
                " select tenant_id, id, '[]', now() + interval '1 hour' from copies"
            )
