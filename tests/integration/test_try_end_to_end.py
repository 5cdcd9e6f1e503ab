"""Tries as the specification says them: API, queue, worker and provider for real, one sentence a test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from aiohttp import web

from hango.cli.embedded.process import wait_until
from hango.store import system
from hango.store.connection import Store
from tests.cases.try_steps import LEASE_OVER
from tests.cases.try_world import SECONDS, TryWorld, in_its_words
from tests.cases.world import Person, two_tenants
from tests.otlp import ReceivedSpan
from tests.picking import in_turn
from tests.providers_server import Answer, never, says

MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-4o")
HISTORY = [
    {"role": "user", "content": "Where are the bolts?"},
    {"role": "assistant", "content": "In drawer 3."},
    {"role": "user", "content": "And the nuts?"},
]
CALL = {"id": "call_1", "name": "write_file", "input": {"path": "/notes.md", "content": "Nuts: drawer 4."}}
REPLACED, ASKED, ANSWERED = "replacement-only-here", "question-only-here", "answer-only-here"
SERVER, CLIENT = 2, 3


@dataclass(frozen=True, slots=True)
class Desk:
    """A session, and the owner who tries things on it: the admin of a tenant of this test alone."""

    world: TryWorld
    owner: Person
    session_id: str
    agent_id: str

    @property
    def path(self) -> str:
        return f"/v1/sessions/{self.session_id}/context/try"

    def send(self, method: str, path: str, body: Any = None, **more: str) -> httpx2.Response:
        return self.owner.send(self.world.server, method, path, body, more=more)

    def get(self, path: str) -> Any:
        return self.send("GET", path).raise_for_status().json()

    def post(self, **body: Any) -> dict[str, Any]:
        """A try, accepted."""
        reply = self.send("POST", self.path, body)
        assert reply.status_code == 202, reply.text
        made: dict[str, Any] = reply.json()
        return made

    def tried(self, **body: Any) -> dict[str, Any]:
        """A try, at its end."""
        return self.world.until(self.owner, self.post(**body)["id"])

    def turns(self) -> Any:
        """What a try never touches."""
        return self.get(f"/v1/sessions/{self.session_id}"), self.get(f"/v1/sessions/{self.session_id}/messages")

    def bills(self) -> list[dict[str, Any]]:
        return list(self.get(f"/v1/usage/records?session_id={self.session_id}")["data"])


def desk_of(world: TryWorld, owner: Person, model: str) -> Desk:
    agent = {"name": "stock", "model": model, "builtin": ["filesystem"], "max_output_tokens": 100}
    agent_id = owner.make(world.server, "/v1/agents", agent)["id"]
    session = owner.make(world.server, "/v1/sessions", {"agent_id": agent_id, "messages": HISTORY})
    return Desk(world, owner, session["id"], agent_id)


@pytest.fixture(params=MODELS)
def desk(try_world: TryWorld, request: pytest.FixtureRequest) -> Desk:
    """On each wire."""
    return desk_of(try_world, asyncio.run(two_tenants(try_world.database))[0], request.param)


@pytest.fixture
def one(try_world: TryWorld) -> Desk:
    """On one wire, where it makes no difference."""
    return desk_of(try_world, asyncio.run(two_tenants(try_world.database))[0], MODELS[1])


def test_a_try_returns_the_assistant_message_its_stop_reason_and_usage(desk: Desk) -> None:
    """A try sends one model call with ad-hoc exclusions and replacements and returns the answer, stop reason, usage."""
    body = {"exclude": ["tool:grep"], "replace": {"message:2": "In drawer 7."}, "message": "In one word."}
    reply = desk.send("POST", desk.path, body, Prefer="wait=30")

    made = reply.json()
    assert (reply.status_code, reply.headers["preference-applied"]) == (200, "wait=30")
    assert {key: made[key] for key in ("status", "answer", "stop_reason", "error", "attempts")} == {
        "status": "succeeded",
        "answer": {"role": "assistant", "content": [{"type": "text", "text": "In drawer 4."}]},
        "stop_reason": "end_turn",
        "error": None,
        "attempts": 1,
    }
    assert made["usage"]["cost_usd"] is None or made["usage"]["cost_usd"] > 0
    assert {**made["usage"], "cost_usd": None} == {
        "input_tokens": 12,
        "output_tokens": 3,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost_usd": None,
        "estimated": False,
    }
    (call,) = desk.world.calls()
    assert ("In drawer 7." in str(call.json), "In drawer 3." in str(call.json)) == (True, False)
    assert ("In one word." in str(call.json), '"grep"' in call.body.decode()) == (True, False)


def test_no_message_is_appended_and_no_run_is_started(desk: Desk) -> None:
    """A try leaves its session as it was: no message, no run, and the next request is the same."""
    before, context = desk.turns(), desk.get(f"/v1/sessions/{desk.session_id}/context?format=provider")

    assert desk.tried(message="And now?")["status"] == "succeeded"

    assert desk.turns() == before
    assert desk.get(f"/v1/sessions/{desk.session_id}/context?format=provider") == context
    assert desk.world.rows("select from runs where session_id = %s", desk.session_id) == []


def test_tool_calls_are_returned_and_never_executed(desk: Desk) -> None:
    """The model asks to write a file: the call comes back, nobody writes, and the model is not asked again."""
    called = [{"type": "tool_use", **CALL}]
    function = {"name": CALL["name"], "arguments": json.dumps(CALL["input"])}
    calls = {"tool_calls": [{"id": CALL["id"], "type": "function", "function": function}]}
    desk.world.answers(in_both(in_its_words(*called, stop_reason="tool_use"), finish_reason="tool_calls", **calls))

    made = desk.tried()

    assert (made["answer"]["content"], made["stop_reason"]) == (called, "tool_use")
    assert desk.get(f"/v1/agents/{desk.agent_id}/files")["data"] == []
    assert len(desk.world.calls()) == 1


def in_both(messages: Answer, **said: Any) -> Answer:
    """Blocks for Messages, fields of an answer for Chat Completions."""
    completions = in_its_words(**said)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (completions if "completions" in request.path else messages)(request)

    return answer


def test_the_chat_span_says_that_it_was_a_try_in_the_trace_of_its_request(one: Desk) -> None:
    """hango.context.try = true on the chat span, under a context_try SERVER span, under the span of the POST."""
    made = one.tried(exclude=["message:2"])

    of_request, job, call = spans_of(one, made["id"])
    assert (of_request.kind, job.kind, call.kind) == (SERVER, SERVER, CLIENT)
    assert {of_request.trace_id, job.trace_id, call.trace_id} == {job.trace_id}
    assert (job.parent_id, call.parent_id) == (of_request.span_id, job.span_id)
    assert (job.attributes["hango.try.id"], job.attributes["hango.context.try.outcome"]) == (made["id"], "succeeded")
    assert {key: value for key, value in call.attributes.items() if key.startswith("hango.context")} == {
        "hango.context.try": True,
        "hango.context.overrides": 1,
        "hango.context.excluded_tokens": made["tokens_before"] - made["tokens_after"],
    }
    assert (call.attributes["gen_ai.usage.input_tokens"], call.attributes["gen_ai.usage.output_tokens"]) == (12, 3)


def spans_of(desk: Desk, try_id: str) -> tuple[ReceivedSpan, ReceivedSpan, ReceivedSpan]:
    """Of the POST, of the claim and of the call, once all have been exported."""

    def found() -> list[ReceivedSpan]:
        spans = [*desk.world.receiver.spans]
        jobs = [span for span in spans if span.attributes.get("hango.try.id") == try_id]
        above = [span for job in jobs for span in spans if span.span_id == job.parent_id]
        below = [span for job in jobs for span in spans if span.parent_id == job.span_id]
        return [*above, *jobs, *below]

    assert wait_until(lambda: len(found()) == 3, SECONDS), [span.name for span in found()]
    of_request, job, call = found()
    assert (of_request.name, job.name, call.name) == (
        "POST /v1/sessions/{session_id}/context/try",
        "context_try",
        "chat gpt-4o",
    )
    return of_request, job, call


def test_exactly_one_usage_row_is_written(desk: Desk) -> None:
    """One usage_records row of purpose context_try, without a run, with its cost; it counts against the quota."""
    made = desk.tried()

    (bill,) = desk.bills()
    keys = ("purpose", "run_id", "try_id", "model", "input_tokens", "output_tokens", "cost_usd", "estimated")
    assert {key: bill[key] for key in keys} == {
        "purpose": "context_try",
        "run_id": None,
        "try_id": made["id"],
        "model": made["request"]["model"],
        "input_tokens": 12,
        "output_tokens": 3,
        "cost_usd": made["usage"]["cost_usd"],
        "estimated": False,
    }
    # The list prices are the maker's; the test's server is not OpenAI's.
    assert (bill["cost_usd"] is not None) is made["request"]["model"].startswith("anthropic")
    tenant = desk.get("/v1/me")["tenant"]
    assert (tenant["quota_used"], tenant["quota_reserved"]) == (15, 0)


def test_a_quota_that_is_used_up_is_a_402(try_world: TryWorld) -> None:
    """Counts against quota: 402 when it is used up, before anything is queued or called."""
    one = desk_of(try_world, asyncio.run(with_quota(try_world, 100)), MODELS[1])
    reply = one.send("POST", one.path, {})

    assert (reply.status_code, reply.json()["code"]) == (402, "quota_exceeded")
    assert one.world.rows("select from tries where session_id = %s", one.session_id) == []
    assert (one.world.calls(), one.bills(), one.get("/v1/me")["tenant"]["quota_reserved"]) == ([], [], 0)


async def with_quota(world: TryWorld, tokens: int) -> Person:
    store = await Store.open(world.database.app_dsn, max_size=1)
    async with store.system() as scope:
        made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=tokens)
    await store.close()
    return Person(made.api_key)


def test_the_audit_row_names_parts_and_the_model_and_holds_no_text(one: Desk) -> None:
    """Audit context.try: excluded part ids, replaced part ids, model, outcome, and never a text."""
    one.world.answers(in_its_words(ANSWERED))

    made = one.tried(exclude=["tool:grep"], replace={"message:2": REPLACED}, message=ASKED)

    rows = [row for row in one.get("/v1/audit?limit=500")["data"] if row["target_id"] == made["id"]]
    assert [(row["action"], row["target_kind"], row["detail"]) for row in reversed(rows)] == [
        (
            "context.try",
            "try",
            {
                "session_id": one.session_id,
                "excluded": ["tool:grep"],
                "replaced": ["message:2"],
                "included": [],
                "model": MODELS[1],
            },
        ),
        (
            "context.try_finished",
            "try",
            {"session_id": one.session_id, "model": MODELS[1], "outcome": "succeeded", "error": None},
        ),
    ]
    assert [text for text in (REPLACED, ASKED, ANSWERED) if text in json.dumps(rows)] == []


def test_a_killed_workers_try_is_lost_billed_once_and_not_called_again(desk: Desk) -> None:
    """kill -9 during the call: the model is called once, the try ends `lost`, one estimated bill, nothing reserved."""
    world = desk.world
    world.answers(never)
    made = desk.post()
    world.until_called()
    world.worker.kill()
    world.answers(in_its_words("Not for you."))
    world.worker.start()
    world.change(LEASE_OVER, made["id"])
    lost = world.until(desk.owner, made["id"])
    after = desk.tried()

    assert (lost["status"], lost["error"]["code"], lost["answer"]) == ("lost", "worker_lost", None)
    assert after["status"] == "succeeded"
    assert len(world.calls()) == 2
    assert [(bill["try_id"], bill["estimated"]) for bill in reversed(desk.bills())] == [
        (made["id"], True),
        (after["id"], False),
    ]
    assert desk.get("/v1/me")["tenant"]["quota_reserved"] == 0


def test_a_late_answer_corrects_the_bill_of_a_lost_try(one: Desk) -> None:
    """A worker frozen past its lease: lost, billed by estimate; its answer then takes the estimate's place."""
    world, gate = one.world, Gate()
    world.answers(gate)
    made = one.post()
    world.until_called()
    assert world.worker.pid is not None
    os.kill(world.worker.pid, signal.SIGSTOP)
    try:
        gate.open = True
        world.change(LEASE_OVER, made["id"])
        lost = world.until(one.owner, made["id"])
        (estimate,) = one.bills()
        assert wait_until(lambda: gate.answered, SECONDS)
    finally:
        os.kill(world.worker.pid, signal.SIGCONT)
    assert wait_until(lambda: not one.bills()[0]["estimated"], SECONDS)

    (bill,) = one.bills()
    assert (lost["status"], estimate["estimated"], estimate["id"]) == ("lost", True, bill["id"])
    assert (bill["input_tokens"], bill["output_tokens"]) == (12, 3)
    assert one.get(f"/v1/tries/{made['id']}")["status"] == "lost"
    tenant = one.get("/v1/me")["tenant"]
    assert (tenant["quota_used"], tenant["quota_reserved"]) == (15, 0)


class Gate:
    """An answer that is held back until `open` is set, from any thread."""

    def __init__(self) -> None:
        self.open = self.answered = False

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        while not self.open:  # noqa: ASYNC110  set from another thread
            await asyncio.sleep(0.01)
        reply = await in_its_words("In drawer 4.")(request)
        await reply.prepare(request)
        await reply.write_eof()
        self.answered = True
        return reply


def test_an_overloaded_provider_is_asked_again_and_paid_once(desk: Desk) -> None:
    """529, then 200: the try waits as long as it was asked to, succeeds, and has one usage row."""
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}
    desk.world.answers(in_turn(says(busy, status=529, headers={"retry-after": "1"}), in_its_words("In drawer 4.")))

    made = desk.tried()

    assert (made["status"], made["attempts"], len(desk.world.calls())) == ("succeeded", 2, 2)
    assert [(bill["try_id"], bill["input_tokens"]) for bill in desk.bills()] == [(made["id"], 12)]


def test_a_refusal_of_the_provider_is_final(desk: Desk) -> None:
    """A provider's 4xx ends the try with its words, without the key, and costs nothing."""
    words = "No such model: sk-ant-of-tests sk-of-tests"
    desk.world.answers(says({"type": "error", "error": {"type": "not_found_error", "message": words}}, status=404))

    made = desk.tried()

    assert (made["status"], made["error"]["code"], len(desk.world.calls())) == ("failed", "provider_refused", 1)
    assert "No such model" in made["error"]["message"]
    assert "of-tests" not in json.dumps(made)
    assert [(bill["input_tokens"], bill["output_tokens"], bill["cost_usd"]) for bill in desk.bills()] == [(0, 0, 0)]
