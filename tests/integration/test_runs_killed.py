"""kill -9 of a worker process at every step of a run: before, in and after a call, in a tool, a subagent, a summary.

Whatever was struck: the provider was asked for no call twice, the rules of docs/faults.md hold, and the next run works.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from hango.agent_definition import Compaction
from hango.config import Settings
from hango.domain import Purpose, RunID, RunStatus
from hango.runs import Run, RunError
from hango.store import quotas, sessions
from hango.store.usage import total
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.faults.history import install
from tests.faults.invariants import broken_rules
from tests.picking import held_back, in_turn, open_deps, picking
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RUN_LEASE_OVER, RunDesk, alter_run, calling, make_run_desk
from tests.tries import Ledger, ledger, rows_of
from tests.worker_processes import Worker
from tests.working import eventually

WRITES = calling("write_file", path="/notes.md", content="Forty nuts.")
DELEGATES = calling("task", description="Count the nuts.")
DONE = says(chat("In drawer 4."))
# `hango worker`, for which an answer may take a fifth of a second to be written down.
SHORT_SETTLE = """
from hango.config import Settings
from hango.workers.main import run
from hango.workers.picker import make_picker
run(Settings.from_env(), make_picker, settle_seconds=0.2)
"""
SOUND: tuple[RunStatus, dict[str, list[object]]] = (RunStatus.SUCCEEDED, {})
TEXTS = [f"{'A question' if n % 2 == 0 else 'An answer'} number {n}: {'many words ' * 20}" for n in range(10)]


@dataclass(frozen=True)
class World:
    """A worker process, which takes what waits when it starts and ends with the thread that started it, and a desk."""

    desk: RunDesk
    worker: Worker
    database: Database
    fake: FakeProvider

    @contextmanager
    def locked(self, table: LiteralString) -> Iterator[None]:
        """The worker's next write of these rows waits until the block ends."""
        with psycopg.connect(self.database.superuser_dsn) as conn:
            conn.execute(sql.SQL("select from {} for update").format(sql.Identifier(table)))
            yield

    @contextmanager
    def closed(self, table: LiteralString) -> Iterator[None]:
        """As `locked`, of rows to come."""
        with psycopg.connect(self.database.superuser_dsn) as conn:
            conn.execute(sql.SQL("lock table {} in exclusive mode").format(sql.Identifier(table)))
            yield

    def is_stalled(self) -> bool:
        """Whether somebody waits for a lock."""
        waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return bool(rows_of(self.database.superuser_dsn, waits))

    def is_calling(self) -> bool:
        """Whether a call has been written down that has no end."""
        return bool(rows_of(self.database.superuser_dsn, "select from run_calls where ended_at is null"))

    async def after_the_kill(self, run_id: RunID) -> Run:
        """Its lease is over, another worker starts, and the run comes to its end."""
        deps = self.desk.deps

        async def ring(_: int) -> None:
            return

        await alter_run(deps.store, self.desk.principal, RUN_LEASE_OVER, run_id)
        await Reconciler(deps, ring).look_after()
        async with picking(deps):
            return await self.desk.until(run_id)

    async def next_run(self) -> tuple[RunStatus, dict[str, list[object]]]:
        """How a run on the same session ends, and which rules are broken then."""
        self.fake.answer = DONE
        run_id = await self.desk.start("And the screws?")
        async with picking(self.desk.deps):
            run = await self.desk.until(run_id)
        with psycopg.connect(self.database.superuser_dsn) as conn:
            return run.status, {rule: found for rule, found in broken_rules(conn).items() if found}

    async def ledger(self) -> Ledger:
        return await ledger(self.desk.deps.store, self.desk.principal)


@pytest.fixture
def environment(fake: FakeProvider, tmp_path: Path) -> dict[str, str]:
    return {
        "HANGO_HOME": str(tmp_path),
        "HANGO_OPENAI_BASE_URL": f"{fake.url}/v1",
        "HANGO_OPENAI_API_KEY": "a key",
    }


@pytest.fixture
async def world(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database, environment: dict[str, str], tmp_path: Path
) -> AsyncIterator[World]:
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        install(conn)
    worker = Worker(tmp_path, environment)
    worker.on(work_settings)
    async with open_deps(work_settings) as deps:
        desk = await make_run_desk(deps, await make_tenant(deps.store))
        try:
            yield World(desk, worker, fresh_database, fake)
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
    assert await world.ledger() == Ledger(used=15, reserved=0)
    assert await world.next_run() == SOUND


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
    assert await world.next_run() == SOUND


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
    assert await world.next_run() == SOUND


async def test_killed_in_a_tool(world: World, fake: FakeProvider) -> None:
    """The tool's transaction rolls back and is done again by another worker; the answer before it is not paid twice."""
    fake.answer = in_turn(WRITES, DONE)
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
    assert await world.ledger() == Ledger(used=30, reserved=0)
    assert await world.next_run() == SOUND


async def test_killed_after_a_tool(world: World, fake: FakeProvider) -> None:
    """Its results are there before the next call: killed in that one, the tool is not done again."""
    model = held_back()
    fake.answer = in_turn(WRITES, model)
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)
    versions = rows_of(world.database.superuser_dsn, "select version from files where path = '/notes.md'")

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 1, 2)
    assert (await world.desk.read("/notes.md"), versions) == ("Forty nuts.", [{"version": 2}])
    assert await world.next_run() == SOUND


async def test_killed_before_a_byte_of_a_call_was_sent(
    world: World, environment: dict[str, str], work_settings: Settings, fake: FakeProvider, tmp_path: Path
) -> None:
    """The call is written down and its connection is not made: nobody can know that, so it ends as one under way."""
    with a_full_door() as url:
        worker = Worker(tmp_path, {**environment, "HANGO_OPENAI_BASE_URL": url})
        worker.on(work_settings)
        run_id = await world.desk.start()
        worker.start()
        assert await eventually(world.is_calling)
        worker.kill()
    run = await world.after_the_kill(run_id)

    assert (run.status, run.error, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 0)
    assert run.usage is not None
    assert run.usage.estimated
    assert await world.next_run() == SOUND


async def test_killed_in_a_subagents_call(world: World, fake: FakeProvider) -> None:
    """Lost as any other call, billed as the subagent's; the call of `task` stays without a result and harms nobody."""
    model = held_back()
    fake.answer = in_turn(DELEGATES, model)
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)
    calls = await world.desk.calls(run_id)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 1, 2)
    assert [(one.purpose, one.error, one.usage is not None and one.usage.estimated) for one in calls] == [
        (Purpose.RUN, None, False),
        (Purpose.SUBAGENT, RunError.WORKER_LOST, True),
    ]
    assert await world.next_run() == SOUND


async def test_killed_in_a_subagents_tool(world: World, fake: FakeProvider) -> None:
    """Another worker goes on in the conversation that it finds: each call is made once, and the tool is done once."""
    fake.answer = in_turn(DELEGATES, WRITES, says(chat("Forty nuts.")), DONE)
    run_id = await world.desk.start()
    with world.locked("files"):
        world.worker.start()
        assert await eventually(world.is_stalled)
        world.worker.kill()
    called = len(fake.seen)
    run = await world.after_the_kill(run_id)
    children = rows_of(
        world.database.superuser_dsn, "select count(*) as n from sessions where parent_run_id is not null"
    )

    assert (called, len(fake.seen)) == (2, 4)
    assert (run.status, run.turns, run.attempts, children) == (RunStatus.SUCCEEDED, 2, 2, [{"n": 1}])
    assert await world.desk.read("/notes.md") == "Forty nuts."
    assert await world.next_run() == SOUND


async def test_killed_in_a_summary_call(world: World, fake: FakeProvider) -> None:
    """No summary comes of it, and it is billed as one by its estimate; the next run makes it anew."""
    world = await with_a_long_history(world)
    model = held_back("Drawers were spoken of.")
    fake.answer = model
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)
    (call,) = await world.desk.calls(run_id)
    kept = await summary_of(world)

    assert (run.status, run.error, run.turns, kept) == (RunStatus.FAILED, RunError.WORKER_LOST, 0, None)
    assert (call.purpose, call.usage is not None and call.usage.estimated) == (Purpose.SUMMARY, True)
    assert await world.next_run() == SOUND
    assert await summary_of(world) == "In drawer 4."


async def test_killed_after_a_summary(world: World, fake: FakeProvider) -> None:
    """It was paid for and is in force: killed in the call that follows, it is not made again."""
    world = await with_a_long_history(world)
    model = held_back()
    fake.answer = in_turn(says(chat("Drawers were spoken of.")), model)
    run_id = await world.desk.start()
    world.worker.start()
    assert await eventually(lambda: model.under_way == 1)
    world.worker.kill()
    run = await world.after_the_kill(run_id)
    calls = await world.desk.calls(run_id)

    assert (run.status, run.error, await summary_of(world)) == (
        RunStatus.FAILED,
        RunError.WORKER_LOST,
        "Drawers were spoken of.",
    )
    assert [(one.purpose, one.error) for one in calls] == [
        (Purpose.SUMMARY, None),
        (Purpose.RUN, RunError.WORKER_LOST),
    ]
    assert await world.next_run() == SOUND


async def test_killed_right_before_the_end(world: World, fake: FakeProvider) -> None:
    """The last answer is written down, the end is not: another worker writes it, and calls nobody."""
    run_id = await world.desk.start()
    with world.closed("audit_events"):
        world.worker.start()
        assert await eventually(world.is_stalled)
        world.worker.kill()
    before = await world.desk.look(run_id)
    run = await world.after_the_kill(run_id)

    assert (before.status, before.turns) == (RunStatus.RUNNING, 1)
    assert (run.status, run.turns, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 1, 2, 1)
    assert await world.ledger() == Ledger(used=15, reserved=0)
    assert await world.next_run() == SOUND


async def test_told_to_stop_in_a_long_call(
    world: World, environment: dict[str, str], work_settings: Settings, fake: FakeProvider
) -> None:
    """A call may take ten minutes, a stop no longer than the settings say: then the call is broken off, and lost."""
    assert work_settings.database_url is not None
    assert work_settings.redis_url is not None
    model = held_back()
    fake.answer = model
    run_id = await world.desk.start()
    services = {
        "HANGO_DATABASE_URL": work_settings.database_url.reveal(),
        "HANGO_REDIS_URL": work_settings.redis_url.reveal(),
        "HANGO_CONTEXT_TRY_TIMEOUT": "1s",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SHORT_SETTLE),
        env={**environment, **services, "PATH": os.environ["PATH"]},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert await eventually(lambda: model.under_way == 1)
        began = time.monotonic()
        process.terminate()
        code = await asyncio.wait_for(process.wait(), 20)
        seconds = time.monotonic() - began
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    left = await world.desk.look(run_id)
    run = await world.after_the_kill(run_id)

    assert (code, left.status, model.gone) == (0, RunStatus.RUNNING, 1)
    assert 1.0 <= seconds < 10
    assert (run.status, run.error, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 1)
    assert await world.next_run() == SOUND


async def with_a_long_history(world: World) -> World:
    """Its next run summarizes first."""
    few = Compaction(trigger_tokens=300, keep_messages=3)
    desk = await make_run_desk(world.desk.deps, world.desk.principal, TEXTS, compaction=few)
    return replace(world, desk=desk)


async def summary_of(world: World) -> str | None:
    async with world.desk.deps.store.read(world.desk.principal) as scope:
        session = await sessions.get(scope, world.desk.session_id)
    assert session is not None
    return None if session.summary is None else session.summary.text


@contextmanager
def a_full_door() -> Iterator[str]:
    """An address where connections are asked for and never made."""
    with ExitStack() as open_ones, socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for _ in range(4):
            waiting = open_ones.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(door.getsockname())
        yield f"http://127.0.0.1:{door.getsockname()[1]}/v1"
