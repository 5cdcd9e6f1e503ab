"""A run whose worker loses its claim or dies: it goes on where it stood, and pays for no call twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from hango.config import Settings
from hango.domain import RunID, RunStatus
from hango.messages import StopReason, Usage
from hango.runs import RunError
from hango.store import claims, run_claims, runs
from hango.store.try_claims import reservation
from hango.tries import TryUsage
from hango.workers import runs as workers
from hango.workers.held import Held
from hango.workers.outcomes import Ending
from hango.workers.reconciler import Reconciler
from hango.workers.run_reconciler import MOST_RESCUES
from tests.conftest import Database
from tests.picking import MOST_TOKENS, HeldBack, Work, die, held_back, in_turn, open_deps, picking
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RUN_LEASE_OVER, RUN_QUEUE_OVER, RunDesk, alter_run, make_run_desk, take_run
from tests.tries import Ledger, ledger, rows_of
from tests.working import eventually

ONE_ANSWER = Ledger(used=15, reserved=0)
READS = {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"/notes.md"}'}}
CALLS_A_TOOL = says(chat(None, finish_reason="tool_calls", tool_calls=[READS]))


@dataclass(frozen=True)
class Running:
    """A run whose last call is under way, until the test lets the model answer."""

    work: Work
    desk: RunDesk
    id: RunID
    model: HeldBack

    async def estimate(self) -> TryUsage:
        async with self.work.store.read(self.desk.principal) as scope:
            cursor = await scope.conn.execute(
                "select reserved from run_calls where run_id = %s order by n desc limit 1", (self.id,)
            )
            ((reserved,),) = await cursor.fetchall()
        return TryUsage(reservation(reserved, MOST_TOKENS), None, estimated=True)

    async def silence(self) -> None:
        """The worker has not been heard of for a lease, and an API process looks after its runs."""
        await silence(self.work, self.desk, self.id)


def reconciler(work: Work) -> Reconciler:
    async def ring(_: int) -> None:
        return

    return Reconciler(work.deps, ring)


async def silence(work: Work, desk: RunDesk, run_id: RunID) -> None:
    await alter_run(work.store, desk.principal, RUN_LEASE_OVER, run_id)
    await reconciler(work).look_after()


async def no_drift(work: Work) -> tuple[int, int]:
    async with work.store.system() as scope:
        return await claims.count_drift(scope, 3600.0)


@pytest.fixture
async def desk(work: Work) -> RunDesk:
    return await make_run_desk(work.deps, await make_tenant(work.store))


@pytest.fixture
async def one(work: Work, desk: RunDesk, fake: FakeProvider) -> AsyncIterator[Running]:
    model = held_back()
    fake.answer = model
    run_id = await desk.start()
    await work.picker.ring()
    assert await eventually(lambda: model.under_way == 1)
    try:
        yield Running(work, desk, run_id, model)
    finally:
        model.free.set()


async def test_a_waiting_run_is_cancelled_at_once(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """Nobody has it yet: it ends in the transaction that asks for it, with its audit event, and is never called."""
    run_id = await desk.start()

    await desk.cancel(run_id)
    run = await desk.look(run_id)
    await work.picker.ring()

    assert (run.status, run.error, run.usage) == (RunStatus.CANCELLED, RunError.CANCELLED, None)
    assert fake.seen == []


async def test_a_cancel_ends_the_call_at_once(one: Running) -> None:
    """The call under way is broken off and billed by its estimate; nothing is appended."""
    before = await one.desk.history()

    await one.desk.cancel(one.id)
    run = await one.desk.until(one.id)

    assert (run.status, run.error, run.usage) == (RunStatus.CANCELLED, RunError.CANCELLED, await one.estimate())
    assert await eventually(lambda: one.model.gone == 1)
    assert await one.desk.history() == before
    assert (await ledger(one.work.store, one.desk.principal)).reserved == 0


async def test_a_cancel_ends_the_wait_for_a_busy_provider(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """A run that waits until a provider takes calls again does not wait to be cancelled."""
    fake.answer = says({}, status=529, headers={"retry-after": "50"})
    run_id = await desk.start()
    await work.picker.ring()
    await first_call_ended(desk, run_id)

    await desk.cancel(run_id)
    run = await desk.until(run_id)

    assert (run.status, run.usage) == (RunStatus.CANCELLED, TryUsage(Usage(), 0.0, estimated=False))


async def test_a_session_may_be_deleted_during_a_call(one: Running, fresh_database: Database) -> None:
    """Its run is cancelled, what may have been charged is billed, and nothing stays reserved."""
    await one.desk.delete_session()

    def statuses() -> list[dict[str, object]]:
        return rows_of(fresh_database.superuser_dsn, "select status, error_code, reserved from runs")

    assert await eventually(lambda: statuses()[0]["status"] != "running")
    assert statuses() == [{"status": "cancelled", "error_code": "cancelled", "reserved": 0}]
    assert await no_drift(one.work) == (0, 0)


async def test_a_worker_that_dies_in_a_call_loses_the_run(one: Running, fake: FakeProvider) -> None:
    """Nobody knows what came of the call: billed once by its estimate, failed with worker_lost, never called again."""
    await die(one.work.picker)
    await one.silence()
    await one.silence()
    run = await one.desk.look(one.id)

    assert (run.status, run.error, run.usage) == (RunStatus.FAILED, RunError.WORKER_LOST, await one.estimate())
    assert len(fake.seen) == 1
    assert await no_drift(one.work) == (0, 0)


async def test_a_late_answer_writes_nothing(one: Running) -> None:
    """A worker that was taken for dead hears its answer after all: the run has ended, and stays as it ended."""
    before = await one.desk.history()
    await one.silence()
    lost = await one.desk.look(one.id)

    one.model.free.set()
    assert await eventually(lambda: one.model.under_way == 0)
    await one.work.picker.stop()

    assert await one.desk.look(one.id) == lost
    assert await one.desk.history() == before
    assert lost.usage == await one.estimate()


async def test_a_run_goes_on_where_it_stood(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database
) -> None:
    """Killed after its first answer, before the tool: another worker carries the tool out and makes the next call."""
    fake.answer = in_turn(CALLS_A_TOOL, says(chat("In drawer 4.")))
    async with open_deps(work_settings) as deps:
        desk = await make_run_desk(deps, await make_tenant(deps.store))
        run_id = await desk.start()
        claimed = await take_run(deps.store, desk.principal, run_id)
        killed = Held(claimed)
        task = asyncio.create_task(workers.see_through(deps, killed))
        async with asyncio.timeout(20):
            while (await desk.look(run_id)).turns == 0:  # noqa: ASYNC110  PostgreSQL tells nobody
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        async with picking(deps) as work:
            await silence(work, desk, run_id)
            await work.picker.ring()
            run = await desk.until(run_id)
            history = await desk.history()

    assert (run.status, run.stop_reason, run.attempts, run.turns) == (
        RunStatus.SUCCEEDED,
        StopReason.END_TURN,
        2,
        2,
    )
    assert [role for role, _ in history[2:]] == ["user", "assistant", "user", "assistant"]
    assert len(fake.seen) == 2


async def test_a_worker_that_dies_before_the_call_costs_nothing(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """Claimed, then gone: another worker has it, and it is called once."""
    run_id = await desk.start()
    await take_run(work.store, desk.principal, run_id)

    await silence(work, desk, run_id)
    await work.picker.ring()
    run = await desk.until(run_id)

    assert (run.status, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 2, 1)
    assert await ledger(work.store, desk.principal) == ONE_ANSWER


async def test_a_run_that_takes_its_workers_down_ends(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """It is given to others a few times, then it has failed."""
    run_id = await desk.start()
    for _ in range(MOST_RESCUES + 1):
        await take_run(work.store, desk.principal, run_id)
        await silence(work, desk, run_id)

    run = await desk.look(run_id)

    assert (run.status, run.error, run.attempts) == (RunStatus.FAILED, RunError.WORKER_LOST, MOST_RESCUES + 1)
    assert fake.seen == []


async def test_a_silent_cancelled_run_is_cancelled(work: Work, desk: RunDesk) -> None:
    """Its worker died before it heard of the cancel: nobody goes on with it."""
    run_id = await desk.start()
    await take_run(work.store, desk.principal, run_id)
    await desk.cancel(run_id)

    await silence(work, desk, run_id)
    run = await desk.look(run_id)

    assert (run.status, run.error) == (RunStatus.CANCELLED, RunError.CANCELLED)


async def test_a_run_that_waited_too_long_expires(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """No worker took it in time: failed with queue_expired, and nobody claims it meanwhile."""
    run_id = await desk.start()
    await alter_run(work.store, desk.principal, RUN_QUEUE_OVER, run_id)

    await work.picker.ring()
    await reconciler(work).look_after()
    run = await desk.look(run_id)

    assert (run.status, run.error, run.attempts) == (RunStatus.FAILED, RunError.QUEUE_EXPIRED, 0)
    assert fake.seen == []


async def test_an_older_claim_writes_nothing(work: Work, desk: RunDesk) -> None:
    """Fencing: once a newer attempt has the run, the older one neither holds, rescues nor ends it."""
    run_id = await desk.start()
    old = await take_run(work.store, desk.principal, run_id)
    await silence(work, desk, run_id)
    new = await take_run(work.store, desk.principal, run_id)

    async with work.store.begin(desk.principal) as scope:
        tried = (
            await run_claims.hold(scope, run_id, old.attempt),
            await run_claims.rescue(scope, run_id, old.attempt),
            await runs.end(scope, run_id, old.attempt, RunStatus.SUCCEEDED),
        )
        kept = await run_claims.hold(scope, run_id, new.attempt)

    assert tried == (None, False, False)
    assert kept is not None


async def test_a_claim_past_its_lease_writes_nothing(work: Work, desk: RunDesk) -> None:
    """Nobody has taken the run over yet, and it may be at any moment: its worker holds it no more."""
    run_id = await desk.start()
    claimed = await take_run(work.store, desk.principal, run_id)
    await alter_run(work.store, desk.principal, RUN_LEASE_OVER, run_id)

    async with work.store.begin(desk.principal) as scope:
        held = await run_claims.hold(scope, run_id, claimed.attempt)

    assert held is None


async def test_a_given_up_run_ends_no_run(one: Running) -> None:
    """PostgreSQL was away for a lease: the worker lets go, and what becomes of the run is decided by its lease."""
    await alter_run(one.work.store, one.desk.principal, RUN_LEASE_OVER, one.id)
    for held in one.work.picker._held.values():
        for job in held:
            job.end(Ending.GIVEN_UP)
    assert await eventually(lambda: one.model.gone == 1)
    await one.work.picker.stop()

    run = await one.desk.look(one.id)

    assert (run.status, run.error, run.usage) == (RunStatus.RUNNING, None, None)
    assert json.loads((await one.desk.history())[-1][1]) == [{"type": "text", "text": "And the nuts?"}]


async def test_a_worker_that_is_told_to_stop_gives_its_run_back(one: Running, fake: FakeProvider) -> None:
    """The call under way is heard and written down; what comes after it is done by another worker, uncounted."""
    one.model.reply = chat(None, finish_reason="tool_calls", tool_calls=[READS])
    stopping = asyncio.create_task(one.work.picker.stop())
    await asyncio.sleep(0)
    one.model.free.set()
    await stopping
    given_back = await one.desk.look(one.id)
    fake.answer = says(chat("In drawer 4."))
    async with picking(one.work.deps):
        run = await one.desk.until(one.id)

    assert (given_back.status, given_back.turns) == (RunStatus.QUEUED, 1)
    assert (run.status, run.turns, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 2, 2, 2)
    assert await ledger(one.work.store, one.desk.principal) == Ledger(used=30, reserved=0)


async def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_busy_provider(
    work: Work, desk: RunDesk, fake: FakeProvider
) -> None:
    """A run that waits until its provider takes calls again holds no stop up: another worker makes the call."""
    fake.answer = in_turn(says({}, status=429, headers={"retry-after": "60"}), says(chat("In drawer 4.")))
    run_id = await desk.start()
    await work.picker.ring()
    await first_call_ended(desk, run_id)
    async with asyncio.timeout(10):
        await work.picker.stop()
    given_back = await desk.look(run_id)
    async with picking(work.deps):
        run = await desk.until(run_id)

    assert (given_back.status, given_back.turns) == (RunStatus.QUEUED, 0)
    assert (run.status, run.turns, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 1, 2, 2)
    assert await ledger(work.store, desk.principal) == ONE_ANSWER


async def first_call_ended(desk: RunDesk, run_id: RunID) -> None:
    async with asyncio.timeout(20):
        while not any(call.ended_at for call in await desk.calls(run_id)):  # noqa: ASYNC110  PostgreSQL tells nobody
            await asyncio.sleep(0.01)
