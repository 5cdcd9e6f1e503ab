"""PostgreSQL goes away at every step of a run: the same worker goes on when it is back, and no call is made twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hango.agent_definition import Compaction
from hango.domain import RunStatus
from hango.store import quotas
from tests.conftest import Database
from tests.faults.history import install
from tests.faults.invariants import broken_rules
from tests.picking import Work, held_back, in_turn
from tests.providers_server import Answer, FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RunDesk, calling, make_run_desk
from tests.tries import rows_of
from tests.working import eventually

DONE = says(chat("In drawer 4."))
WRITES = calling("write_file", path="/notes.md", content="Forty nuts.")
DELEGATES = calling("task", description="Count the nuts.")
TEXTS = [f"{'A question' if n % 2 == 0 else 'An answer'} number {n}: {'many words ' * 20}" for n in range(10)]
HERE: LiteralString = "select pid from pg_stat_activity where datname = %s and usename <> 'postgres'"
CUT: LiteralString = (
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and usename <> 'postgres'"
)


@dataclass(frozen=True)
class Away:
    """The database of a test, which can be taken away from hango and given back."""

    database: Database

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Every connection of hango's is cut, and none can be made until the block ends."""
        self._allow_connections(False)
        try:
            with self._elsewhere() as conn:
                conn.execute(CUT, [self.database.name])
            yield
        finally:
            self._allow_connections(True)

    def is_gone(self) -> bool:
        with self._elsewhere() as conn:
            return conn.execute(HERE, [self.database.name]).fetchone() is None

    @contextmanager
    def locked(self, table: LiteralString, how: LiteralString) -> Iterator[None]:
        """Hango's next write there waits until the block ends."""
        with psycopg.connect(self.database.superuser_dsn) as conn:
            conn.execute(sql.SQL(how).format(sql.Identifier(table)))
            yield

    def is_stalled(self) -> bool:
        waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return bool(rows_of(self.database.superuser_dsn, waits))

    def broken(self) -> dict[str, list[object]]:
        with psycopg.connect(self.database.superuser_dsn) as conn:
            return {rule: found for rule, found in broken_rules(conn).items() if found}

    def _elsewhere(self) -> psycopg.Connection:
        return psycopg.connect(make_conninfo(self.database.superuser_dsn, dbname="postgres"), autocommit=True)

    def _allow_connections(self, allowed: bool) -> None:
        with self._elsewhere() as conn:
            conn.execute(
                sql.SQL("alter database {} allow_connections {}").format(
                    sql.Identifier(self.database.name), sql.Literal(allowed)
                )
            )


@pytest.fixture
def away(fresh_database: Database) -> Away:
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        install(conn)
    return Away(fresh_database)


@pytest.fixture
async def desk(work: Work) -> RunDesk:
    desk = await make_run_desk(work.deps, await make_tenant(work.store))
    async with work.store.begin(desk.principal) as scope:
        await quotas.reserve(scope, 0)  # the row of the month, to be locked
    return desk


ROWS: LiteralString = "select from {} for update"
TABLE: LiteralString = "lock table {} in exclusive mode"


@dataclass(frozen=True)
class Step:
    """Of a run that gets these answers: the write that it is held at."""

    table: LiteralString
    how: LiteralString
    answers: tuple[Answer, ...]


STEPS = {
    "before the call": Step("quotas", ROWS, (DONE,)),
    "in writing the answer down": Step("message_bodies", TABLE, (DONE,)),
    "in a tool": Step("files", ROWS, (WRITES, DONE)),
    "in a subagent's tool": Step("files", ROWS, (DELEGATES, WRITES, DONE, DONE)),
    "right before the end": Step("audit_events", TABLE, (DONE,)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
async def test_away_in_a_transaction(step: Step, work: Work, desk: RunDesk, fake: FakeProvider, away: Away) -> None:
    """What was not committed is done again; what the provider was asked is not."""
    fake.answer = in_turn(*step.answers)
    run_id = await desk.start()
    with away.locked(step.table, step.how):
        await work.picker.ring()
        assert await eventually(away.is_stalled)
        with away.gone():
            assert await eventually(away.is_gone)
    run = await desk.until(run_id)

    assert (run.status, run.error, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, None, 1, len(step.answers))
    assert away.broken() == {}


@pytest.mark.parametrize("answers", [pytest.param([], id="call"), pytest.param([DELEGATES], id="subagent")])
async def test_away_while_an_answer_comes(
    answers: list[Answer], work: Work, desk: RunDesk, fake: FakeProvider, away: Away
) -> None:
    """It is kept until it can be written down."""
    model = held_back()
    fake.answer = in_turn(*answers, model)
    run_id = await desk.start()
    await work.picker.ring()
    assert await eventually(lambda: model.under_way == 1)
    with away.gone():
        model.free.set()
        assert await eventually(lambda: model.under_way == 0 and away.is_gone())
    run = await desk.until(run_id)

    assert (run.status, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 1, 1 + 2 * len(answers))
    assert away.broken() == {}


async def test_away_while_a_summary_comes(work: Work, fake: FakeProvider, away: Away) -> None:
    """It is put in force once, and the call follows."""
    few = Compaction(trigger_tokens=300, keep_messages=3)
    desk = await make_run_desk(work.deps, await make_tenant(work.store), TEXTS, compaction=few)
    model = held_back("Drawers were spoken of.")
    fake.answer = in_turn(model, DONE)
    run_id = await desk.start()
    await work.picker.ring()
    assert await eventually(lambda: model.under_way == 1)
    with away.gone():
        model.free.set()
        assert await eventually(lambda: model.under_way == 0 and away.is_gone())
    run = await desk.until(run_id)
    kept = rows_of(away.database.superuser_dsn, "select text from summaries")

    assert (run.status, run.attempts, len(fake.seen)) == (RunStatus.SUCCEEDED, 1, 2)
    assert kept == [{"text": "Drawers were spoken of."}]
    assert away.broken() == {}
