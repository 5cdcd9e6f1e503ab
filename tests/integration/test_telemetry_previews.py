"""What leaves the machine of the previews of summaries: they wait in the queue of tries, and are none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from hango import telemetry
from hango.config import Secret, SecretUrl, Settings
from hango.workers.reconciler import Reconciler
from tests.asked import principal_of
from tests.conftest import Database
from tests.desks import Desk, as_json, make_desk
from tests.otlp import Receiver, receiving
from tests.people import Api, a_preview, serve
from tests.picking import picking
from tests.providers_server import FakeProvider, message, says
from tests.tries import LEASE_OVER, QUEUE_OVER, alter, take

MODEL = "anthropic/claude-sonnet-4-5"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXT = "canary-summary"


@dataclass(frozen=True)
class Watched:
    """A server with one desk, and what was heard of it once it has ended."""

    api: Api
    desk: Desk
    receiver: Receiver

    def counted(self, attribute: str = "hango.context.try.outcome") -> dict[tuple[str, str], float]:
        """What was counted of tries and previews, by outcome."""
        return {
            (one.name, one.attributes[attribute]): one.value
            for one in self.receiver.counters
            if attribute in one.attributes
        }

    async def events(self) -> list[tuple[str, str, Any]]:
        """Of tries and previews, in the order in which they were written."""
        rows = as_json(await self.desk.owner.get("/v1/audit"))["data"]
        told = [(row["action"], row["target_kind"], row["detail"].get("outcome")) for row in reversed(rows)]
        return [one for one in told if one[0].startswith(("context.try", "summary."))]


@asynccontextmanager
async def watched(settings: Settings, database: Database, fake: FakeProvider) -> AsyncIterator[Watched]:
    fake.answer = says(message(TEXT, input_tokens=10))
    with receiving() as receiver:
        seen = replace(
            settings,
            otlp_endpoint=receiver.url,
            anthropic_base_url=fake.url,
            anthropic_api_key=Secret("a key"),
            database_url=SecretUrl(database.app_dsn),
        )
        with telemetry.setup(seen, "api"):
            async with serve(seen) as api:
                desk = await make_desk(await api.admin(), MODEL)
                await desk.change(compaction={"trigger_tokens": 1, "keep_messages": 1})
                yield Watched(api, desk, receiver)


async def test_a_preview_is_counted_as_one(settings: Settings, fresh_database: Database, fake: FakeProvider) -> None:
    """Spans `summary_preview` and chat with purpose `summary`, a counter and audit actions of its own; tokens by
    purpose; nothing of it among those of tries, and none of its text."""
    async with watched(settings, fresh_database, fake) as seen:
        path = f"/v1/sessions/{seen.desk.session_id}/summary/preview"
        made = await seen.desk.owner.post(path, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        async with picking(seen.api.runtime.deps):
            ended = as_json(await seen.desk.owner.get(f"{made.headers['location']}?wait=20"))
        events = await seen.events()

    spans = {one.name: one for one in seen.receiver.spans if one.trace_id == TRACE}
    job, call = spans["summary_preview"], spans["chat claude-sonnet-4-5"]
    asked = spans["POST /v1/sessions/{session_id}/summary/preview"]
    assert ended["status"] == "succeeded"
    assert (set(spans), job.parent_id, call.parent_id) == (
        {asked.name, job.name, call.name},
        asked.span_id,
        job.span_id,
    )
    assert job.attributes == {
        "hango.tenant.id": seen.desk.owner.tenant_id,
        "hango.session.id": seen.desk.session_id,
        "hango.try.id": ended["id"],
        "hango.context.try.attempt": 1,
        "hango.context.try.outcome": "succeeded",
    }
    assert (call.attributes["hango.call.purpose"], "hango.context.try" in call.attributes) == ("summary", False)
    assert seen.counted() == {("hango.summary.preview", "succeeded"): 1}
    assert {one.attributes["hango.call.purpose"] for one in seen.receiver.counters if "usage" in one.name} == {
        "summary"
    }
    assert [one.name for one in seen.receiver.histograms if "try" in one.name] == []
    assert events == [
        ("summary.preview", "summary_preview", None),
        ("summary.preview_finished", "summary_preview", "succeeded"),
    ]
    assert not any(TEXT.encode() in body for body in seen.receiver.raw)


async def test_previews_that_no_worker_ends_are_counted_as_such(
    settings: Settings, fresh_database: Database, fake: FakeProvider
) -> None:
    """Whoever ends one: the reconciler that finds it too late or its worker silent, or the end of its session."""
    async with watched(settings, fresh_database, fake) as seen:
        deps, principal = seen.api.runtime.deps, await principal_of(seen.desk.owner)
        late, lost = [(await a_preview(seen.desk.owner, seen.desk.session_id))["id"] for _ in range(2)]
        await take(deps.store, principal, lost, called=True)
        await alter(deps.store, principal, QUEUE_OVER, late)
        await alter(deps.store, principal, LEASE_OVER, lost)

        async def ring(_: int) -> None:
            return

        await Reconciler(deps, ring).look_after()
        await a_preview(seen.desk.owner, seen.desk.session_id)
        assert (await seen.desk.owner.delete(f"/v1/sessions/{seen.desk.session_id}")).is_success
        events = await seen.events()

    assert seen.counted() == {
        ("hango.summary.preview", "expired"): 1,
        ("hango.summary.preview", "lost"): 1,
        ("hango.summary.preview", "cancelled"): 1,
    }
    (taken,) = [one for one in seen.receiver.spans if one.name == "summary_preview"]
    assert (taken.attributes["hango.try.id"], taken.attributes["error.type"]) == (lost, "worker_lost")
    assert sorted(outcome for action, _, outcome in events if action == "summary.preview_finished") == [
        "cancelled",
        "expired",
        "lost",
    ]
