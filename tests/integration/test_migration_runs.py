"""Runs are taken back and come again: what the schema before cannot hold goes, what people paid and said stays."""

from __future__ import annotations

from dataclasses import replace

from hango.config import Settings
from hango.domain import RunStatus
from hango.migrations import runner
from tests.conftest import Database
from tests.picking import die, held_back, in_turn, open_deps, picking
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import calling, make_run_desk
from tests.tries import rows_of
from tests.working import eventually

SKILL_TEXT = "---\nname: stock\ndescription: Counts the stock.\nallowed-tools: task\n---\nCount it all."
BEFORE_RUNS = [migration.name for migration in runner.load()].index("00010_run_calls")
MESSAGES = "select session_id, seq, role from messages order by 1, 2"
OF_RUNS = (
    "select from messages where run_id is not null",
    "select from sessions where last_run_id is not null",
    "select from usage_records where run_id is not null",
)
BILLS = "select purpose, input_tokens, output_tokens from usage_records order by id"


async def test_runs_with_all_that_they_left_go_and_come_again(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database
) -> None:
    """A down with runs that ended, wait and are in a call keeps their messages and bills and gives back what they hold;
    subagents' conversations are deleted, bases that name a skill are gone; an up follows, and new runs work."""
    model = held_back()
    fake.answer = in_turn(
        calling("load_skill", name="stock"),
        calling("task", description="Count the nuts."),
        says(chat("Forty nuts.")),
        says(chat("In drawer 4.")),
        model,
    )
    async with open_deps(work_settings) as deps:
        principal = await make_tenant(deps.store)
        desk = await make_run_desk(deps, principal)
        await desk.write("/skills/stock/SKILL.md", SKILL_TEXT)
        async with picking(deps) as work:
            first = await desk.start()
            await work.picker.ring()
            await desk.until(first)
            other = await make_run_desk(deps, principal)
            await other.start()
            await work.picker.ring()
            assert await eventually(lambda: model.under_way == 1)
            await die(work.picker)
        waiting = await make_run_desk(deps, principal)
        await waiting.start()

    def rows(query: str) -> list[dict[str, object]]:
        return rows_of(fresh_database.superuser_dsn, query)

    held = rows("select reserved > 0 as held from quotas")
    statuses = rows("select status from runs order by id")
    bases = rows("select count(*) as n from context_bases where skill_version_id is not null")
    said, bills = rows(MESSAGES), rows(BILLS)
    children = {one["id"] for one in rows("select id from sessions where parent_run_id is not null")}

    runner.down(fresh_database.owner_dsn, BEFORE_RUNS)
    left = {
        "runs": rows("table runs"),
        "of runs": rows("select from messages where run_id is not null")
        + rows("select from sessions where last_run_id is not null")
        + rows("select from usage_records where run_id is not null"),
        "reserved": rows("select reserved from quotas"),
        "messages": rows(MESSAGES),
        "bills": rows(BILLS),
        "deleted": {one["id"] for one in rows("select id from sessions where deleted_at is not null")},
    }
    forced = rows("select relname from pg_class where relrowsecurity and not relforcerowsecurity")
    runner.up(fresh_database.owner_dsn)
    fake.answer = says(chat("In drawer 4."))
    async with open_deps(work_settings) as deps, picking(deps) as work:
        again = replace(other, deps=deps)
        run_id = await again.start()
        await work.picker.ring()
        run = await again.until(run_id)
    runner.down(fresh_database.owner_dsn, 0)

    assert (held, statuses, bases) == (
        [{"held": True}],
        [{"status": one} for one in ("succeeded", "running", "queued")],
        [{"n": 3}],
    )
    assert left == {
        "runs": [],
        "of runs": [],
        "reserved": [{"reserved": 0}],
        "messages": said,
        "bills": bills,
        "deleted": children,
    }
    assert (len(children), forced) == (1, [])
    assert run.status is RunStatus.SUCCEEDED
