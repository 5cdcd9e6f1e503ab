"""kill -9 of a worker process at every step of a run: before, in and after a call, and in a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from hango.config import Settings
from hango.domain import RunID, RunStatus
from hango.runs import Run, RunError
from hango.store import claims, quotas
from hango.store.usage import total
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.picking import held_back, in_turn, open_deps
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RUN_LEASE_OVER, RunDesk, alter_run, make_run_desk
from tests.tries import Ledger, ledger, rows_of
from tests.worker_processes import Worker
from tests.working import eventually

WRITES = {
    "id": "a",
    "type": "function",
    "function": {"name": "write_file", "arguments": '{"path":"/notes.md","content":"Forty nuts."}'},
}
CALLS_A_TOOL = says(chat(None, finish_reason="tool_calls", tool_calls=[WRITES]))
DONE = says(chat("In drawer 4."))


@dataclass(frozen=True)
class World:
    """A worker process, which takes what waits when it starts and ends with the thread that started it, and a desk."""

    desk: RunDesk
    worker: Worker
    database: Database

    @contextmanager
    def locked(self, table: LiteralString) -> Iterator[None]:
        """The worker's next write of these rows waits until the block ends."""
        with psycopg.connect(self.database.superuser_dsn) as conn:
            conn.execute(sql.SQL("select from {} for update").format(sql.Identifier(table)))
            yield

    def is_stalled(self) -> bool:
        """Whether somebody waits for a lock."""
        waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return bool(rows_of(self.database.superuser_dsn, waits))

    async def after_the_kill(self, run_id: RunID) -> Run:
        """Its lease is over, another worker starts, and the run comes to its end."""
        deps = self.desk.deps

        async def ring(_: int) -> None:
            return

        await alter_run(deps.store, self.desk.principal, RUN_LEASE_OVER, run_id)
        await Reconciler(deps, ring).look_after()
        self.worker.start()
        return await self.desk.until(run_id)

    async def ledger(self) -> Ledger:
        return await ledger(self.desk.deps.store, self.desk.principal)

    async def drift(self) -> tuple[int, int]:
        async with self.desk.deps.store.system() as scope:
            return await claims.count_drift(scope, 3600.0)


@pytest.fixture
async def world(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database, tmp_path: Path
) -> AsyncIterator[World]:
    folder = tmp_path / "worker"
    folder.mkdir()
    environment = {
        "HANGO_HOME": str(folder),
        "HANGO_OPENAI_BASE_URL": f"{fake.url}/v1",
        "HANGO_OPENAI_API_KEY": "a key",
    }
    worker = Worker(folder, environment)
    worker.on(work_settings)
    async with open_deps(work_settings) as deps:
        desk = await make_run_desk(deps, await make_tenant(deps.store))
        try:
            yield World(desk, worker, fresh_database)
        finally:
            worker.stop()


async def test_killed_before_the_call(world: World, fake: FakeProvider) -> None:
    """Nothing went out: another worker makes the call, once."""
    run_id = await world.desk.start()
    async with world.desk.deps.store.begin(world.desk.principal) as scope:
        await quotas.reserve(scope, 0)  # the row of the month, which the worker is going to wait for
    with world.locked("quotas"):
        world.worker.start()
        assert await eventually(world.is_stalled)
        world.worker.kill()
    called = len(fake.seen)
    run = await world.after_the_kill(run_id)

    assert (called, len(fake.seen)) == (0, 1)
    assert (run.status, run.attempts) == (RunStatus.SUCCEEDED, 2)
    assert (await world.ledger(), await world.drift()) == (Ledger(used=15, reserved=0), (0, 0))


async def test_killed_in_a_call(world: World, fake: FakeProvider) -> None:
    """Nobody knows what came of it: failed with worker_lost, billed once by its estimate, never called again."""
    model = held_back()
    fake.answer = model
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 0, 1)
    assert run.usage is not None
    assert run.usage.estimated
    assert await world.ledger() == Ledger(used=total(run.usage.tokens), reserved=0)
    assert await world.drift() == (0, 0)


async def test_killed_before_an_answer_was_written_down(world: World, fake: FakeProvider) -> None:
    """The answer came and was lost with the worker: the same end and bill as in the call."""
    model = held_back()
    fake.answer = model
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    with world.locked("runs"):
        model.free.set()
        assert await eventually(lambda: model.under_way == 0 and world.is_stalled())
        world.worker.kill()
    run = await world.after_the_kill(run_id)
    history = await world.desk.history()

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 0, 1)
    assert history[-1] == ("user", '[{"type":"text","text":"And the nuts?"}]')
    assert await world.drift() == (0, 0)


async def test_killed_in_a_tool(world: World, fake: FakeProvider) -> None:
    """The tool's transaction rolls back and is done again by another worker; the answer before it is not paid twice."""
    fake.answer = in_turn(CALLS_A_TOOL, DONE)
    run_id = await world.desk.start()
    with world.locked("files"):
        world.worker.start()
        assert await eventually(world.is_stalled)
        world.worker.kill()
    before = await world.desk.read("/notes.md")
    run = await world.after_the_kill(run_id)
    versions = rows_of(world.database.superuser_dsn, "select version from files where path = '/notes.md'")

    assert before == "Forty bolts."
    assert (await world.desk.read("/notes.md"), versions) == ("Forty nuts.", [{"version": 2}])
    assert (run.status, run.turns, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 2, 2, 2)
    assert (await world.ledger(), await world.drift()) == (Ledger(used=30, reserved=0), (0, 0))


async def test_killed_after_a_tool(world: World, fake: FakeProvider) -> None:
    """Its results are there before the next call: killed in that one, the tool is not done again."""
    model = held_back()
    fake.answer = in_turn(CALLS_A_TOOL, model)
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)
    versions = rows_of(world.database.superuser_dsn, "select version from files where path = '/notes.md'")

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 1, 2)
    assert (await world.desk.read("/notes.md"), versions) == ("Forty nuts.", [{"version": 2}])
    assert await world.drift() == (0, 0)
