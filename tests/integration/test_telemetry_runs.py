"""What leaves the machine of runs: one trace from the request to every call and tool, figures, and no content."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest

from hango import telemetry
from hango.config import LogFormat, LogLevel, Secret, SecretUrl, Settings
from hango.workers import run_reconciler, runs
from hango.workers.held import Held
from tests.asked import principal_of
from tests.conftest import Database
from tests.desks import MEMORY, Desk, as_json, exclude, make_desk, put
from tests.integration.test_telemetry import logging_to
from tests.otlp import ReceivedSpan, Receiver, receiving
from tests.people import Api, a_run, serve
from tests.picking import in_turn
from tests.providers_server import Answer, FakeProvider, message, says
from tests.run_desk import alter_run
from tests.runs import see_through, start, take

MODEL, NAME = "anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
ASKED, ANSWERED, KEPT, INVENTED = "canary-asked", "canary-answered", "canary-memory", "canary_tool"


@dataclass(frozen=True)
class Watched:
    """A server, and what was heard of it once it has ended."""

    api: Api
    receiver: Receiver
    log: io.StringIO

    def spans(self, name: str) -> list[ReceivedSpan]:
        return [one for one in self.receiver.spans if one.name == name]

    def tree(self, trace_id: str) -> Counter[tuple[str, str]]:
        """The name of each span's parent and its own, of one trace; what is not there has no name."""
        mine = [one for one in self.receiver.spans if one.trace_id == trace_id]
        names = {one.span_id: one.name for one in mine}
        return Counter((names.get(one.parent_id, ""), one.name) for one in mine)

    def counted(self, name: str, *attributes: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(one.attributes[attribute] for attribute in attributes): one.value
            for one in self.receiver.counters
            if one.name == name
        }


@asynccontextmanager
async def watched(settings: Settings, fake: FakeProvider) -> AsyncIterator[Watched]:
    log = io.StringIO()
    with receiving() as receiver:
        seen = replace(
            settings,
            otlp_endpoint=receiver.url,
            log_level=LogLevel.DEBUG,
            log_format=LogFormat.JSON,
            anthropic_base_url=fake.url,
            anthropic_api_key=Secret("a key"),
        )
        with logging_to(seen, log), telemetry.setup(seen, "api"):
            async with serve(seen) as api:
                yield Watched(api, receiver, log)


@pytest.fixture
def alone(settings: Settings, fresh_database: Database) -> Settings:
    """A database of this test alone: what looks after runs does so across tenants."""
    return replace(settings, database_url=SecretUrl(fresh_database.app_dsn))


async def a_desk(api: Api) -> Desk:
    desk = await make_desk(await api.admin(), MODEL)
    await desk.write(MEMORY, KEPT)
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    return desk


def uses(tool: str, **asked: str) -> Answer:
    call = {"type": "tool_use", "id": f"call_{tool}", "name": tool, "input": asked}
    return says(message(call, stop_reason="tool_use", input_tokens=2, cache_read_input_tokens=6))


async def traced_run(seen: Watched, desk: Desk) -> dict[str, Any]:
    """A run that somebody asked for in a trace of their own, seen to its end."""
    made = await start(desk.owner, desk.session_id, message=ASKED, headers={"traceparent": TRACEPARENT})
    return await see_through(seen.api, desk.owner, made.json()["id"])


async def test_a_run_is_one_trace_without_content(alone: Settings, fake: FakeProvider) -> None:
    """`run` under the request's span, its turns and tools under it, a chat span under each turn with the overrides in
    force and what they took out; the counter and the gauge; no text of anybody anywhere."""
    fake.answer = in_turn(uses("load_skill", name="none"), uses(INVENTED), says(message(ANSWERED)))
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        size = await desk.context("?count=estimate")
        ended = await traced_run(seen, desk)

    (job,) = seen.spans("run")
    turns, calls = seen.spans("run.turn"), seen.spans(f"chat {NAME}")
    tools = [one for one in seen.receiver.spans if one.name.startswith("execute_tool")]
    assert (ended["status"], ended["turns"]) == ("succeeded", 3)
    assert (job.kind, job.failed, job.attributes) == (
        2,
        False,
        {
            "hango.tenant.id": desk.owner.tenant_id,
            "hango.session.id": desk.session_id,
            "hango.run.id": ended["id"],
            "hango.run.attempt": 1,
            "hango.run.status": "succeeded",
            "langfuse.observation.type": "agent",
        },
    )
    assert seen.tree(TRACE) == {
        ("", "POST /v1/sessions/{session_id}/runs"): 1,
        ("POST /v1/sessions/{session_id}/runs", "run"): 1,
        ("run", "run.turn"): 3,
        ("run.turn", f"chat {NAME}"): 3,
        ("run", "execute_tool load_skill"): 1,
        ("run", "execute_tool unknown"): 1,
    }
    assert [one.parent_id for one in calls] == [one.span_id for one in turns]
    of_tool = {"gen_ai.operation.name": "execute_tool", "langfuse.observation.type": "tool", "error.type": "tool_error"}
    assert [(one.failed, one.attributes) for one in tools] == [
        (False, {**of_tool, "gen_ai.tool.name": "load_skill"}),
        (False, {**of_tool, "gen_ai.tool.name": "unknown"}),
    ]
    out = size["estimate_before"] - size["estimate_after"]
    names = (
        "hango.run.id",
        "hango.run.call",
        "hango.call.purpose",
        "hango.context.overrides",
        "hango.context.excluded_tokens",
    )
    assert [[one.attributes[name] for name in names] for one in calls] == [
        [ended["id"], n, "run", 1, out] for n in (1, 2, 3)
    ]
    assert seen.counted("hango.run", "hango.run.status") == {("succeeded",): 1}
    heard = seen.log.getvalue().encode() + b"".join(seen.receiver.raw)
    assert [word for word in (ASKED, ANSWERED, KEPT, INVENTED, "Forty bolts") if word.encode() in heard] == []


async def test_subagents_and_summaries_have_their_places(alone: Settings, fake: FakeProvider) -> None:
    """A subagent's calls hang under the tool that started it, a summary's under the run; each says what it was for, and
    the tokens are counted by purpose as usage_records has them."""
    fake.answer = in_turn(
        says(message("Of bolts.", input_tokens=10)),
        uses("task", description="Count the nuts."),
        uses("load_skill", name="none"),
        says(message("Forty nuts.", input_tokens=10)),
        says(message(ANSWERED, input_tokens=10)),
    )
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        await desk.change(builtin=["subagent", "skills"], compaction={"trigger_tokens": 1, "keep_messages": 1})
        ended = await traced_run(seen, desk)
        usage = as_json(await desk.owner.get("/v1/usage?group_by=purpose"))["data"]

    assert ended["status"] == "succeeded"
    assert seen.tree(TRACE) == {
        ("", "POST /v1/sessions/{session_id}/runs"): 1,
        ("POST /v1/sessions/{session_id}/runs", "run"): 1,
        ("run", f"chat {NAME}"): 1,
        ("run", "run.turn"): 2,
        ("run.turn", f"chat {NAME}"): 2,
        ("run", "execute_tool task"): 1,
        ("execute_tool task", f"chat {NAME}"): 2,
        ("execute_tool task", "execute_tool load_skill"): 1,
    }
    by_call = {one.attributes["hango.run.call"]: one for one in seen.spans(f"chat {NAME}")}
    assert {n: one.attributes["hango.call.purpose"] for n, one in by_call.items()} == {
        1: "summary",
        2: "run",
        3: "subagent",
        4: "subagent",
        5: "run",
    }
    (task,) = seen.spans("execute_tool task")
    assert "error.type" not in task.attributes
    counted = seen.counted("hango.usage.tokens", "hango.call.purpose", "gen_ai.request.model", "gen_ai.token.type")
    kinds = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_tokens"}
    assert counted == {
        (one["group"], NAME, kind): one[column] for one in usage for kind, column in kinds.items() if one[column]
    }
    assert {purpose for purpose, _, _ in counted} == {"run", "subagent", "summary"}


async def test_the_cache_ratio_is_that_of_the_last_call(alone: Settings, fake: FakeProvider) -> None:
    """Six of eight tokens came from the cache: 0.75, by model. A call whose usage nobody told says nothing."""
    untold = message(ANSWERED)
    del untold["usage"]
    fake.answer = in_turn(says(message(ANSWERED, input_tokens=2, cache_read_input_tokens=6)), says(untold))
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        for _ in range(2):
            await see_through(seen.api, desk.owner, (await a_run(desk.owner, desk.session_id, message="On."))["id"])

    gauges = [one for one in seen.receiver.gauges if one.name == "hango.cache.read_ratio"]
    assert {(one.value, *one.attributes.items()) for one in gauges} == {(0.75, ("gen_ai.request.model", NAME))}


async def test_a_summary_is_no_lesson_about_the_cache(alone: Settings, fake: FakeProvider) -> None:
    """The gauge is of the run's own conversation: a summarizer's call shares nothing with the calls before it."""
    fake.answer = in_turn(
        says(message("Of bolts.", input_tokens=9)),
        says(message(ANSWERED, input_tokens=2, cache_read_input_tokens=6)),
    )
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        await desk.change(compaction={"trigger_tokens": 1, "keep_messages": 1})
        await traced_run(seen, desk)

    assert {one.value for one in seen.receiver.gauges if one.name == "hango.cache.read_ratio"} == {0.75}


async def test_a_run_that_waits_for_the_client_has_ended_too(alone: Settings, fake: FakeProvider) -> None:
    """`requires_action` stands on the span and is counted, whether or not a built-in tool was called beside it."""
    fake.answer = uses("look", at="drawer 3")
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        first = await traced_run(seen, desk)
        another = await make_desk(desk.owner, MODEL)
        both = [
            {"type": "tool_use", "id": "a", "name": "load_skill", "input": {"name": "none"}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {}},
        ]
        fake.answer = says(message(*both, stop_reason="tool_use"))
        second = await traced_run(seen, another)

    assert [one["status"] for one in (first, second)] == ["requires_action"] * 2
    assert [one.attributes["hango.run.status"] for one in seen.spans("run")] == ["requires_action"] * 2
    assert seen.counted("hango.run", "hango.run.status") == {("requires_action",): 2}


async def test_runs_that_end_in_the_queue_are_counted(alone: Settings, fake: FakeProvider) -> None:
    """A waiting run ends in the API: by a cancel, or with its session or agent; a second cancel counts nothing."""
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        run = await a_run(desk.owner, desk.session_id)
        for _ in range(2):
            assert (await desk.owner.post(f"/v1/runs/{run['id']}/cancel")).is_success
        await a_run(desk.owner, desk.session_id)
        assert (await desk.owner.delete(f"/v1/sessions/{desk.session_id}")).is_success
        other = await make_desk(desk.owner, MODEL)
        await a_run(desk.owner, other.session_id)
        assert (await desk.owner.delete(f"/v1/agents/{other.agent_id}")).is_success

    assert seen.counted("hango.run", "hango.run.status") == {("cancelled",): 3}


async def test_a_worker_that_ends_says_that_the_run_waits_again(alone: Settings, fake: FakeProvider) -> None:
    """The span of the claim has the status `queued`, and no end of a run is counted."""
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        held = Held(await take(seen.api, desk.owner, (await a_run(desk.owner, desk.session_id))["id"]))
        held.leave()
        await runs.see_through(seen.api.runtime.deps, held)

    (job,) = seen.spans("run")
    assert (job.attributes["hango.run.status"], job.failed, "error.type" in job.attributes) == ("queued", False, False)
    assert seen.counted("hango.run", "hango.run.status") == {}


async def test_texts_of_a_run_are_traced_by_the_tenants_switch_alone(alone: Settings, fake: FakeProvider) -> None:
    """Content on telemetry stays controlled by trace_llm_content: with it on, a call's messages and answer are told."""
    fake.answer = says(message(ANSWERED))
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        made = (await start(desk.owner, desk.session_id, message=ASKED)).json()
        claimed = await take(seen.api, desk.owner, made["id"])
        told = replace(claimed, principal=replace(claimed.principal, trace_llm_content=True))
        await runs.see_through(seen.api.runtime.deps, Held(told))

    (call,) = seen.spans(f"chat {NAME}")
    assert ASKED in call.attributes["gen_ai.input.messages"]
    assert ANSWERED in call.attributes["gen_ai.output.messages"]
    assert KEPT in call.attributes["gen_ai.system_instructions"]
    assert not any(word in seen.log.getvalue() for word in (ASKED, ANSWERED, KEPT))


async def test_a_run_whose_worker_died_leaves_a_span(alone: Settings, fake: FakeProvider) -> None:
    """Its worker sends nothing any more: who takes the run over writes the span of its claim, into the same trace."""
    async with watched(alone, fake) as seen:
        desk = await a_desk(seen.api)
        made = (await start(desk.owner, desk.session_id, headers={"traceparent": TRACEPARENT})).json()
        claimed = await take(seen.api, desk.owner, made["id"])
        deps, principal = seen.api.runtime.deps, await principal_of(desk.owner)
        over = "lease_until = clock_timestamp() - interval '1 s'"
        await alter_run(deps.store, principal, over, UUID(made["id"]))
        await run_reconciler.sweep(deps, 9)
        await see_through(seen.api, desk.owner, made["id"])

    taken, finished = seen.spans("run")
    assert claimed.attempt == 1
    assert (taken.trace_id, taken.attributes) == (
        TRACE,
        {
            "hango.tenant.id": desk.owner.tenant_id,
            "hango.run.id": made["id"],
            "hango.run.attempt": 1,
            "hango.run.status": "queued",
            "error.type": "worker_lost",
        },
    )
    assert (finished.trace_id, finished.attributes["hango.run.attempt"]) == (TRACE, 2)
