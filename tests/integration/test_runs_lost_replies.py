"""The reply of a COMMIT never arrives: what was written stands, and the run finds that out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hango.config import SecretUrl, Settings
from hango.domain import RunStatus
from hango.runs import RunError
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.faults.history import install
from tests.faults.invariants import broken_rules
from tests.faults.postgres_wire import Conversation
from tests.faults.proxy import Proxy, proxying
from tests.picking import SECONDS, Work, in_turn, open_deps, picking
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RUN_LEASE_OVER, RunDesk, alter_run, calling, make_run_desk
from tests.tries import rows_of
from tests.working import eventually

COMMIT = b"COMMIT"
WRITES = calling("write_file", path="/notes.md", content="Forty nuts.")
DONE = says(chat("In drawer 4."))


@dataclass(frozen=True)
class World:
    """A worker's inside that reaches PostgreSQL through a proxy; the desk reaches it past that."""

    work: Work
    desk: RunDesk
    proxy: Proxy
    database: Database

    def broken(self) -> dict[str, list[object]]:
        with psycopg.connect(self.database.superuser_dsn) as conn:
            return {rule: found for rule, found in broken_rules(conn).items() if found}


@pytest.fixture
async def world(work_settings: Settings, fresh_database: Database) -> AsyncIterator[World]:
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        install(conn)
    folder = conninfo_to_dict(fresh_database.app_dsn)["host"]
    async with proxying(f"{folder}/.s.PGSQL.5432", hearing=Conversation) as proxy, open_deps(work_settings) as near:
        through = make_conninfo(fresh_database.app_dsn, host="127.0.0.1", port=proxy.port)
        async with open_deps(replace(work_settings, database_url=SecretUrl(through))) as far, picking(far) as work:
            yield World(work, await make_run_desk(near, await make_tenant(near.store)), proxy, fresh_database)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(b"insert into message_bodies", id="of an answer"),
        pytest.param(b"insert into file_versions", id="of a tool's result"),
    ],
)
async def test_the_run_goes_on(statement: bytes, world: World, fake: FakeProvider) -> None:
    """The same worker finds what it has written, calls nobody twice, and does no tool twice."""
    fake.answer = in_turn(WRITES, DONE)
    lost = world.proxy.cut(lambda asked, _: statement in asked and COMMIT in asked)
    run_id = await world.desk.start()
    await world.work.picker.ring()
    run = await world.desk.until(run_id)
    versions = rows_of(world.database.superuser_dsn, "select version from files where path = '/notes.md'")

    await asyncio.wait_for(lost.wait(), SECONDS)
    assert (run.status, run.turns, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 2, 1, 2)
    assert versions == [{"version": 2}]
    assert world.broken() == {}


async def test_of_the_end(world: World, fake: FakeProvider) -> None:
    """It has ended, and is not ended again."""
    lost = world.proxy.cut(lambda asked, _: b"finished_at = clock_timestamp()" in asked and COMMIT in asked)
    run_id = await world.desk.start()
    await world.work.picker.ring()
    await asyncio.wait_for(lost.wait(), SECONDS)
    run = await world.desk.until(run_id)
    await world.work.picker.stop()

    assert (run.status, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 1, 1)
    assert world.broken() == {}


async def test_of_a_call_that_was_to_begin(world: World, fake: FakeProvider) -> None:
    """It may have begun for all that anybody can know: lost when the lease is over, billed once, and never made."""
    lost = world.proxy.cut(lambda asked, _: b"insert into run_calls" in asked and COMMIT in asked)
    run_id = await world.desk.start()
    await world.work.picker.ring()
    await asyncio.wait_for(lost.wait(), SECONDS)
    assert await eventually(lambda: not world.work.picker._running)
    await alter_run(world.desk.deps.store, world.desk.principal, RUN_LEASE_OVER, run_id)
    await Reconciler(world.desk.deps, ring).look_after()
    run = await world.desk.look(run_id)

    assert (run.status, run.error, len(fake.seen)) == (RunStatus.FAILED, RunError.WORKER_LOST, 0)
    assert world.broken() == {}


async def ring(_: int) -> None:
    return
