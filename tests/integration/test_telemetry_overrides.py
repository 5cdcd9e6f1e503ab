"""What leaves the machine of overrides: events and the gauge, part ids and numbers, never a text."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any, NamedTuple

import httpx2
import pytest

from hango.cli.serve import make_tenant
from hango.config import LogFormat, LogLevel, Settings
from hango.telemetry.names import EVENTS_MOST, Event, Metric
from tests.desks import HISTORY, LOOK, exclude, swap
from tests.integration.test_telemetry import inspects, logging_to
from tests.live import client, serving
from tests.otlp import Receiver, receiving

CANARY = "canary-4712"


class Seen(NamedTuple):
    receiver: Receiver
    log: str
    tenant_id: str
    session_id: str


@pytest.fixture(scope="module")
def seen(settings: Settings) -> Seen:
    """Receiver and log of sets that were put, checked, refused and inspected, a canary in every replacement."""
    log = io.StringIO()
    tenant = make_tenant(settings, "overrides")
    with receiving() as receiver:
        watched = replace(settings, otlp_endpoint=receiver.url, log_level=LogLevel.DEBUG, log_format=LogFormat.JSON)
        with logging_to(watched, log), serving(watched) as url, client(url, tenant.api_key) as http:
            session_id = put_and_inspect(http)
    return Seen(receiver, log.getvalue(), str(tenant.tenant_id), session_id)


def put_and_inspect(http: httpx2.Client) -> str:
    """The id of the session."""
    agent = {"name": "desk", "model": "offline/extract", "builtin": [], "system_prompt": "Count.", "tools": [LOOK]}
    agent_id = http.post("/v1/agents", json=agent).raise_for_status().json()["id"]
    session = {"agent_id": agent_id, "messages": HISTORY}
    session_id = http.post("/v1/sessions", json=session).raise_for_status().json()["id"]
    of_agent, of_session = f"/v1/agents/{agent_id}/context-overrides", f"/v1/sessions/{session_id}/context-overrides"

    def put(path: str, overrides: list[dict[str, Any]]) -> int:
        return http.put(path, json={"overrides": overrides}).status_code

    changed = [*exclude("message:2"), *swap("message:4", CANARY)]
    assert put(f"{of_session}?check=true", changed) == 200
    assert put(of_session, changed) == 200
    assert put(of_agent, [*swap("system:agent", CANARY), *exclude("tool:gone")]) == 200
    assert put(of_session, swap("message:9", CANARY)) == 422
    assert put(of_agent, swap("tool:look", CANARY)) == 422
    assert http.put(of_agent, json={"overrides": swap("system:agent", CANARY), CANARY: 1}).status_code == 422
    context = f"/v1/sessions/{session_id}/context"
    http.get(context).raise_for_status()
    http.get(f"{context}?group=messages&limit=1").raise_for_status()
    many = [f"tool:t{n}" for n in range(EVENTS_MOST + 1)]
    preview = {"exclude": many, "replace": {"message:1": CANARY}, "include": ["message:2"]}
    http.post(f"{context}/preview", json=preview).raise_for_status()
    turn_bad(http, of_session)
    assert put(of_session, []) == 200
    return str(session_id)


def turn_bad(http: httpx2.Client, of_session: str) -> None:
    """A look at an earlier end of the history, where the stored set would leave no message of the user."""
    overrides = exclude("message:1", "message:2", "message:4")
    http.put(of_session, json={"overrides": overrides}).raise_for_status()
    preview = of_session.replace("context-overrides", "context/preview")
    shown = http.post(preview, json={"until": 4}).raise_for_status().json()
    assert [part["override"] for part in shown["messages"]] == ["none"] * 4


def test_an_inspect_tells_what_is_stale_and_what_is_paired(seen: Seen) -> None:
    """Span event agent.context_override_stale per override without its part, context_override_paired per partner."""
    inspect, *_ = inspects(seen.receiver)

    assert inspect.events == [
        (Event.OVERRIDE_STALE, {"hango.context.part": "tool:gone", "hango.context.reason": "not_in_context"}),
        (Event.OVERRIDE_PAIRED, {"hango.context.part": "message:3", "hango.context.because": "message:2"}),
    ]


def test_a_page_tells_the_same_of_the_whole_request(seen: Seen) -> None:
    """The span of an inspect says how many parts and tokens the request has, whatever stretch of it is shown."""
    inspect, page, *_ = inspects(seen.receiver)

    assert (page.attributes, page.events) == (inspect.attributes, inspect.events)
    assert page.attributes["hango.context.parts.messages"] == len(HISTORY)


def test_events_are_bounded(seen: Seen) -> None:
    """A span has at most EVENTS_MOST events of a kind."""
    _, _, preview, _ = inspects(seen.receiver)

    assert [name for name, _ in preview.events] == [Event.OVERRIDE_STALE] * EVENTS_MOST


def test_a_set_that_turned_bad_is_an_error_in_the_log_and_an_event(seen: Seen) -> None:
    """A stored set that is not applied at run time leaves an error in the log, which names the session, and a span
    event."""
    *_, bad = inspects(seen.receiver)
    lines = [json.loads(line) for line in seen.log.splitlines()]

    assert bad.events == [
        (Event.OVERRIDES_NOT_APPLIED, {"hango.context.reason": "no_user_message"}),
        (Event.OVERRIDE_STALE, {"hango.context.part": "tool:gone", "hango.context.reason": "not_in_context"}),
    ]
    assert [(line["level"], line["session_id"]) for line in lines if line["event"] == "overrides_not_applied"] == [
        ("error", seen.session_id)
    ]


def test_active_overrides_are_a_gauge_per_tenant(seen: Seen) -> None:
    """Gauge hango.context.overrides.active: the tenant's saved overrides after the last PUT."""
    last = seen.receiver.gauges[-1]

    assert (last.name, last.value, last.attributes) == (
        Metric.CONTEXT_OVERRIDES_ACTIVE,
        2,
        {"hango.tenant.id": seen.tenant_id},
    )


def test_no_replacement_leaves(seen: Seen) -> None:
    """No text of a replacement is in any span, metric or log line, of a set that is saved, checked or refused."""
    routes = [json.loads(line).get("route", "") for line in seen.log.splitlines()]

    assert sum(route.endswith("/context-overrides") for route in routes) == 8
    assert seen.receiver.raw
    assert not [body for body in seen.receiver.raw if CANARY.encode() in body]
    assert CANARY not in seen.log
