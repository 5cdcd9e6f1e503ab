"""Who locks what in which order: everything that changes tries, all at once, and nobody stands in another's way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from hango.chain.deps import Deps
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.errors import Unavailable
from hango.store import claims, retention, tries, try_claims
from hango.store.connection import Store
from hango.tries import Claimed, TryError, TryStatus
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.rows import make_tenant
from tests.tries import (
    PLAIN,
    REFUSED,
    RETENTION_SECONDS,
    SUCCEEDED,
    Desk,
    admit,
    admit_batch,
    make_desk,
    rows_of,
)

LEASE_SECONDS = 30.0
ROUNDS = 40
HANDS = 4  # of each kind of step, at once


@pytest.fixture
async def crowded(fresh_database: Database) -> AsyncIterator[Store]:
    """A store with a connection for everybody, on a database without the tries of other tests."""
    opened = await Store.open(fresh_database.app_dsn, max_size=24, wait_seconds=120)
    yield opened
    await opened.close()


class Crowd:
    """Steps that are taken again and again by many; what stands in the way of one is counted."""

    def __init__(self, store: Store, desks: list[Desk], reconciler: Reconciler, seed: int) -> None:
        self._store = store
        self._desks = desks
        self._reconciler = reconciler
        self._chance = random.Random(seed)
        self._batches: list[tuple[Desk, UUID]] = []
        self.done: Counter[str] = Counter()
        self.refused: list[str] = []

    async def admit(self) -> None:
        desk = self._desk()
        async with self._store.begin(desk.principal) as scope:
            await tries.hold_session(scope, desk.session_id)
            batch_id, _ = await admit_batch(scope, desk, [PLAIN], repeats=6)
            await admit(scope, desk, [PLAIN] * 2)
        self._batches.append((desk, batch_id))

    async def work(self) -> None:
        """Claim, renew, call, and end in one of all ways."""
        owner = uuid4()
        async with self._store.system() as scope:
            found = (await claims.claim(scope, owner, lease_seconds=LEASE_SECONDS, cap=50, most=6)).claimed
        async with self._store.system() as scope:
            held = [(claimed.id, claimed.attempt) for claimed in found]
            self._chance.shuffle(held)
            await claims.renew(scope, owner, held, LEASE_SECONDS)
        await asyncio.gather(*(self._end(claimed) for claimed in found))

    async def _end(self, claimed: Claimed) -> None:
        way = self._chance.choice(["answer", "answer", "defer", "stay", "uncalled"])
        async with self._store.begin(claimed.principal) as scope:
            if way == "uncalled":
                await try_claims.end_uncalled(
                    scope, claimed.id, claimed.attempt, TryStatus.FAILED, TryError.CONTEXT_CHANGED
                )
                return
            await try_claims.mark_all_called(scope, [(claimed.id, claimed.attempt)])
        async with self._store.begin(claimed.principal) as scope:
            if way == "answer":
                await try_claims.settle(
                    scope,
                    claimed.id,
                    claimed.attempt,
                    self._chance.choice([SUCCEEDED, REFUSED]),
                    retention_seconds=RETENTION_SECONDS,
                )
            elif way == "defer":
                await try_claims.defer(scope, claimed.id, claimed.attempt, 0.0)

    async def cancel_batch(self) -> None:
        if self._batches:
            desk, batch_id = self._chance.choice(self._batches)
            async with self._store.begin(desk.principal) as scope:
                await tries.cancel(scope, batch_id=batch_id)

    async def cancel_session(self) -> None:
        desk = self._desk()
        async with self._store.begin(desk.principal) as scope:
            await tries.cancel(scope, session_id=desk.session_id)

    async def silence(self) -> None:
        """Some workers fall silent and some tries run out of time; the reconciler comes."""
        desk = self._desk()
        async with self._store.read(desk.principal) as scope:
            every = [one.id for one in (await tries.list_all(scope, desk.session_id, limit=40)).data]
        # One at a time: a hand that locks several in an order of its own is not of the product.
        for id in self._chance.sample(every, len(every) // 4):
            async with self._store.begin(desk.principal) as scope:
                await scope.conn.execute(RUNNING_SILENT, (id,))
        await self._reconciler.look_after()

    async def purge(self) -> None:
        async with self._store.begin(self._desk().principal) as scope:
            await retention.purge(scope)

    async def go_on(self, step: Callable[[], Awaitable[None]]) -> None:
        for _ in range(ROUNDS):
            try:
                await step()
                self.done[step.__name__] += 1
            except Unavailable as error:
                self.refused.append(f"{step.__name__}: {error}")

    def _desk(self) -> Desk:
        return self._chance.choice(self._desks)


RUNNING_SILENT = (
    "update tries set lease_until = case when status = 'running' then clock_timestamp() - interval '1 s' end,"
    " queue_expires_at = case when status = 'queued' then clock_timestamp() - interval '1 s' else queue_expires_at end"
    " where id = %s and status in ('queued', 'running')"
)


@pytest.mark.parametrize("tenants", [1, 2])
async def test_nobody_stands_in_anothers_way(crowded: Store, fresh_database: Database, tenants: int) -> None:
    """Admissions, settles, deferrals, renewals, cancels of batches and sessions, the reconciler and the purge at once,
    in one tenant and in two: no deadlock, no error, and afterwards every count is right."""
    desks = [await make_desk(crowded, await make_tenant(crowded)) for _ in range(tenants)]
    # Two sessions of a tenant, so that its cancels meet in its quota alone.
    desks += [await make_desk(crowded, desk.principal) for desk in list(desks)]
    settings = Settings.from_env({"HANGO_DATABASE_URL": fresh_database.app_dsn})
    models = Models.load(None)
    reconciler = Reconciler(Deps(settings, crowded, Providers(settings, models), models), lambda _: asyncio.sleep(0))
    seed = random.randrange(2**32)
    crowd = Crowd(crowded, desks, reconciler, seed)

    steps = [crowd.admit, crowd.work, crowd.work, crowd.cancel_batch, crowd.cancel_session, crowd.silence, crowd.purge]
    await asyncio.gather(*(crowd.go_on(step) for step in steps for _ in range(HANDS // 2)))
    await end_all(crowded, desks, reconciler)
    wrong = rows_of(fresh_database.superuser_dsn, WRONG)
    async with crowded.system() as scope:
        drift = await claims.count_drift(scope, 0.0)

    assert crowd.refused == [], f"seed {seed}"
    assert wrong == [], f"seed {seed}"
    assert drift == (0, 0)
    ended = rows_of(fresh_database.superuser_dsn, "select distinct status from tries order by status")
    assert {"cancelled", "expired", "failed", "lost", "succeeded"} >= {row["status"] for row in ended}
    assert len(ended) >= 4


async def end_all(store: Store, desks: list[Desk], reconciler: Reconciler) -> None:
    for _ in range(2):
        for desk in desks:
            async with store.begin(desk.principal) as scope:
                await scope.conn.execute(
                    "update tries set lease_until = clock_timestamp() - interval '1 s' where status = 'running'"
                )
                await scope.conn.execute(
                    "update tries set queue_expires_at = clock_timestamp() - interval '1 s' where status = 'queued'"
                )
        await reconciler.look_after()


# Everything about which two tables may disagree.
WRONG = """
select 'not ended' as what, id from tries where finished_at is null
union all
select 'bill', t.id from tries t
where (t.called_at is not null) <> exists (select from usage_records u where u.try_id = t.id)
union all
select 'batch', b.id from try_batches b where b.remaining <> 0 or b.finished_at is null
union all
select 'quota', q.tenant_id from quotas q
where q.reserved <> 0 or q.used <> (
  select coalesce(sum(u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens), 0)
  from usage_records u where u.tenant_id = q.tenant_id
)
union all
select 'audit', t.id from tries t
where 2 <> (select count(*) from audit_events a where a.target_id = t.id)
"""
