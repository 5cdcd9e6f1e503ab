"""What leaves the machine of tries: one trace across the queue, figures, outcomes; texts only where a tenant wants."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from hango import telemetry
from hango.cli.serve import make_tenant as make_live_tenant
from hango.config import LogFormat, LogLevel, SecretUrl, Settings
from hango.tries import TryStatus
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.integration.test_telemetry import logging_to
from tests.live import client, serving
from tests.otlp import ReceivedSpan, Receiver, receiving
from tests.picking import Asker, Work, changed, die, held_back, make_asker, open_deps, picking
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.tries import LEASE_OVER, QUEUE_OVER, alter, take
from tests.working import eventually

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
ASKED, REPLACED, ANSWERED = "canary-asked", "canary-replaced", "canary-answered"
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 3,
    "total_tokens": 23,
    "prompt_tokens_details": {"cached_tokens": 8},
}


@dataclass(frozen=True)
class Watched:
    """What a worker did, and what was heard of it once it has ended."""

    receiver: Receiver
    log: io.StringIO
    asker: Asker
    work: Work

    def spans(self, name: str) -> list[ReceivedSpan]:
        return [one for one in self.receiver.spans if one.name == name]


@asynccontextmanager
async def watched(settings: Settings, *, content: bool = False) -> AsyncIterator[Watched]:
    log = io.StringIO()
    with receiving() as receiver:
        seen = replace(settings, otlp_endpoint=receiver.url, log_level=LogLevel.DEBUG, log_format=LogFormat.JSON)
        with logging_to(seen, log), telemetry.setup(seen, "worker"):
            async with open_deps(seen) as deps, picking(deps) as work:
                admin = await make_tenant(deps.store)
                async with deps.store.begin(admin) as scope:
                    await scope.conn.execute("update tenants set trace_llm_content = %s", (content,))
                yield Watched(receiver, log, await make_asker(deps, admin), work)


VARIANT = changed(("message:2",), ASKED, replaced={"message:1": REPLACED})


async def test_a_try_is_one_trace_from_the_request_to_the_model(work_settings: Settings, fake: FakeProvider) -> None:
    """`context_try` under the request's span, the chat span under it with hango.context.try = true and the figures."""
    fake.answer = says(chat(ANSWERED, usage=USAGE))
    async with watched(work_settings) as seen:
        (try_id,) = await seen.asker.ask(VARIANT, traceparent=TRACEPARENT)
        await seen.work.picker.ring()
        (ended,) = await seen.asker.until([try_id])

    (job,) = seen.spans("context_try")
    (call,) = seen.spans("chat gpt-5")
    assert (job.kind, job.trace_id, job.parent_id, job.failed, job.attributes) == (
        2,
        TRACE,
        PARENT,
        False,
        {
            "hango.tenant.id": str(seen.asker.principal.tenant_id),
            "hango.session.id": str(seen.asker.session_id),
            "hango.try.id": str(try_id),
            "hango.context.try.attempt": 1,
            "hango.context.try.outcome": "succeeded",
        },
    )
    assert (call.kind, call.trace_id, call.parent_id, call.failed) == (3, TRACE, job.span_id, False)
    assert json.loads(call.attributes.pop("langfuse.observation.usage_details")) == {
        "input": 12,
        "output": 3,
        "cache_read_input_tokens": 8,
        "cache_creation_input_tokens": 0,
    }
    assert call.attributes == {
        "hango.call.purpose": "context_try",
        "hango.context.try": True,
        "hango.context.overrides": 2,
        "hango.context.excluded_tokens": ended.tokens_before - ended.tokens_after,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.finish_reasons": ["end_turn"],
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.usage.cache_write.input_tokens": 0,
        "langfuse.observation.type": "generation",
    }


@pytest.mark.parametrize("content", [False, True])
async def test_texts_are_traced_by_the_tenants_switch_alone(
    content: bool, work_settings: Settings, fake: FakeProvider
) -> None:
    """Content on telemetry stays controlled by trace_llm_content; logs and metrics never have any."""
    fake.answer = says(chat(ANSWERED))
    async with watched(work_settings, content=content) as seen:
        answered = await seen.asker.ask(VARIANT)
        await seen.work.picker.ring()
        await seen.asker.until(answered)
        fake.answer = says({"error": {"message": ANSWERED}}, status=400)
        refused = await seen.asker.ask(VARIANT)
        await seen.work.picker.ring()
        await seen.asker.until(refused)

    first, second = seen.spans("chat gpt-5")
    told = {name: value for name, value in first.attributes.items() if "messages" in name}
    raw = b"".join(seen.receiver.raw)
    assert [canary.encode() in raw for canary in (ASKED, REPLACED, ANSWERED)] == [content] * 3
    assert not any(canary in seen.log.getvalue() for canary in (ASKED, REPLACED, ANSWERED))
    assert ANSWERED not in str(second.attributes)
    if content:
        assert json.loads(told["gen_ai.input.messages"])[0] == {
            "role": "user",
            "parts": [{"type": "text", "content": REPLACED}],
        }
        assert json.loads(told["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": ANSWERED}]


async def test_a_call_that_failed_is_a_failed_span_without_its_text(
    work_settings: Settings, fake: FakeProvider
) -> None:
    """The chat span has the exception's class, the try's span the code of its error."""
    fake.answer = says({"error": {"message": ANSWERED}}, status=500)
    async with watched(work_settings) as seen:
        tries = await seen.asker.ask()
        await seen.work.picker.ring()
        await seen.asker.until(tries)

    (job,) = seen.spans("context_try")
    (call,) = seen.spans("chat gpt-5")
    assert (job.attributes["error.type"], job.attributes["hango.context.try.outcome"]) == ("provider_error", "failed")
    assert (call.attributes["error.type"], call.failed) == ("ProviderFailed", True)


async def test_a_try_that_waits_again_says_so(work_settings: Settings, fake: FakeProvider) -> None:
    """A claim whose call the provider did not take ends with the try queued."""
    fake.answer = says({}, status=429, headers={"retry-after": "60"})
    async with watched(work_settings) as seen:
        tries = await seen.asker.ask(ttl=600.0)
        await seen.work.picker.ring()
        assert await eventually(lambda: len(fake.seen) == 1)
        await seen.asker.until(tries, frozenset({TryStatus.QUEUED}))

    (job,) = seen.spans("context_try")
    assert job.attributes["hango.context.try.outcome"] == "queued"
    assert [one for one in seen.receiver.counters if one.name == "hango.context.try"] == []


async def test_tries_are_counted_by_their_end(
    work_settings: Settings, fake: FakeProvider, fresh_database: Database
) -> None:
    """Counter hango.context.try by outcome, whoever ended them; what the reconciler did by kind; age and duration."""
    async with watched(work_settings) as seen:
        store, principal = seen.work.store, seen.asker.principal
        done = await seen.asker.ask(times=2)
        await seen.work.picker.ring()
        await seen.asker.until(done)
        fake.answer = says({}, status=400)
        refused = await seen.asker.ask()
        await seen.work.picker.ring()
        await seen.asker.until(refused)
        late, lost, silent, waiting = await seen.asker.ask(times=4, traceparent=TRACEPARENT)
        await take(store, principal, lost, called=True)
        await take(store, principal, silent)
        await alter(store, principal, QUEUE_OVER, late)
        await alter(store, principal, LEASE_OVER, lost, silent)

        async def ring(_: int) -> None:
            return

        reconciler = Reconciler(seen.work.deps, ring)
        await reconciler.look_after()
        with psycopg.connect(fresh_database.superuser_dsn) as conn:
            conn.execute("update quotas set reserved = reserved + 1")
        await reconciler.check()

    assert counted(seen.receiver, "hango.context.try", "hango.context.try.outcome") == {
        "succeeded": 2,
        "failed": 1,
        "expired": 1,
        "lost": 1,
    }
    assert counted(seen.receiver, "hango.context.try.reconciled", "hango.context.try.kind") == {
        "rung": 1,
        "expired": 1,
        "lost": 1,
        "rescued": 1,
    }
    assert {
        one.attributes["hango.context.try.kind"]: one.value
        for one in seen.receiver.gauges
        if one.name == "hango.context.try.drift"
    } == {"ledgers": 1, "overdue": 0}
    taken = [one for one in seen.spans("context_try") if one.attributes.get("error.type") == "worker_lost"]
    assert {
        one.attributes["hango.try.id"]: (one.attributes["hango.context.try.outcome"], one.trace_id) for one in taken
    } == {str(lost): ("lost", TRACE), str(silent): ("queued", TRACE)}
    measured = {(one.name, str(one.attributes)): one.count for one in seen.receiver.histograms}
    assert measured == {
        ("hango.context.try.wait.duration", "{}"): 3,
        ("hango.context.try.call.duration", "{}"): 2,
        ("hango.context.try.call.duration", "{'error.type': 'ProviderFailed'}"): 1,
    }
    assert waiting != late


def counted(receiver: Receiver, name: str, attribute: str) -> dict[Any, float]:
    return {one.attributes[attribute]: one.value for one in receiver.counters if one.name == name}


async def test_a_worker_that_dies_leaves_no_outcome(work_settings: Settings, fake: FakeProvider) -> None:
    """What was not settled is not counted: the reconciler counts it."""
    model = held_back()
    fake.answer = model
    async with watched(work_settings) as seen:
        await seen.asker.ask()
        await seen.work.picker.ring()
        assert await eventually(lambda: model.under_way == 1)
        await die(seen.work.picker)

    (job,) = seen.spans("context_try")
    assert "hango.context.try.outcome" not in job.attributes
    assert [one for one in seen.receiver.counters if one.name == "hango.context.try"] == []


def test_a_cancel_in_the_queue_is_counted_where_it_is_asked_for(settings: Settings, fresh_database: Database) -> None:
    """A waiting try ends in the API; so do those of a batch, and of a session that is deleted."""
    own = replace(settings, database_url=SecretUrl(fresh_database.app_dsn))
    tenant = make_live_tenant(own, "cancels")
    with receiving() as receiver:
        seen = replace(own, otlp_endpoint=receiver.url)
        with serving(seen) as url, client(url, tenant.api_key) as http:

            def post(path: str, body: Any = None) -> dict[str, Any]:
                made: dict[str, Any] = http.post(path, json=body).raise_for_status().json()
                return made

            agent = post("/v1/agents", {"name": "desk", "model": "offline/extract"})
            history = [{"role": "user", "content": "And the nuts?"}]
            session = f"/v1/sessions/{post('/v1/sessions', {'agent_id': agent['id'], 'messages': history})['id']}"
            one = post(f"{session}/context/try", {})
            batch = post(f"{session}/context/try-batches", {"variants": [{}], "repeats": 3})
            post(f"{session}/context/try", {})
            for _ in range(2):
                post(f"/v1/tries/{one['id']}/cancel")
                post(f"/v1/try-batches/{batch['id']}/cancel")
            http.delete(session).raise_for_status()

    assert counted(receiver, "hango.context.try", "hango.context.try.outcome") == {"cancelled": 5}
