"""Batches: made whole, counted exactly, told of once; and who is woken by which end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest

from hango.domain import BatchID, Principal, TryID
from hango.messages import Usage
from hango.store import tries, try_batches, try_claims
from hango.store.connection import Store
from hango.store.ids import new_id
from hango.tries import TryBatch, TryError, TryStatus, TryUsage, VariantSum
from tests.conftest import Database
from tests.tries import (
    PLAIN,
    REFUSED,
    RESERVED,
    RETENTION_SECONDS,
    SUCCEEDED,
    TIMED_OUT,
    Desk,
    Ledger,
    admit_batch,
    ledger,
    make_desk,
    one_try,
    take,
    variant,
)


@pytest.fixture
async def desk(store: Store, admin: Principal) -> Desk:
    return await make_desk(store, admin)


async def make_batch(store: Store, desk: Desk, labels: str = "a", repeats: int = 1) -> tuple[BatchID, list[TryID]]:
    async with store.begin(desk.principal) as scope:
        batch_id, made = await admit_batch(scope, desk, [variant(label) for label in labels], repeats)
    return batch_id, made


async def batch_of(store: Store, desk: Desk, batch_id: UUID) -> TryBatch:
    async with store.read(desk.principal) as scope:
        found = await try_batches.get(scope, batch_id)
    assert found is not None
    return found


class Told:
    """What a listener was told on a channel, in order."""

    def __init__(self, conn: psycopg.AsyncConnection) -> None:
        self._conn = conn

    async def until_now(self) -> list[str]:
        """All that was committed before this call: a word of its own ends the reading."""
        await self._conn.execute("select pg_notify('last', '')")
        heard: list[str] = []
        async for notice in self._conn.notifies(timeout=30, stop_after=None):
            if notice.channel == "last":
                return heard
            heard.append(notice.payload)
        raise AssertionError("the listener heard nothing of itself")


@asynccontextmanager
async def listening(database: Database, channel: str) -> AsyncIterator[Told]:
    async with await psycopg.AsyncConnection.connect(database.app_dsn, autocommit=True) as conn:
        await conn.execute(f"listen {channel}; listen last".encode())
        yield Told(conn)


async def test_a_batch_is_made_of_its_variants_and_repeats(store: Store, desk: Desk) -> None:
    """Every repeat of every variant is a try of its own, on one base; the batch counts those that have not ended."""
    batch_id, made = await make_batch(store, desk, "ab", repeats=2)
    batch = await batch_of(store, desk, batch_id)
    async with store.read(desk.principal) as scope:
        rows = (await tries.list_all(scope, desk.session_id, batch_id=batch_id)).data
        cursor = await scope.conn.execute("select distinct base_id from try_requests where batch_id = %s", (batch_id,))
        bases = await cursor.fetchall()

    assert batch == TryBatch(batch_id, desk.session_id, desk.principal.user_id, "a batch", 4, 4, batch.created_at, None)
    assert [(row.id, row.batch_id, row.variant, row.label) for row in reversed(rows)] == [
        (id, batch_id, variant, label)
        for id, (variant, label) in zip(made, [(0, "a"), (0, "a"), (1, "b"), (1, "b")], strict=True)
    ]
    assert bases == [(desk.base_id,)]
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=4 * RESERVED)


async def test_variants_are_summed_by_status(store: Store, desk: Desk) -> None:
    """A variant has its counts, the ids of its tries, and what those that were billed came to, estimated if one is."""
    batch_id, made = await make_batch(store, desk, "abc", repeats=2)
    for id, settlement in zip(made[:3], (SUCCEEDED, TIMED_OUT, REFUSED), strict=True):
        await take(store, desk.principal, id, called=True)
        async with store.begin(desk.principal) as scope:
            assert await try_claims.settle(scope, id, 1, settlement, retention_seconds=RETENTION_SECONDS)
    async with store.read(desk.principal) as scope:
        found = await try_batches.variants(scope, batch_id)

    assert found == [
        VariantSum(
            0,
            "a",
            {TryStatus.SUCCEEDED: 1, TryStatus.TIMED_OUT: 1},
            TryUsage(Usage(70, 45, 3, 2), 0.25, estimated=True),
            tuple(made[:2]),
        ),
        VariantSum(
            1,
            "b",
            {TryStatus.FAILED: 1, TryStatus.QUEUED: 1},
            TryUsage(Usage(), 0.0, estimated=False),
            tuple(made[2:4]),
        ),
        VariantSum(2, "c", {TryStatus.QUEUED: 2}, None, tuple(made[4:])),
    ]


async def test_variants_of_many_batches_stay_apart(store: Store, desk: Desk) -> None:
    """Those of each batch as they are alone; nothing for a batch that is not there."""
    made = [(await make_batch(store, desk, labels))[0] for labels in ("ab", "c")]
    nowhere = BatchID(new_id())
    async with store.read(desk.principal) as scope:
        alone = {id: await try_batches.variants(scope, id) for id in made}
        found = await try_batches.all_variants(scope, [*reversed(made), nowhere])

    assert found == {**alone, nowhere: []}
    assert [[one.label for one in found[id]] for id in made] == [["a", "b"], ["c"]]


async def test_batches_are_listed_newest_first(store: Store, desk: Desk) -> None:
    """The batches of a session come in pages; those of other sessions are not among them."""
    made = [(await make_batch(store, desk))[0] for _ in range(3)]
    await make_batch(store, await make_desk(store, desk.principal))
    async with store.read(desk.principal) as scope:
        first = await try_batches.list_all(scope, desk.session_id, limit=2)
        rest = await try_batches.list_all(scope, desk.session_id, limit=2, cursor=first.next_cursor)

    assert [*first.data, *rest.data] == [await batch_of(store, desk, id) for id in reversed(made)]
    assert (len(first.data), rest.next_cursor) == (2, None)


async def test_the_end_of_the_last_try_is_the_end_of_the_batch(store: Store, desk: Desk) -> None:
    """`remaining` falls by one an end, whatever kind of end, and the last one sets the batch's time."""
    batch_id, (answered, refused, cancelled) = await make_batch(store, desk, "abc")
    counts = []
    for id, settlement in ((answered, SUCCEEDED), (refused, REFUSED)):
        await take(store, desk.principal, id, called=True)
        async with store.begin(desk.principal) as scope:
            await try_claims.settle(scope, id, 1, settlement, retention_seconds=RETENTION_SECONDS)
        counts.append((await batch_of(store, desk, batch_id)).remaining)
    before = await batch_of(store, desk, batch_id)
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=cancelled)
    after = await batch_of(store, desk, batch_id)

    assert counts == [2, 1]
    assert before.finished_at is None
    assert after == replace(before, remaining=0, finished_at=after.finished_at)
    assert after.finished_at is not None


async def test_a_batch_is_cancelled_whole(store: Store, desk: Desk) -> None:
    """Those that wait end at once; the batch ends when its running ones do."""
    batch_id, made = await make_batch(store, desk, "abc", repeats=10)
    attempt = await take(store, desk.principal, *made[:2])
    for _ in range(2):
        async with store.begin(desk.principal) as scope:
            await tries.cancel(scope, batch_id=batch_id)
    between = await batch_of(store, desk, batch_id)
    for id in made[:2]:
        async with store.begin(desk.principal) as scope:
            cancelled = await try_claims.end_uncalled(scope, id, attempt, TryStatus.CANCELLED, TryError.CANCELLED)
            assert cancelled
    after = await batch_of(store, desk, batch_id)

    assert (between.remaining, between.finished_at) == (2, None)
    assert (after.remaining, after.finished_at is None) == (0, False)
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=0)


async def test_a_batch_counts_exactly_however_many_end_at_once(store: Store, desk: Desk) -> None:
    """40 tries that are settled, cancelled one by one and cancelled as a batch at the same time: 0 remain."""
    batch_id, made = await make_batch(store, desk, "a", repeats=40)
    await take(store, desk.principal, *made[:20], called=True)

    async def settle(id: TryID) -> None:
        async with store.begin(desk.principal) as scope:
            await try_claims.settle(scope, id, 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)

    async def cancel(id: TryID | None) -> None:
        async with store.begin(desk.principal) as scope:
            await (tries.cancel(scope, try_id=id) if id else tries.cancel(scope, batch_id=batch_id))

    ends = [settle(id) for id in made[:20]] + [cancel(id) for id in made[20:]]
    await asyncio.gather(*ends[::2], cancel(None), *ends[1::2])
    batch = await batch_of(store, desk, batch_id)

    assert (batch.remaining, batch.finished_at is None) == (0, False)
    assert await ledger(store, desk.principal) == Ledger(used=20 * 20, reserved=0)


async def test_an_end_is_told_with_its_commit_and_once(store: Store, desk: Desk, database: Database) -> None:
    """'done' names each try that ended and then its batch, once each, and nothing before the commit."""
    batch_id, (first, last) = await make_batch(store, desk, "ab")
    async with listening(database, "done") as told:
        await take(store, desk.principal, first, called=True)
        async with store.begin(desk.principal) as scope:
            await try_claims.settle(scope, first, 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)
            await try_claims.settle(scope, first, 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)
            before = await told.until_now()
        one = await told.until_now()
        for _ in range(2):
            async with store.begin(desk.principal) as scope:
                await tries.cancel(scope, batch_id=batch_id)
        rest = await told.until_now()

    assert (before, one) == ([], [str(first)])
    assert sorted(rest) == sorted([str(last), str(batch_id)])


async def test_nobody_is_told_of_what_is_rolled_back(store: Store, desk: Desk, database: Database) -> None:
    """An end that was not committed is no end."""
    try_id = await one_try(store, desk)
    async with listening(database, "done") as told:
        async with store.begin(desk.principal) as scope:
            await tries.cancel(scope, try_id=try_id)
            await scope.conn.rollback()
        assert await told.until_now() == []


async def test_a_worker_is_told_of_a_cancel_once(store: Store, desk: Desk, database: Database) -> None:
    """'cancel' names a running try when its cancel is asked for first; a waiting one needs no worker."""
    waiting, running = await one_try(store, desk), await one_try(store, desk, PLAIN)
    await take(store, desk.principal, running, called=True)
    async with listening(database, "cancel") as told:
        for id in (waiting, running, running):
            async with store.begin(desk.principal) as scope:
                await tries.cancel(scope, try_id=id)
        assert await told.until_now() == [str(running)]
