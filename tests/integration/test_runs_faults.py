"""What providers, slow tools, cancels and changes by others do to a run under way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from aiohttp import web

from hango.config import Secret, Settings
from hango.domain import OverrideAction, PartID, Purpose, RunStatus
from hango.messages import Usage
from hango.runs import RunError
from hango.store import agents, context_overrides, runs
from hango.store.context_overrides import NewOverride
from hango.tries import TryUsage
from tests.conftest import Database
from tests.faults.history import install
from tests.faults.invariants import broken_rules
from tests.picking import Work, held_back, in_turn, open_deps, picking
from tests.providers_server import Answer, FakeProvider, chat, hangs_up, message, never, says
from tests.rows import make_tenant
from tests.run_desk import RunDesk, calling, make_run_desk
from tests.tries import rows_of
from tests.working import eventually

DONE = says(chat("In drawer 4."))
LATER = {"retry-after": "0"}  # a second, the least that is waited
WRITES = calling("write_file", path="/notes.md", content="Forty nuts.")
DELEGATES = calling("task", description="Count the nuts.")
ONE_CALL = TryUsage(Usage(12, 3), None, estimated=False)
LEASE_SECONDS = 1.0
BLOCKS = {"todo": "# Plan", "filesystem": "# Files", "subagent": "# Subagents"}


@dataclass(frozen=True)
class World:
    """A worker's inside, somebody who starts runs, and the database, where rows can be held."""

    work: Work
    desk: RunDesk
    database: Database

    async def start(self, text: str = "And the nuts?", **limits: float) -> Any:
        run_id = await self.desk.start(text, **limits)
        await self.work.picker.ring()
        return run_id

    @contextmanager
    def slow_files(self) -> Iterator[None]:
        """A tool that writes a file takes until the block ends."""
        with psycopg.connect(self.database.superuser_dsn) as conn:
            conn.execute("select from files for update")
            yield

    def stalled(self) -> int:
        """How many wait for a lock."""
        waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return len(rows_of(self.database.superuser_dsn, waits))

    def broken(self) -> dict[str, list[object]]:
        with psycopg.connect(self.database.superuser_dsn) as conn:
            return {rule: found for rule, found in broken_rules(conn).items() if found}


@pytest.fixture
async def world(work: Work, fresh_database: Database) -> World:
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        install(conn)
    return World(work, await make_run_desk(work.deps, await make_tenant(work.store)), fresh_database)


@pytest.fixture
async def short_lease(work_settings: Settings, fresh_database: Database) -> AsyncIterator[World]:
    """Of a worker that is taken for dead after a second."""
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        install(conn)
    settings = replace(work_settings, context_try_lease=LEASE_SECONDS)
    async with open_deps(settings) as deps, picking(deps) as work:
        yield World(work, await make_run_desk(deps, await make_tenant(deps.store)), fresh_database)


def meanwhile(act: Callable[[], Awaitable[object]], then: Answer) -> Answer:
    """An answer during which something happens."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await act()
        return await then(request)

    return answer


@pytest.mark.parametrize(
    ("status", "error", "times"), [(429, "provider_rate_limited", 5), (529, "provider_overloaded", 6)]
)
async def test_a_busy_provider_is_asked_six_times(
    status: int, error: str, times: int, world: World, fake: FakeProvider
) -> None:
    """Five refusals are waited out, six end the run; each attempt is a call of its own, and none of them is billed."""
    fake.answer = in_turn(*[says({}, status=status, headers=LATER)] * times, DONE)

    run_id = await world.start()
    run = await world.desk.until(run_id)
    calls = await world.desk.calls(run_id)

    assert len(fake.seen) == 6
    assert [one.error for one in calls[:5]] == [RunError(error)] * 5
    assert (run.status, run.error) == (
        (RunStatus.SUCCEEDED, None) if times == 5 else (RunStatus.FAILED, RunError(error))
    )
    assert run.usage is not None
    assert run.usage.tokens == (Usage(12, 3) if times == 5 else Usage())
    assert world.broken() == {}


@pytest.mark.parametrize(
    ("answer", "error", "is_billed"),
    [
        (says(b"{this is no answer"), RunError.PROVIDER_PROTOCOL, True),
        (says({"choices": []}), RunError.PROVIDER_PROTOCOL, True),
        (hangs_up, RunError.PROVIDER_UNREACHABLE, None),
        (says({}, status=400), RunError.PROVIDER_REFUSED, False),
        (says({}, status=500), RunError.PROVIDER_ERROR, False),
    ],
    ids=["garbage", "no choice", "cut", "refused", "broken"],
)
async def test_a_bad_answer_ends_the_run(
    answer: Answer, error: RunError, is_billed: bool | None, world: World, fake: FakeProvider
) -> None:
    """After a turn that went well: what it did stays, the bad call is never repeated, and the next run works."""
    fake.answer = in_turn(WRITES, answer, DONE)

    run_id = await world.start()
    run = await world.desk.until(run_id)
    first, second = await world.desk.calls(run_id)
    more = await world.desk.until(await world.start("And the screws?"))

    assert (run.status, run.turns, len(fake.seen)) == (RunStatus.FAILED, 1, 3)
    assert first.usage == ONE_CALL
    assert second.usage is not None
    if is_billed is not None:
        assert (run.error, second.usage.estimated) == (error, is_billed)
    assert await world.desk.read("/notes.md") == "Forty nuts."
    assert more.status is RunStatus.SUCCEEDED
    assert world.broken() == {}


@pytest.mark.parametrize("text", ["a\x00b", "half of \ud83d", "\u202e" * 3], ids=["NUL", "half a letter", "bidi"])
async def test_an_answer_of_strange_letters_is_kept(text: str, world: World, fake: FakeProvider) -> None:
    """Whatever a model says is appended, billed, and sent again in the next run."""
    fake.answer = in_turn(says(json.dumps(chat(text)).encode()), DONE)

    run = await world.desk.until(await world.start())
    more = await world.desk.until(await world.start("And the screws?"))

    assert (run.status, run.error, more.status) == (RunStatus.SUCCEEDED, None, RunStatus.SUCCEEDED)
    assert run.usage == ONE_CALL
    assert world.broken() == {}


async def test_a_run_out_of_time_in_a_later_call(world: World, fake: FakeProvider) -> None:
    """Its time is the whole run's: the call under way is broken off and billed by its estimate."""
    fake.answer = in_turn(WRITES, never)

    run_id = await world.start(seconds=2.0)
    run = await world.desk.until(run_id)
    _, call = await world.desk.calls(run_id)

    assert (run.status, run.error, run.turns) == (RunStatus.TIMED_OUT, RunError.TIMEOUT, 1)
    assert call.usage is not None
    assert call.usage.estimated
    assert await world.desk.read("/notes.md") == "Forty nuts."
    assert world.broken() == {}


async def test_a_slow_tool_takes_no_other_run_down(short_lease: World, fake: FakeProvider) -> None:
    """It holds its run's row for longer than a lease; the call of another run of the same worker goes on meanwhile."""
    world, model = short_lease, held_back()
    other = replace(world, desk=await make_run_desk(world.work.deps, world.desk.principal))
    fake.answer = in_turn(WRITES, model)
    with world.slow_files():
        slow = await world.start()
        assert await eventually(lambda: world.stalled() > 0)
        calling_id = await other.start()
        assert await eventually(lambda: model.under_way == 1)
        await asyncio.sleep(2 * LEASE_SECONDS)  # what is shown is that nothing happens in this time
        assert model.gone == 0
    model.free.set()
    called = await other.desk.until(calling_id)
    run = await world.desk.look(slow)

    assert (called.status, called.attempts) == (RunStatus.SUCCEEDED, 1)
    assert run.error is None


async def test_a_cancel_during_a_tool_waits_for_its_result(world: World, fake: FakeProvider) -> None:
    """What the tool did is written down; no further call is made."""
    fake.answer = in_turn(WRITES, DONE)
    with world.slow_files():
        run_id = await world.start()
        assert await eventually(lambda: world.stalled() == 1)
        cancelling = asyncio.create_task(world.desk.cancel(run_id))
        assert await eventually(lambda: world.stalled() == 2)
    await cancelling
    run = await world.desk.until(run_id)
    history = await world.desk.history()

    assert (run.status, run.error, len(fake.seen)) == (RunStatus.CANCELLED, RunError.CANCELLED, 1)
    assert await world.desk.read("/notes.md") == "Forty nuts."
    assert [role for role, _ in history[-3:]] == ["user", "assistant", "user"]
    assert world.broken() == {}


async def test_a_cancel_ends_a_subagents_call(world: World, fake: FakeProvider) -> None:
    """Broken off at once, billed as the subagent's by its estimate; the history without its result harms nobody."""
    model = held_back()
    fake.answer = in_turn(DELEGATES, model)
    run_id = await world.start()
    assert await eventually(lambda: model.under_way == 1)
    await world.desk.cancel(run_id)
    run = await world.desk.until(run_id)
    fake.answer = DONE
    more = await world.desk.until(await world.start("And the screws?"))
    bills = rows_of(
        world.database.superuser_dsn,
        "select purpose, estimated, count(*) as n from usage_records group by 1, 2 order by 1",
    )

    assert (run.status, run.error, more.status) == (RunStatus.CANCELLED, RunError.CANCELLED, RunStatus.SUCCEEDED)
    assert await eventually(lambda: model.gone == 1)
    assert bills == [
        {"purpose": "run", "estimated": False, "n": 2},
        {"purpose": "subagent", "estimated": True, "n": 1},
    ]
    assert world.broken() == {}


async def test_a_changed_agent_is_the_next_runs(world: World, fake: FakeProvider) -> None:
    """A PATCH during a run acts on the next one: system text, tools and files that memory reads stay for this one."""

    async def change() -> None:
        async with world.work.store.begin(world.desk.principal) as scope:
            one = world.desk.agent
            new = replace(one.definition, builtin=frozenset())
            await agents.update(scope, one.id, name=one.name, shared=one.shared, definition=new)

    fake.answer = in_turn(meanwhile(change, WRITES), DONE)
    await world.desk.until(await world.start())
    await world.desk.until(await world.start("And the screws?"))

    assert ["tools" in seen.json for seen in fake.seen] == [True, True, False]
    assert fake.seen[0].json["tools"] == fake.seen[1].json["tools"]
    assert world.broken() == {}


async def test_a_deleted_agent_cancels_its_runs(world: World, fake: FakeProvider) -> None:
    """As its sessions are: the call under way is broken off and billed, nothing stays reserved."""
    model = held_back()
    fake.answer = model
    await world.start()
    assert await eventually(lambda: model.under_way == 1)
    async with world.work.store.begin(world.desk.principal) as scope:
        await agents.delete(scope, world.desk.agent.id)
        await runs.cancel(scope, agent_id=world.desk.agent.id)

    def ended() -> bool:
        return not rows_of(world.database.superuser_dsn, "select from runs where finished_at is null")

    assert await eventually(ended)
    assert rows_of(world.database.superuser_dsn, "select status, reserved from runs") == [
        {"status": "cancelled", "reserved": 0}
    ]
    assert world.broken() == {}


async def test_a_file_that_others_change_meanwhile(world: World, fake: FakeProvider) -> None:
    """Tools work on the files of now: what was written during the run is what the next tool reads."""

    async def write() -> None:
        await world.desk.write("/notes.md", "Fifty bolts.")

    fake.answer = in_turn(meanwhile(write, calling()), DONE)
    run = await world.desk.until(await world.start())

    assert run.status is RunStatus.SUCCEEDED
    assert "Fifty bolts." in (await world.desk.history())[-2][1]


async def test_usage_is_one_row_a_call_by_purpose(world: World, fake: FakeProvider) -> None:
    """Every column of every row, of a run with a subagent."""
    fake.answer = in_turn(DELEGATES, says(chat("Forty nuts.")), DONE)
    run_id = await world.start()
    run = await world.desk.until(run_id)
    calls = await world.desk.calls(run_id)
    bills = rows_of(
        world.database.superuser_dsn,
        "select purpose, run_id, call_id, try_id, session_id, user_id, model, input_tokens, output_tokens,"
        " cache_read_tokens, cache_write_tokens, cost_usd, estimated from usage_records order by created_at, id",
    )

    assert bills == [
        {
            "purpose": purpose.value,
            "run_id": run_id,
            "call_id": call.id,
            "try_id": None,
            "session_id": world.desk.session_id,
            "user_id": world.desk.principal.user_id,
            "model": run.model,
            "input_tokens": 12,
            "output_tokens": 3,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "cost_usd": None,
            "estimated": False,
        }
        for purpose, call in zip((Purpose.RUN, Purpose.SUBAGENT, Purpose.RUN), calls, strict=True)
    ]


@pytest.mark.parametrize("excluded", [(), ("subagent",), ("subagent", "filesystem")], ids=str)
async def test_the_cache_mark_lands_on_a_sent_block(
    excluded: tuple[str, ...], work_settings: Settings, fake: FakeProvider
) -> None:
    """Without the block that would carry it, it is on the last one that is sent, in each call of the run."""
    told = replace(work_settings, anthropic_base_url=fake.url, anthropic_api_key=Secret("a key"))
    call = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "/notes.md"}}
    fake.answer = in_turn(says(message(call, stop_reason="tool_use")), says(message("In drawer 4.")))
    async with open_deps(told) as deps, picking(deps) as work:
        desk = await make_run_desk(deps, await make_tenant(deps.store), model="anthropic/claude-sonnet-4-5")
        async with work.store.begin(desk.principal) as scope:
            new = [NewOverride(PartID(f"system:{name}"), OverrideAction.EXCLUDE, None, "") for name in excluded]
            await context_overrides.replace_for_agent(scope, desk.agent.id, new)
        run_id = await desk.start()
        await work.picker.ring()
        run = await desk.until(run_id)

    assert (run.status, len(fake.seen)) == (RunStatus.SUCCEEDED, 2)
    for seen in fake.seen:
        marked = [block for block in blocks(seen.json) if "cache_control" in block]
        assert marked == [seen.json["system"][-1]]
        assert [name for name in BLOCKS if any(BLOCKS[name] in block["text"] for block in seen.json["system"])] == [
            name for name in BLOCKS if name not in excluded
        ]


def blocks(value: Any) -> list[dict[str, Any]]:
    """Every block of a body, in order."""
    if isinstance(value, list):
        return [block for one in value for block in blocks(one)]
    if not isinstance(value, dict):
        return []
    own = [value] if "type" in value or "input_schema" in value else []
    return own + [block for one in value.values() for block in blocks(one)]
