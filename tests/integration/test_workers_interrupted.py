"""A worker that is told to stop, loses its claim, loses PostgreSQL or dies: at most one call, and the bill is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hango.config import Settings
from hango.domain import TryID
from hango.messages import Usage
from hango.store import claims, try_claims
from hango.store.ids import new_id
from hango.tries import Claimed, TryError, TryStatus, TryUsage
from hango.workers import tries as workers
from hango.workers.held import Held
from hango.workers.outcomes import Ending
from hango.workers.reconciler import Reconciler
from hango.workers.together import Together
from tests.conftest import Database
from tests.picking import MOST_TOKENS, Asker, HeldBack, Work, die, held_back, make_asker, open_deps, picking
from tests.providers_server import FakeProvider
from tests.rows import make_tenant
from tests.tries import LEASE_OVER, Ledger, alter, ledger, rows_of
from tests.working import eventually, logged

ACTUAL = TryUsage(Usage(12, 3), None, estimated=False)
LEASE = 1.5  # short, but not so short that a busy machine takes it for silence


@dataclass(frozen=True)
class Running:
    """One try whose call is under way, until the test lets the model answer."""

    work: Work
    asker: Asker
    id: TryID
    model: HeldBack

    async def estimate(self) -> TryUsage:
        async with self.work.store.read(self.asker.principal) as scope:
            cursor = await scope.conn.execute("select reserved from tries where id = %s", (self.id,))
            ((reserved,),) = await cursor.fetchall()
        return TryUsage(try_claims.reservation(reserved, MOST_TOKENS), None, estimated=True)

    async def reconcile(self) -> None:
        """As an API process does when the lease is over."""
        await alter(self.work.store, self.asker.principal, LEASE_OVER, self.id)
        await reconciler(self.work).look_after()


def reconciler(work: Work) -> Reconciler:
    async def ring(_: int) -> None:
        return

    return Reconciler(work.deps, ring)


@asynccontextmanager
async def running(settings: Settings, fake: FakeProvider) -> AsyncIterator[Running]:
    model = held_back()
    fake.answer = model
    async with open_deps(settings) as deps, picking(deps) as work:
        asker = await make_asker(deps, await make_tenant(deps.store))
        (try_id,) = await asker.ask()
        await work.picker.ring()
        assert await eventually(lambda: model.under_way == 1)
        try:
            yield Running(work, asker, try_id, model)
        finally:
            model.free.set()


@pytest.fixture
async def one(work_settings: Settings, fake: FakeProvider) -> AsyncIterator[Running]:
    async with running(work_settings, fake) as made:
        yield made


@pytest.fixture
async def short(work_settings: Settings, fake: FakeProvider) -> AsyncIterator[Running]:
    """The same with a short lease, which is renewed several times a second."""
    async with running(replace(work_settings, context_try_lease=LEASE), fake) as made:
        yield made


async def test_a_cancel_ends_the_call_at_once(one: Running) -> None:
    """A running try is cancelled by the commit that asks for it; what may have been charged is estimated."""
    await one.asker.cancel(one.id)
    (ended,) = await one.asker.until([one.id])

    assert (ended.status, ended.error, ended.usage) == (
        TryStatus.CANCELLED,
        TryError.CANCELLED,
        await one.estimate(),
    )
    assert await eventually(lambda: one.model.gone == 1)
    assert (await ledger(one.work.store, one.asker.principal)).reserved == 0


async def test_a_cancel_that_nobody_heard_takes_effect_with_the_next_renewal(
    short: Running, fresh_database: Database
) -> None:
    """A cancel takes effect within one heartbeat."""
    async with await psycopg.AsyncConnection.connect(fresh_database.owner_dsn) as conn:
        await conn.execute("alter table tries disable trigger tries_cancel")

    await short.asker.cancel(short.id)
    (ended,) = await short.asker.until([short.id])

    assert (ended.status, ended.usage) == (TryStatus.CANCELLED, await short.estimate())
    assert await eventually(lambda: short.model.gone == 1)


async def test_a_lease_is_renewed_as_long_as_the_call_takes(short: Running) -> None:
    """A heartbeat every third of a lease: the reconciler finds nothing overdue."""
    await asyncio.wait_for(renewed(short), 20)
    await reconciler(short.work).look_after()
    short.model.free.set()
    (ended,) = await short.asker.until([short.id])

    assert (ended.status, ended.usage, ended.attempts) == (TryStatus.SUCCEEDED, ACTUAL, 1)


async def renewed(one: Running) -> None:
    """Returns when the try is held for longer than by its claim."""
    while True:
        async with one.work.store.read(one.asker.principal) as scope:
            cursor = await scope.conn.execute(
                "select lease_until > started_at + %s * interval '1 s' from tries", (LEASE * 1.5,)
            )
            ((longer,),) = await cursor.fetchall()
        if longer:
            return
        await asyncio.sleep(0.01)


async def test_a_late_answer_corrects_the_bill_of_a_lost_try(one: Running) -> None:
    """Zombie: state lost, one estimated row, then corrected by the late answer, once; the ledger is exact."""
    await one.reconcile()
    (lost,) = await one.asker.until([one.id])
    estimated = await ledger(one.work.store, one.asker.principal)
    one.model.free.set()
    await one.work.picker.stop()
    after = await one.asker.look(one.id)

    assert (lost.status, lost.error, lost.usage) == (TryStatus.LOST, TryError.WORKER_LOST, await one.estimate())
    assert (after.status, after.answer, after.usage) == (TryStatus.LOST, None, ACTUAL)
    assert estimated.reserved == 0
    assert await ledger(one.work.store, one.asker.principal) == Ledger(used=15, reserved=0)


async def test_a_worker_that_lost_its_claim_ends_the_call(short: Running) -> None:
    """No row in the renewal: we are a zombie, so the call is ended and nothing is settled."""
    await alter(short.work.store, short.asker.principal, "lease_owner = gen_random_uuid()", short.id)

    assert await eventually(lambda: short.model.gone == 1)
    await short.work.picker.stop()
    assert (await short.asker.look(short.id)).status is TryStatus.RUNNING
    await short.reconcile()
    (lost,) = await short.asker.until([short.id])
    assert (lost.status, lost.usage) == (TryStatus.LOST, await short.estimate())


async def test_three_renewals_that_fail_end_all_calls(short: Running, fresh_database: Database) -> None:
    """Three failures in a row: cancel the call, settle nothing."""
    with psycopg.connect(fresh_database.owner_dsn, autocommit=True) as conn:
        conn.execute("revoke update on tries from hango_system")

        assert await eventually(lambda: short.model.gone == 1)
        await short.work.picker.stop()
        assert (await short.asker.look(short.id)).status is TryStatus.RUNNING
        conn.execute("grant update on tries to hango_system")


async def test_a_lease_that_nobody_hears_of_ends_all_calls(short: Running, fresh_database: Database) -> None:
    """A renewal without an answer counts as a failure: after a lease the calls end, and nothing is settled."""
    async with await psycopg.AsyncConnection.connect(fresh_database.superuser_dsn) as conn:
        await conn.execute("select from tries where id = %s for update", (short.id,))

        assert await eventually(lambda: short.model.gone == 1)
        assert (await short.asker.look(short.id)).status is TryStatus.RUNNING
    await short.work.picker.stop()
    assert (await short.asker.look(short.id)).status is TryStatus.RUNNING


async def test_a_dead_workers_call_is_lost_and_not_repeated(one: Running, fake: FakeProvider) -> None:
    """The worker dies during the call: lost, billed by the estimate; no other worker calls again."""
    await die(one.work.picker)
    await one.reconcile()
    async with picking(one.work.deps) as other:
        await other.picker.ring()
    (lost,) = await one.asker.until([one.id])

    assert (lost.status, lost.error, lost.usage, len(fake.seen)) == (
        TryStatus.LOST,
        TryError.WORKER_LOST,
        await one.estimate(),
        1,
    )


async def test_an_end_is_written_down_when_postgres_is_back(one: Running, fresh_database: Database) -> None:
    """Settle is repeated through an absence of PostgreSQL, and settles once."""
    with logged() as lines, away(fresh_database):
        one.model.free.set()
        assert await eventually(lambda: one.model.under_way == 0)
        assert await eventually(lambda: any(line["event"] == "notifications_away" for line in lines()))
    (ended,) = await one.asker.until([one.id])

    assert (ended.status, ended.usage) == (TryStatus.SUCCEEDED, ACTUAL)
    assert await ledger(one.work.store, one.asker.principal) == Ledger(used=15, reserved=0)


@contextmanager
def away(database: Database) -> Any:
    """Nobody gets into the database, and whoever is in it is thrown out."""
    name = sql.Identifier(database.name)
    with psycopg.connect(database.superuser_dsn.replace(database.name, "postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("alter database {} allow_connections false").format(name))
        conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database.name,))
        try:
            yield
        finally:
            conn.execute(sql.SQL("alter database {} allow_connections true").format(name))


async def test_a_stopping_worker_ends_its_calls_first(one: Running, fake: FakeProvider) -> None:
    """SIGTERM: nothing more is claimed, the calls under way are settled, and a ring returns at once."""
    (waiting,) = await one.asker.ask()
    stopping = asyncio.create_task(one.work.picker.stop())
    await asyncio.sleep(0)
    await one.work.picker.ring()
    one.model.free.set()
    await stopping

    assert (await one.asker.look(one.id)).status is TryStatus.SUCCEEDED
    assert (await one.asker.look(waiting)).status is TryStatus.QUEUED
    assert len(fake.seen) == 1


async def claim_one(work: Work) -> Claimed:
    """As the picker does, which is not rung here."""
    async with work.store.system() as scope:
        (claimed,) = (await claims.claim(scope, new_id(), lease_seconds=30.0, cap=16, most=1)).claimed
    return claimed


async def bills(database: Database) -> int:
    return len(rows_of(database.superuser_dsn, "select id from usage_records"))


async def test_a_cancel_before_the_call_costs_nothing(
    work: Work, asker: Asker, fake: FakeProvider, fresh_database: Database
) -> None:
    """Cancelled between claim and mark: no call, no bill, the reservation is released."""
    (try_id,) = await asker.ask()
    claimed = await claim_one(work)
    await asker.cancel(try_id)

    assert await workers.see_through(work.deps, Together(work.deps), Held(claimed)) is None

    ended = await asker.look(try_id)
    assert (ended.status, ended.error, ended.usage, fake.seen) == (TryStatus.CANCELLED, TryError.CANCELLED, None, [])
    assert await ledger(work.store, asker.principal) == Ledger(used=0, reserved=0)
    assert await bills(fresh_database) == 0


@pytest.mark.parametrize("lost", [LEASE_OVER, "attempt = attempt + 1", "called_at = clock_timestamp()"])
async def test_without_a_claim_in_force_nothing_is_called(
    lost: str, work: Work, asker: Asker, fake: FakeProvider
) -> None:
    """The mark refuses when the lease is over, another has the try, or it was called: nothing is called or changed."""
    (try_id,) = await asker.ask()
    claimed = await claim_one(work)
    await alter(work.store, asker.principal, lost, try_id)

    assert await workers.see_through(work.deps, Together(work.deps), Held(claimed)) is None

    assert ((await asker.look(try_id)).status, fake.seen) == (TryStatus.RUNNING, [])


async def test_a_context_that_changed_is_not_sent(
    work: Work, asker: Asker, fake: FakeProvider, fresh_database: Database
) -> None:
    """What was inspected is what is paid: another request than the accepted one ends as context_changed, unbilled."""
    (try_id,) = await asker.ask()
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        conn.execute("update try_requests set request_sha256 = repeat('0', 64)")

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert (ended.status, ended.error, ended.usage, fake.seen) == (
        TryStatus.FAILED,
        TryError.CONTEXT_CHANGED,
        None,
        [],
    )
    assert await ledger(work.store, asker.principal) == Ledger(used=0, reserved=0)
    assert await bills(fresh_database) == 0


async def test_a_fault_before_the_call_ends_the_try_without_a_bill(
    work_settings: Settings, work: Work, fake: FakeProvider
) -> None:
    """A worker without the provider's key: failed as internal, nothing billed; the log has class and place."""
    await work.picker.stop()
    asker = await make_asker(work.deps, await make_tenant(work.store), model="openai/gpt-5")
    (try_id,) = await asker.ask()
    keyless = replace(work_settings, openai_api_key=None, openai_base_url="https://api.openai.com/v1")
    with logged() as lines:
        async with open_deps(keyless) as deps, picking(deps) as other:
            await other.picker.ring()
            (ended,) = await asker.until([try_id])

    assert (ended.status, ended.error, ended.usage, fake.seen) == (TryStatus.FAILED, TryError.INTERNAL, None, [])
    (line,) = [line for line in lines() if line["event"] == "unexpected_error"]
    assert (line["error"], line["try_id"], line["tenant_id"]) == (
        "builtins.AssertionError",
        str(try_id),
        str(asker.principal.tenant_id),
    )


async def test_a_call_that_is_given_up_before_it_began_is_not_settled(work: Work, asker: Asker) -> None:
    """Settle nothing when the claim is somebody else's: the reconciler decides."""
    (try_id,) = await asker.ask()
    held = Held(await claim_one(work))
    held.end(Ending.GIVEN_UP)

    assert await workers.see_through(work.deps, Together(work.deps), held) is None

    assert (await asker.look(try_id)).status is TryStatus.RUNNING


async def test_a_claim_that_fails_is_told_to_who_rang(work: Work, asker: Asker, fresh_database: Database) -> None:
    """On errors of the claim the picker lets go, and works again at the next ring."""
    (try_id,) = await asker.ask()
    with psycopg.connect(fresh_database.owner_dsn, autocommit=True) as conn:
        conn.execute("revoke update on tries from hango_system")
        with pytest.raises(Exception, match="refused a statement"):
            await work.picker.ring()
        conn.execute("grant update on tries to hango_system")

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert ended.status is TryStatus.SUCCEEDED
