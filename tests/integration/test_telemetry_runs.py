"""What leaves the machine of runs: one trace from the request to every call and tool, figures, and no content."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from hango import telemetry
from hango.config import LogFormat, LogLevel, Secret, Settings
from tests.desks import MEMORY, Desk, as_json, exclude, make_desk, put
from tests.integration.test_telemetry import logging_to
from tests.otlp import ReceivedSpan, Receiver, receiving
from tests.people import Api, a_run, serve
from tests.picking import in_turn
from tests.providers_server import Answer, FakeProvider, message, says
from tests.runs import see_through

MODEL = "anthropic/claude-sonnet-4-5"
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


async def a_desk(api: Api) -> Desk:
    desk = await make_desk(await api.admin(), MODEL)
    await desk.write(MEMORY, KEPT)
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    return desk


def uses(tool: str, **asked: str) -> Answer:
    call = {"type": "tool_use", "id": f"call_{tool}", "name": tool, "input": asked}
    return says(message(call, stop_reason="tool_use", input_tokens=2, cache_read_input_tokens=6))


@pytest.fixture
def script(fake: FakeProvider) -> None:
    """A call of a built-in tool, one of a tool that is not there, an answer."""
    fake.answer = in_turn(uses("load_skill", name="none"), uses(INVENTED), says(message(ANSWERED)))


async def test_a_run_is_one_trace_without_content(settings: Settings, fake: FakeProvider, script: None) -> None:
    """`run` under the request's trace, its turns and tools under it, a chat span under each turn with the overrides in
    force and what they took out; the counter and the gauge; no text of anybody anywhere."""
    async with watched(settings, fake) as seen:
        desk = await a_desk(seen.api)
        size = await desk.context("?count=estimate")
        path = f"/v1/sessions/{desk.session_id}/runs"
        made = await desk.owner.post(path, json={"message": ASKED}, headers={"traceparent": TRACEPARENT})
        ended = await see_through(seen.api, desk.owner, made.json()["id"])

    (job,) = seen.spans("run")
    turns, calls = seen.spans("run.turn"), seen.spans("chat claude-sonnet-4-5")
    tools = [one for one in seen.receiver.spans if one.name.startswith("execute_tool")]
    assert (ended["status"], ended["turns"]) == ("succeeded", 3)
    assert (job.kind, job.trace_id, job.failed, job.attributes) == (
        2,
        TRACE,
        False,
        {
            "hango.tenant.id": desk.owner.tenant_id,
            "hango.run.id": ended["id"],
            "hango.run.attempt": 1,
            "hango.run.status": "succeeded",
        },
    )
    assert [one.parent_id for one in [*turns, *tools]] == [job.span_id] * 5
    assert [one.parent_id for one in calls] == [one.span_id for one in turns]
    assert [(one.name, one.attributes) for one in tools] == [
        ("execute_tool load_skill", {"gen_ai.tool.name": "load_skill"}),
        ("execute_tool unknown", {"gen_ai.tool.name": "unknown"}),
    ]
    out = size["estimate_before"] - size["estimate_after"]
    names = ("hango.run.purpose", "hango.context.overrides", "hango.context.excluded_tokens")
    assert [[one.attributes[name] for name in names] for one in calls] == [["run", 1, out]] * 3
    assert {one.trace_id for one in [*turns, *tools, *calls]} == {TRACE}
    assert [(one.value, one.attributes) for one in seen.receiver.counters if one.name == "hango.run"] == [
        (1, {"hango.run.status": "succeeded"})
    ]
    gauges = [one for one in seen.receiver.gauges if one.name == "hango.cache.read_ratio"]
    assert [one.attributes for one in gauges] == [{"gen_ai.request.model": "claude-sonnet-4-5"}] * len(gauges)
    heard = seen.log.getvalue().encode() + b"".join(seen.receiver.raw)
    assert [word for word in (ASKED, ANSWERED, KEPT, INVENTED, "Forty bolts") if word.encode() in heard] == []


async def test_the_cache_ratio_is_that_of_the_last_call(settings: Settings, fake: FakeProvider) -> None:
    """Six of eight tokens came from the cache: 0.75."""
    fake.answer = says(message(ANSWERED, input_tokens=2, cache_read_input_tokens=6))
    async with watched(settings, fake) as seen:
        desk = await a_desk(seen.api)
        await see_through(seen.api, desk.owner, (await a_run(desk.owner, desk.session_id))["id"])

    gauges = [one for one in seen.receiver.gauges if one.name == "hango.cache.read_ratio"]
    assert (gauges[-1].value, gauges[-1].attributes) == (0.75, {"gen_ai.request.model": "claude-sonnet-4-5"})
