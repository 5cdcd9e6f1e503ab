"""The queue of runs across tenants: who is claimed, who is still alive, who is looked after."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest

from hango.config import Settings
from hango.domain import Role, RunID
from hango.runs import ClaimedRun
from hango.store import run_queue
from tests.conftest import Database
from tests.picking import open_deps
from tests.rows import make_tenant
from tests.run_desk import RUN_LEASE_OVER, RUN_QUEUE_OVER, RunDesk, alter_run, make_run_desk

LEASE_SECONDS = 30.0
Desks = list[RunDesk]  # nobody works on what these start


@pytest.fixture
async def desks(work_settings: Settings) -> AsyncIterator[Desks]:
    """Three of one tenant, one of another."""
    async with open_deps(work_settings) as deps:
        one, other = await make_tenant(deps.store), await make_tenant(deps.store)
        yield [await make_run_desk(deps, principal) for principal in (one, one, one, other)]


async def claim(desk: RunDesk, owner: UUID, *, cap: int = 10, most: int = 10) -> list[ClaimedRun]:
    async with desk.deps.store.system() as scope:
        return await run_queue.claim(scope, owner, lease_seconds=LEASE_SECONDS, cap=cap, most=most)


async def count(desk: RunDesk) -> int:
    async with desk.deps.store.system() as scope:
        return await run_queue.count_claimable(scope, 100)


async def test_a_claim_tells_a_worker_all_that_it_needs(desks: Desks) -> None:
    """A claimed run runs under its owner's name with no more rights than a member; the next claim gets nothing."""
    desk = desks[0]
    run_id = await desk.start(seconds=40.0)
    waiting = await count(desk)
    (claimed,) = await claim(desk, uuid4())

    assert claimed == ClaimedRun(
        principal=replace(desk.principal, role=Role.MEMBER),
        id=run_id,
        attempt=1,
        timeout_seconds=40.0,
        started_at=claimed.started_at,
        traceparent=None,
    )
    assert (waiting, await count(desk), await claim(desk, uuid4())) == (1, 0, [])


async def test_the_tenant_with_the_fewest_running_is_next(desks: Desks) -> None:
    """One tenant at a time, the oldest first, up to its cap; then the other one though it came last."""
    started = [await desk.start() for desk in desks]

    picks = [[one.id for one in await claim(desks[0], uuid4(), cap=2, most=most)] for most in (1, 1, 5, 5)]

    assert picks == [[started[0]], [started[3]], [started[1]], []]


async def test_no_run_is_taken_twice(desks: Desks) -> None:
    """Eight workers at once share what waits."""
    started = [await desk.start() for desk in desks]

    found = await asyncio.gather(*(claim(desks[0], uuid4(), most=1) for _ in range(8)))

    assert Counter(one.id for picked in found for one in picked) == Counter(started)


async def test_a_sign_of_life_tells_what_is_still_held(desks: Desks) -> None:
    """What another has, what has ended and what is of an older claim is missing; a cancel is told."""
    desk, owner = desks[0], uuid4()
    kept, cancelled = await desks[0].start(), await desks[1].start()
    await claim(desk, owner)
    foreign = await desks[3].start()
    await claim(desk, uuid4())
    await desks[1].cancel(cancelled)

    asked = [(kept, 1), (cancelled, 1), (foreign, 1), (RunID(uuid4()), 1)]
    async with desk.deps.store.system() as scope:
        found = await run_queue.renew(scope, owner, asked, LEASE_SECONDS)
        older = await run_queue.renew(scope, owner, [(kept, 2)], LEASE_SECONDS)

    assert (found, older) == ({kept: False, cancelled: True}, {})


async def test_a_held_run_keeps_no_lease_waiting(desks: Desks, fresh_database: Database) -> None:
    """The row of one is held, as during a tool: it is still the worker's, and the other one's lease is renewed."""
    desk, owner = desks[0], uuid4()
    held, other = await desks[0].start(), await desks[1].start()
    await claim(desk, owner)
    for one, run_id in ((desks[0], held), (desks[1], other)):
        await alter_run(one.deps.store, one.principal, RUN_LEASE_OVER, run_id)
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        conn.execute("select from runs where id = %s for update", [held])
        async with asyncio.timeout(10), desk.deps.store.system() as scope:
            found = await run_queue.renew(scope, owner, [(held, 1), (other, 1)], LEASE_SECONDS)
    async with desk.deps.store.system() as scope:
        overdue = await run_queue.hold_overdue(scope, 10)

    assert found == {held: False, other: False}
    assert [one.id for one in overdue] == [held]


async def test_silent_workers_are_found_whatever_their_tenant(desks: Desks) -> None:
    """Past its lease, a run is looked after; one that is held by somebody else right now is left alone."""
    desk = desks[0]
    ids = [await desks[0].start(), await desks[3].start()]
    for _ in range(2):
        await claim(desk, uuid4())
    before = await overdue(desk)
    for one, run_id in zip((desks[0], desks[3]), ids, strict=True):
        await alter_run(one.deps.store, one.principal, RUN_LEASE_OVER, run_id)
    async with desk.deps.store.system() as first:
        found = [one.id for one in await run_queue.hold_overdue(first, 10)]
        meanwhile = await overdue(desk)

    assert (before, sorted(found), meanwhile) == ([], sorted(ids), [])


async def test_what_waited_too_long_is_found_and_not_claimed(desks: Desks) -> None:
    """A run whose time to wait is over is found as such, on whose behalf it waited, and no worker gets it."""
    desk = desks[3]
    run_id = await desk.start()
    await alter_run(desk.deps.store, desk.principal, RUN_QUEUE_OVER, run_id)

    claimed, waiting = await claim(desk, uuid4()), await count(desk)
    async with desk.deps.store.system() as scope:
        expired = await run_queue.hold_expired(scope, 10)

    assert (claimed, waiting) == ([], 0)
    assert [(principal.tenant_id, id) for principal, id in expired] == [(desk.principal.tenant_id, run_id)]


async def overdue(desk: RunDesk) -> list[RunID]:
    async with desk.deps.store.system() as scope:
        return [one.id for one in await run_queue.hold_overdue(scope, 10)]
