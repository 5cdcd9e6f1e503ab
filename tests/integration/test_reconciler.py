"""The reconciler: whatever becomes of workers and Redis, every try ends, and the ledger is exact."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from hango.chain.deps import Deps
from hango.config import Settings
from hango.domain import TryID
from hango.store import claims, tries
from hango.tries import Try, TryError, TryStatus
from hango.workers.reconciler import BATCH, MOST_RINGS, Reconciler
from tests.conftest import Database
from tests.picking import Asker, make_asker, open_deps, picking
from tests.rows import make_tenant
from tests.tries import (
    ESTIMATE,
    LEASE_OVER,
    QUEUE_OVER,
    RESERVED,
    Desk,
    Ledger,
    admit,
    alter,
    ledger,
    make_desk,
    one_try,
    rows_of,
    take,
    variant,
)
from tests.working import eventually, logged


@pytest.fixture
async def deps(work_settings: Settings) -> AsyncIterator[Deps]:
    async with open_deps(work_settings) as opened:
        yield opened


@pytest.fixture
async def desk(deps: Deps) -> Desk:
    return await make_desk(deps.store, await make_tenant(deps.store))


@pytest.fixture
def rung() -> list[int]:
    """How often a worker was rung each time."""
    return []


@pytest.fixture
def reconciler(deps: Deps, rung: list[int]) -> Reconciler:
    async def ring(times: int) -> None:
        rung.append(times)

    return Reconciler(deps, ring)


async def look(deps: Deps, desk: Desk, try_id: UUID) -> Try:
    async with deps.store.read(desk.principal) as scope:
        found = await tries.get(scope, try_id)
    assert found is not None
    return found


async def asked(deps: Deps, desk: Desk, count: int) -> list[TryID]:
    async with deps.store.begin(desk.principal) as scope:
        return await admit(scope, desk, [variant()] * count)


@pytest.mark.parametrize("count", [0, 3, MOST_RINGS + 3])
async def test_it_rings_while_something_can_be_claimed(
    count: int, deps: Deps, desk: Desk, reconciler: Reconciler, rung: list[int]
) -> None:
    """A wiped Valkey costs at most one interval: it rings once for each try that waits, a few times at most."""
    await asked(deps, desk, count)

    await reconciler.look_after()

    assert rung == ([min(count, MOST_RINGS)] if count else [])


async def test_it_does_not_ring_for_what_may_not_be_claimed(
    deps: Deps, desk: Desk, reconciler: Reconciler, rung: list[int]
) -> None:
    """A try that a provider put off waits for its time; one that runs needs nobody."""
    put_off, running = await asked(deps, desk, 2)
    await alter(deps.store, desk.principal, "not_before = clock_timestamp() + interval '1 min'", put_off)
    await take(deps.store, desk.principal, running)

    await reconciler.look_after()

    assert rung == []


async def test_what_waited_too_long_expires(deps: Deps, reconciler: Reconciler, fresh_database: Database) -> None:
    """Past its time in the queue: expired, unbilled, the reservation released; of every tenant, and all of them."""
    desks = [await make_desk(deps.store, await make_tenant(deps.store)) for _ in range(2)]
    every = [(desk, await asked(deps, desk, BATCH + 5)) for desk in desks]
    for desk, ids in every:
        await alter(deps.store, desk.principal, QUEUE_OVER, *ids[1:])

    await reconciler.look_after()

    assert rows_of(
        fresh_database.superuser_dsn, "select status, error_code, count(*) from tries group by 1, 2 order by 1"
    ) == [
        {"status": "expired", "error_code": "queue_expired", "count": 2 * (BATCH + 4)},
        {"status": "queued", "error_code": None, "count": 2},
    ]
    for desk, ids in every:
        assert (await look(deps, desk, ids[-1])).usage is None
        assert await ledger(deps.store, desk.principal) == Ledger(used=0, reserved=RESERVED)


async def test_a_try_whose_worker_died_before_the_call_waits_again(
    deps: Deps, desk: Desk, reconciler: Reconciler
) -> None:
    """Running, lease out, not marked: queued again, up to three times; then failed as worker_lost, not billed."""
    try_id = await one_try(deps.store, desk)
    seen = []
    for _ in range(4):
        await take(deps.store, desk.principal, try_id)
        await alter(deps.store, desk.principal, LEASE_OVER, try_id)
        await reconciler.look_after()
        found = await look(deps, desk, try_id)
        seen.append((found.status, found.error))

    assert seen == [(TryStatus.QUEUED, None)] * 3 + [(TryStatus.FAILED, TryError.WORKER_LOST)]
    assert (found.attempts, found.usage) == (4, None)
    assert await ledger(deps.store, desk.principal) == Ledger(used=0, reserved=0)


async def test_a_cancelled_try_of_a_dead_worker_is_cancelled(deps: Deps, desk: Desk, reconciler: Reconciler) -> None:
    """Lease out, not called, a cancel asked for: it is not handed on."""
    try_id = await one_try(deps.store, desk)
    await take(deps.store, desk.principal, try_id)
    async with deps.store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=try_id)
    await alter(deps.store, desk.principal, LEASE_OVER, try_id)

    await reconciler.look_after()

    found = await look(deps, desk, try_id)
    assert (found.status, found.error, found.usage) == (TryStatus.CANCELLED, TryError.CANCELLED, None)
    assert await ledger(deps.store, desk.principal) == Ledger(used=0, reserved=0)


async def test_calls_of_a_dead_worker_are_lost(
    deps: Deps, desk: Desk, reconciler: Reconciler, fresh_database: Database
) -> None:
    """Running, lease out, marked: lost, billed by the estimate, in one go however many; an alarm in the log."""
    ids = await asked(deps, desk, BATCH + 5)
    await take(deps.store, desk.principal, *ids, called=True)
    await alter(deps.store, desk.principal, LEASE_OVER, *ids[1:])

    with logged() as lines:
        await reconciler.look_after()

    lost = await look(deps, desk, ids[-1])
    assert (lost.status, lost.error, lost.usage) == (
        TryStatus.LOST,
        TryError.WORKER_LOST,
        replace(ESTIMATE, cost_usd=0.0),
    )
    assert (await look(deps, desk, ids[0])).status is TryStatus.RUNNING
    assert await ledger(deps.store, desk.principal) == Ledger(used=(BATCH + 4) * RESERVED, reserved=RESERVED)
    assert {line["try_id"] for line in lines() if line["event"] == "try_lost"} == {str(one) for one in ids[1:]}


async def test_one_process_looks_after_tries_at_a_time(deps: Deps, desk: Desk, reconciler: Reconciler) -> None:
    """While another process is at it, this one leaves it alone."""
    try_id = await one_try(deps.store, desk)
    await alter(deps.store, desk.principal, QUEUE_OVER, try_id)
    async with deps.store.system() as other:
        held = await claims.hold_reconciler(other)
        await reconciler.look_after()
        during = (await look(deps, desk, try_id)).status
    await reconciler.look_after()

    assert (held, during, (await look(deps, desk, try_id)).status) == (True, TryStatus.QUEUED, TryStatus.EXPIRED)


@pytest.mark.parametrize(("how", "end"), [("called", TryStatus.LOST), ("waiting", TryStatus.EXPIRED)])
async def test_a_fault_of_one_keeps_no_other_waiting(
    how: str, end: TryStatus, deps: Deps, reconciler: Reconciler, fresh_database: Database
) -> None:
    """A tenant whose ledger the database refuses is logged and left; the others' tries end."""
    desks = [await make_desk(deps.store, await make_tenant(deps.store)) for _ in range(3)]
    ids = [await one_try(deps.store, desk) for desk in desks]
    for desk, try_id in zip(desks, ids, strict=True):
        if how == "called":
            await take(deps.store, desk.principal, try_id, called=True)
        await alter(deps.store, desk.principal, LEASE_OVER if how == "called" else QUEUE_OVER, try_id)
    broken = desks[1].principal.tenant_id
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        conn.execute("update quotas set reserved = 0 where tenant_id = %s", (broken,))

    with logged() as lines:
        await reconciler.look_after()

    statuses = [(await look(deps, desk, try_id)).status for desk, try_id in zip(desks, ids, strict=True)]
    left = TryStatus.RUNNING if how == "called" else TryStatus.QUEUED
    assert statuses == [end, left, end]
    (line,) = [line for line in lines() if line["event"] == "unexpected_error"]
    assert (line["tenant_id"], line["constraint"]) == (str(broken), "quotas_reserved_check")


async def test_what_should_not_be_is_an_alarm(
    deps: Deps, desk: Desk, reconciler: Reconciler, fresh_database: Database
) -> None:
    """Alert if reserved is not the sum of the live tries, or a live try is older than the bound."""
    first, second = await asked(deps, desk, 2)
    await alter(deps.store, desk.principal, QUEUE_OVER, first)
    with logged() as lines:
        await reconciler.check()
        quiet = lines()
        await alter(deps.store, desk.principal, "queue_expires_at = clock_timestamp() - interval '10 min'", second)
        with psycopg.connect(fresh_database.superuser_dsn) as conn:
            conn.execute("update quotas set reserved = reserved + 1")
        await reconciler.check()

    assert quiet == []
    assert [(line["level"], line["event"], line["ledgers"], line["overdue"]) for line in lines()] == [
        ("error", "tries_drift", 1, 1)
    ]


async def test_texts_and_answers_are_kept_for_their_time(
    deps: Deps, reconciler: Reconciler, fresh_database: Database
) -> None:
    """After RETENTION texts and answers of all tenants are gone: a GET says purged."""
    desks = [await make_desk(deps.store, await make_tenant(deps.store)) for _ in range(2)]
    ids = [await one_try(deps.store, desk) for desk in desks]
    for desk, try_id in zip(desks, ids, strict=True):
        await alter(deps.store, desk.principal, QUEUE_OVER, try_id)
    await reconciler.look_after()
    await reconciler.purge()
    kept = [(await look(deps, desk, try_id)).purged for desk, try_id in zip(desks, ids, strict=True)]
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        conn.execute("update try_requests set expires_at = now() - interval '1 s'")

    await reconciler.purge()

    found = [await look(deps, desk, try_id) for desk, try_id in zip(desks, ids, strict=True)]
    assert kept == [False, False]
    assert [(one.purged, one.texts) for one in found] == [(True, None), (True, None)]


@contextmanager
def refused(database: Database, what: str) -> Iterator[Any]:
    """hango_system may not do this to tries, for the time of the block."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as conn:
        conn.execute(f"revoke {what} on tries from hango_system".encode())
        yield
        conn.execute(f"grant {what} on tries to hango_system".encode())


async def test_it_goes_on_after_a_failure_and_says_it_once(
    work_settings: Settings, fresh_database: Database, rung: list[int]
) -> None:
    """Errors do not end it: the same one in a row is logged once, and the work goes on when it is over."""

    async def ring(times: int) -> None:
        rung.append(times)

    async with open_deps(replace(work_settings, context_try_reconcile=0.02)) as deps:
        desk = await make_desk(deps.store, await make_tenant(deps.store))
        reconciler = Reconciler(deps, ring)
        with logged() as lines, refused(fresh_database, "select"):
            reconciler.start()
            assert await eventually(lambda: len(lines()) > 0)
            try_id = await one_try(deps.store, desk)
        assert await eventually(lambda: rung != [])
        await alter(deps.store, desk.principal, QUEUE_OVER, try_id)
        async with asyncio.timeout(20):
            while (await look(deps, desk, try_id)).status is not TryStatus.EXPIRED:
                continue
        await reconciler.close()

    assert [(line["event"], line["error"]) for line in lines()] == [
        ("unexpected_error", "hango.store.failures.StatementRefused")
    ]


async def test_it_can_be_closed_before_it_was_started(reconciler: Reconciler) -> None:
    """A process whose start failed closes what it has."""
    await reconciler.close()


@pytest.fixture
async def asker(deps: Deps) -> Asker:
    return await make_asker(deps, await make_tenant(deps.store))


async def test_a_rescued_try_is_called_by_another_worker(deps: Deps, asker: Asker, reconciler: Reconciler) -> None:
    """The worker dies between claim and mark: another one makes the call, once, and bills it once."""
    (try_id,) = await asker.ask()
    await take(deps.store, asker.principal, try_id)
    await alter(deps.store, asker.principal, LEASE_OVER, try_id)
    await reconciler.look_after()
    async with picking(deps) as work:
        await work.picker.ring()
        (ended,) = await asker.until([try_id])

    assert (ended.status, ended.attempts) == (TryStatus.SUCCEEDED, 2)
    assert await ledger(deps.store, asker.principal) == Ledger(used=15, reserved=0)
