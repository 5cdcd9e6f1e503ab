"""A run's trace across processes: the API that took it and the worker that did it send to one real receiver."""

from __future__ import annotations

import asyncio

from hango.cli.embedded.process import wait_until
from tests.cases.try_world import SECONDS, TryWorld
from tests.cases.world import two_tenants
from tests.otlp import ReceivedSpan

ASKED = "question-only-here"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVER, CLIENT = 2, 3


def test_the_trace_of_a_run_goes_on_in_the_worker(try_world: TryWorld) -> None:
    """The caller's trace leads through the POST to the claim, its turn and its call, with the overrides in force."""
    owner = asyncio.run(two_tenants(try_world.database))[0]
    server = try_world.server
    agent = owner.make(server, "/v1/agents", {"name": "stock", "model": "openai/gpt-4o", "builtin": []})
    history = [{"role": "user", "content": "Where are the bolts?"}, {"role": "assistant", "content": "In drawer 3."}]
    session = owner.make(server, "/v1/sessions", {"agent_id": agent["id"], "messages": history})
    path = f"/v1/sessions/{session['id']}"
    overrides = {"overrides": [{"part": "message:2", "action": "exclude"}]}
    owner.send(server, "PUT", f"{path}/context-overrides", overrides).raise_for_status()
    more = {"Prefer": "wait=30", "traceparent": f"00-{TRACE}-{PARENT}-01"}

    reply = owner.send(server, "POST", f"{path}/runs", {"message": ASKED}, more=more)

    def found() -> dict[str, ReceivedSpan]:
        return {one.name: one for one in [*try_world.receiver.spans] if one.trace_id == TRACE}

    names = ("POST /v1/sessions/{session_id}/runs", "run", "run.turn", "chat gpt-4o")
    assert (reply.status_code, reply.json()["status"]) == (200, "succeeded")
    assert wait_until(lambda: set(found()) >= set(names), SECONDS), set(found())
    asked, job, turn, call = (found()[name] for name in names)
    assert [one.parent_id for one in (asked, job, turn, call)] == [PARENT, asked.span_id, job.span_id, turn.span_id]
    assert [one.kind for one in (asked, job, call)] == [SERVER, SERVER, CLIENT]
    assert job.attributes["hango.run.id"] == call.attributes["hango.run.id"] == reply.json()["id"]
    assert (call.attributes["hango.context.overrides"], call.attributes["hango.context.excluded_tokens"] > 0) == (
        1,
        True,
    )
    assert not any(ASKED.encode() in body for body in [*try_world.receiver.raw])
