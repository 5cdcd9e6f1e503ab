"""What bounds a run (turns, tokens, time, quota), and what it sees: changes made meanwhile, its summary."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from hango.agent_definition import Compaction
from hango.config import Settings
from hango.domain import OverrideAction, PartID, Purpose, RunStatus
from hango.messages import Usage
from hango.runs import Run, RunError
from hango.store import context_overrides, sessions, tenants
from hango.store.context_overrides import NewOverride
from hango.tries import TryUsage
from tests.conftest import Database
from tests.picking import Work, in_turn, open_deps, picking
from tests.providers_server import Answer, FakeProvider, chat, never, says
from tests.rows import make_tenant
from tests.run_desk import RunDesk, calling, make_run_desk
from tests.tries import Ledger, ledger, rows_of

DONE = says(chat("In drawer 4."))
MEMORY = "/memories/AGENTS.md"
SKILL = "/skills/stock/SKILL.md"
SKILL_TEXT = "---\nname: stock\ndescription: Counts the stock.\nallowed-tools: read_file ls\n---\nCount it all."


@asynccontextmanager
async def at_work(settings: Settings, **agent: Any) -> AsyncIterator[tuple[Work, RunDesk]]:
    async with open_deps(settings) as deps, picking(deps) as work:
        yield work, await make_run_desk(deps, await make_tenant(deps.store), **agent)


async def ended(work: Work, desk: RunDesk, text: str | None = "And the nuts?", **limits: float) -> Run:
    run_id = await desk.start(text, **limits)
    await work.picker.ring()
    return await desk.until(run_id)


def tools(fake: FakeProvider, n: int) -> set[str]:
    return {one["function"]["name"] for one in fake.seen[n].json["tools"]}


def meanwhile(act: Callable[[], Any], then: Answer) -> Answer:
    """An answer during which something happens."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await act()
        return await then(request)

    return answer


async def test_a_run_has_so_many_turns(work_settings: Settings, fake: FakeProvider) -> None:
    """The model that calls tools for ever is called as often as is set; the last results are written down."""
    fake.answer = calling()
    async with at_work(replace(work_settings, run_max_turns=3)) as (work, desk):
        run = await ended(work, desk)
        ledgers = await ledger(work.store, desk.principal)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.TOO_MANY_TURNS, 3, 3)
    assert ledgers == Ledger(used=45, reserved=0)


async def test_a_subagent_has_so_many_turns(work_settings: Settings, fake: FakeProvider) -> None:
    """One that calls tools for ever ends the run, whatever its provider says of its tokens."""
    fake.answer = in_turn(calling("task", description="Count the nuts."), calling())
    async with at_work(replace(work_settings, run_max_turns=3)) as (work, desk):
        run = await ended(work, desk)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.TOO_MANY_TURNS, 1, 4)


async def test_a_run_has_so_many_tokens(work_settings: Settings, fake: FakeProvider) -> None:
    """Once its calls have used what is set, no other is made."""
    fake.answer = calling()
    async with at_work(replace(work_settings, run_max_tokens=30)) as (work, desk):
        run = await ended(work, desk)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.TOO_MANY_TOKENS, 2, 2)


async def test_a_run_has_so_much_time(work_settings: Settings, fake: FakeProvider) -> None:
    """A provider that never answers ends with the run's time: timed out, billed by the estimate."""
    fake.answer = never
    async with at_work(work_settings) as (work, desk):
        run = await ended(work, desk, seconds=0.5)
        (call,) = await desk.calls(run.id)

    assert (run.status, run.error, call.error) == (RunStatus.TIMED_OUT, RunError.TIMEOUT, RunError.TIMEOUT)
    assert call.usage is not None
    assert call.usage.estimated


async def test_the_quota_stops_a_run_between_turns(work_settings: Settings, fake: FakeProvider) -> None:
    """What it has done stays; the call that the quota has no room for is not made."""
    async with at_work(work_settings) as (work, desk):

        async def use_up() -> None:
            async with work.store.begin(desk.principal) as scope:
                await tenants.update(scope, quota_tokens=1)

        fake.answer = in_turn(meanwhile(use_up, calling()), DONE)
        run = await ended(work, desk)
        history = await desk.history()
        ledgers = await ledger(work.store, desk.principal)

    assert (run.status, run.error, run.turns, len(fake.seen)) == (RunStatus.FAILED, RunError.QUOTA_EXCEEDED, 1, 1)
    assert [role for role, _ in history[-2:]] == ["assistant", "user"]
    assert ledgers == Ledger(used=15, reserved=0)


async def test_overrides_act_on_the_next_run(work_settings: Settings, fake: FakeProvider) -> None:
    """A PUT during a run acts on the next one only, never between turns; the messages stay stored."""
    async with at_work(work_settings) as (work, desk):

        async def exclude() -> None:
            async with work.store.begin(desk.principal) as scope:
                new = [NewOverride(PartID("message:2"), OverrideAction.EXCLUDE, None, "")]
                await context_overrides.replace_for_session(scope, desk.session_id, new)

        fake.answer = in_turn(meanwhile(exclude, calling()), DONE)
        await ended(work, desk)
        await ended(work, desk, "And the screws?")
        stored = await desk.history()

    said = [[one["content"] for one in seen.json["messages"]] for seen in fake.seen]
    assert ["In drawer 3." in texts for texts in said] == [True, True, False]
    assert stored[1] == ("assistant", '[{"type":"text","text":"In drawer 3."}]')


async def test_memory_that_a_tool_wrote_is_read_by_the_next_run(work_settings: Settings, fake: FakeProvider) -> None:
    """Memory files are read fresh each run, and hold for the whole of it."""
    async with at_work(work_settings, memory=(MEMORY,)) as (work, desk):
        await desk.write(MEMORY, "The owner is away.")
        write = calling("write_file", path=MEMORY, content="The owner is back.")
        fake.answer = in_turn(write, DONE)
        await ended(work, desk)
        await ended(work, desk, "And the screws?")

    system = [json.dumps(seen.json["messages"][0]["content"]) for seen in fake.seen]
    assert ["The owner is back." in text for text in system] == [False, False, True]
    assert ["The owner is away." in text for text in system] == [True, True, False]


async def test_a_skill_narrows_the_tools(work_settings: Settings, fake: FakeProvider) -> None:
    """From the next call on its allowed-tools are what is sent; an excluded one stays out though the skill names it."""
    async with at_work(work_settings) as (work, desk):
        await desk.write(SKILL, SKILL_TEXT)
        async with work.store.begin(desk.principal) as scope:
            new = [NewOverride(PartID("tool:ls"), OverrideAction.EXCLUDE, None, "")]
            await context_overrides.replace_for_agent(scope, desk.agent.id, new)
        fake.answer = in_turn(
            calling("load_skill", name="stock"), calling("write_file", path="/x.md", content="x"), DONE
        )
        run = await ended(work, desk)
        written = await desk.read("/x.md")

    assert run.status is RunStatus.SUCCEEDED
    assert {"read_file", "write_file", "load_skill"} <= tools(fake, 0)
    assert "ls" not in tools(fake, 0)
    assert tools(fake, 1) & {"read_file", "ls", "write_file"} == {"read_file"}
    assert written is None  # what is not sent cannot be called


TEXTS = [f"{'A question' if n % 2 == 0 else 'An answer'} number {n}: {'many words ' * 20}" for n in range(10)]


async def test_a_long_history_is_summarized(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database
) -> None:
    """One model call for the summary, then the run's own with it in place of what it covers; both are billed."""
    fake.answer = in_turn(says(chat("Drawers were spoken of.")), DONE)
    async with at_work(work_settings, compaction=Compaction(trigger_tokens=300, keep_messages=3), texts=TEXTS) as (
        work,
        desk,
    ):
        run = await ended(work, desk)
        calls = await desk.calls(run.id)
        async with work.store.read(desk.principal) as scope:
            session = await sessions.get(scope, desk.session_id)

    assert (run.status, run.turns) == (RunStatus.SUCCEEDED, 1)
    assert [(one.purpose, one.usage) for one in calls] == [
        (Purpose.SUMMARY, TryUsage(Usage(12, 3), None, estimated=False)),
        (Purpose.RUN, TryUsage(Usage(12, 3), None, estimated=False)),
    ]
    assert session is not None
    assert session.summary is not None
    assert (session.summary.text, session.summary.through_seq) == ("Drawers were spoken of.", 8)
    sent = [one["content"] for one in fake.seen[1].json["messages"]]
    assert any("Drawers were spoken of." in text for text in sent)
    assert not any("number 3" in text for text in sent)
    assert rows_of(
        fresh_database.superuser_dsn, "select purpose, count(*) from usage_records group by 1 order by 1"
    ) == [{"purpose": "run", "count": 1}, {"purpose": "summary", "count": 1}]


@pytest.mark.parametrize(
    "summary", [says({}, status=500), says(chat("  ")), says(b"{")], ids=["refused", "blank", "no JSON"]
)
async def test_a_failed_summary_changes_nothing(summary: Answer, work_settings: Settings, fake: FakeProvider) -> None:
    """The run goes on with its whole history, and does not try again."""
    fake.answer = in_turn(summary, calling(), DONE)
    async with at_work(work_settings, compaction=Compaction(trigger_tokens=300, keep_messages=3), texts=TEXTS) as (
        work,
        desk,
    ):
        run = await ended(work, desk)
        calls = await desk.calls(run.id)
        async with work.store.read(desk.principal) as scope:
            session = await sessions.get(scope, desk.session_id)

    assert (run.status, run.turns) == (RunStatus.SUCCEEDED, 2)
    assert [one.purpose for one in calls] == [Purpose.SUMMARY, Purpose.RUN, Purpose.RUN]
    assert session is not None
    assert session.summary is None


async def test_what_is_excluded_does_not_start_a_summary(work_settings: Settings, fake: FakeProvider) -> None:
    """The trigger is judged on the request as it is sent."""
    few = Compaction(trigger_tokens=300, keep_messages=3)
    async with at_work(work_settings, builtin=frozenset(), compaction=few, texts=TEXTS) as (work, desk):
        async with work.store.begin(desk.principal) as scope:
            new = [NewOverride(PartID(f"message:{n}"), OverrideAction.EXCLUDE, None, "") for n in range(1, 11)]
            await context_overrides.replace_for_session(scope, desk.session_id, new)
        run = await ended(work, desk)
        calls = await desk.calls(run.id)

    assert [one.purpose for one in calls] == [Purpose.RUN]
