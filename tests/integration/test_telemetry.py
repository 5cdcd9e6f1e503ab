"""What leaves the machine: spans and metrics of a live API, seen by a real receiver, and its log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import httpx2
import pytest
import structlog

from hango import logs
from hango.cli.serve import make_tenant
from hango.config import LogFormat, LogLevel, Secret, Settings
from hango.logs import Log
from hango.telemetry.names import Attr, Metric, Span
from tests.live import client, serving
from tests.otlp import ReceivedSpan, Receiver, receiving

CANARY = "canary-4711"
MEMORY = f"/memories/{CANARY}.md"
PLACES = ("system", "tools", "messages")


class Seen(NamedTuple):
    receiver: Receiver
    log: str
    snapshots: list[dict[str, Any]]


def agent() -> dict[str, Any]:
    return {
        "name": f"agent {CANARY}",
        "model": "offline/extract",
        "system": [{"name": "agent", "text": f"system {CANARY}"}],
        "tools": [
            {
                "name": "look",
                "description": f"tool {CANARY}",
                "input_schema": {"type": "object", "description": CANARY},
            }
        ],
        "memory": [MEMORY],
    }


def history() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"question {CANARY}"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": CANARY}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": f"result {CANARY}"}],
        },
    ]


def content_of(http: httpx2.Client) -> str:
    """An agent and a session whose every text holds the canary; the session's id."""
    made = http.post("/v1/agents", json=agent()).raise_for_status().json()
    files = {
        MEMORY: f"memory {CANARY}",
        "/skills/count/SKILL.md": f"---\nname: count\ndescription: skill {CANARY}\n---\nCount {CANARY}.\n",
    }
    for path, text in files.items():
        http.put(f"/v1/agents/{made['id']}/files{path}", json={"content": text}).raise_for_status()
    session = {"agent_id": made["id"], "title": f"title {CANARY}", "messages": history()}
    return str(http.post("/v1/sessions", json=session).raise_for_status().json()["id"])


def mistakes(http: httpx2.Client, session_id: str) -> list[int]:
    """Requests that fail, with the canary wherever one can be put."""
    context = f"/v1/sessions/{session_id}/context"
    return [
        http.get(f"/v1/sessions/{CANARY}/context").status_code,
        http.get(f"/{CANARY}", params={CANARY: CANARY}, headers={"x-canary": CANARY}).status_code,
        http.get(context, params={"full": f"system:memory:/{CANARY}"}).status_code,
        http.post(f"{context}/preview", content=f'{{"{CANARY}'.encode()).status_code,
        http.post(f"{context}/preview", json={"exclude": [f"tool:{CANARY}\n"], CANARY: CANARY}).status_code,
        http.get("/v1/me", headers={"Authorization": f"Bearer hango_{CANARY}"}).status_code,
    ]


@pytest.fixture(scope="module")
def seen(settings: Settings) -> Seen:
    """What receiver and log got of inspects, mistakes and a tenant that allows content; and the snapshots."""
    log = io.StringIO()
    api_key = make_tenant(settings, "telemetry").api_key
    with receiving() as receiver:
        watched = replace(
            settings,
            otlp_endpoint=receiver.url,
            otlp_headers=(("authorization", Secret("Bearer letmein")),),
            log_level=LogLevel.DEBUG,
            log_format=LogFormat.JSON,
        )
        with logging_to(watched, log), serving(watched) as url, client(url, api_key) as http:
            snapshots = inspected(http)
    return Seen(receiver, log.getvalue(), snapshots)


@contextmanager
def logging_to(settings: Settings, stream: io.StringIO) -> Iterator[None]:
    """The logging of the test run is as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    logs.setup(settings, stream)
    try:
        yield
    finally:
        root.handlers, root.level = handlers, level
        structlog.reset_defaults()


def inspected(http: httpx2.Client) -> list[dict[str, Any]]:
    """Four inspects, the tenant's switch for content turned on between them, and mistakes; two snapshots."""
    session_id = content_of(http)
    context = f"/v1/sessions/{session_id}/context"
    snapshots = [http.get(context).raise_for_status().json()]
    http.patch("/v1/tenant", json={"trace_llm_content": True}).raise_for_status()
    unsaved = {"replace": {"system:agent": f"other {CANARY}"}, "message": f"more {CANARY}"}
    snapshots.append(http.post(f"{context}/preview", json=unsaved).raise_for_status().json())
    assert CANARY in http.get(context, params={"full": f"system:memory:{MEMORY}"}).text
    assert CANARY in http.get(context, params={"format": "provider"}).text
    assert mistakes(http, session_id) == [404, 404, 404, 400, 422, 401]
    return snapshots


def inspects(receiver: Receiver) -> list[ReceivedSpan]:
    return [one for one in receiver.spans if one.name == Span.CONTEXT_INSPECT]


def test_an_inspect_has_its_span_with_the_numbers_of_its_snapshot(seen: Seen) -> None:
    """Span agent.context_inspect for an inspect request, with parts, tokens and would_compact."""
    receiver, _, snapshots = seen

    assert [one.attributes for one in inspects(receiver)[: len(snapshots)]] == [
        {
            **{f"hango.context.parts.{group}": len(snapshot[group]) for group in PLACES},
            "hango.context.tokens.before": snapshot["total_before"],
            "hango.context.tokens.after": snapshot["total_after"],
            "hango.context.would_compact": False,
        }
        for snapshot in snapshots
    ]
    assert [len(snapshots[0][group]) > 0 for group in PLACES] == [True, True, True]


def test_every_request_is_one_server_span_by_its_template(seen: Seen) -> None:
    """One SERVER span a request, named by method and template; an inspect's span is below it."""
    receiver, _, _ = seen
    servers = {one.span_id: one for one in receiver.spans if one.kind == 2}

    parents = [servers[one.parent_id].name for one in inspects(receiver)]

    assert parents[:4] == [
        "GET /v1/sessions/{session_id}/context",
        "POST /v1/sessions/{session_id}/context/preview",
        "GET /v1/sessions/{session_id}/context",
        "GET /v1/sessions/{session_id}/context",
    ]
    for one in servers.values():
        method, route = one.name.split(" ", 1)
        assert (one.attributes["http.request.method"], one.attributes["http.route"]) == (method, route)
        assert one.failed is (one.attributes["http.response.status_code"] >= 500)


def test_the_duration_of_each_inspect_is_measured(seen: Seen) -> None:
    """The histogram hango.context.inspect.duration takes every inspect, in seconds."""
    receiver, _, _ = seen
    last = {json.dumps(one.attributes): one for one in receiver.histograms}

    assert {one.name for one in last.values()} == {Metric.CONTEXT_INSPECT_DURATION}
    assert sum(one.count for one in last.values()) == len(inspects(receiver))
    assert {one.unit for one in last.values()} == {"s"}


def test_only_names_of_the_closed_tables_are_sent(seen: Seen) -> None:
    """Names of spans, attributes and metrics come from one closed table."""
    receiver, _, _ = seen

    assert {name for one in receiver.spans for name in one.attributes} <= {attr.value for attr in Attr}
    assert {one.name for one in receiver.spans if one.kind != 2} == {Span.CONTEXT_INSPECT.value}


def test_no_content_leaves_on_spans_or_metrics(seen: Seen) -> None:
    """No text of messages, memory, tools, files or replacements is in any span or metric."""
    receiver, _, _ = seen

    assert receiver.raw
    assert not [body for body in receiver.raw if CANARY.encode() in body]


def test_no_content_is_logged(seen: Seen) -> None:
    """No text of a request is in any log line; each line is one JSON object with closed names."""
    _, log, _ = seen

    events = [json.loads(line)["event"] for line in log.splitlines()]

    assert CANARY not in log
    assert (events[0], events[-1]) == ("started", "stopped")
    # Its reconciler may find what other tests of this database have left.
    assert {"started", "request", "stopped"} <= set(events) <= {name.value for name in Log}


def test_a_log_line_of_a_request_leads_to_its_trace(seen: Seen) -> None:
    """A line inside a traced request has the trace's id."""
    receiver, log, _ = seen
    lines = [json.loads(line) for line in log.splitlines()]

    traced = {line["trace_id"] for line in lines if line.get("route", "").endswith("/context")}

    assert traced <= {one.trace_id for one in receiver.spans}
    assert traced
