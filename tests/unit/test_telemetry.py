"""Telemetry: closed names, a real receiver, and nothing at all without an endpoint."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from hango import telemetry
from hango.config import Secret, Settings
from hango.domain import KeyID, Principal, Role, TenantID, UserID
from hango.errors import NotFound, Unavailable
from hango.telemetry import Attr, Metric, Span
from hango.telemetry.names import HISTOGRAMS
from tests.otlp import Receiver, receiving

CANARY = "canary-4711"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def settings(receiver: Receiver, home: Path) -> Settings:
    return Settings(home=home, otlp_endpoint=receiver.url, otlp_headers=(("authorization", Secret("Bearer letmein")),))


def test_an_inspect_is_one_span_under_its_request_and_one_measure(tmp_path: Path) -> None:
    """Span agent.context_inspect with the six attributes, the histogram of its duration, one SERVER span."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "api"),
        telemetry.request_span("GET", {}) as request,
    ):
        parts = {Attr.PARTS_SYSTEM: 6, Attr.PARTS_TOOLS: 40}
        with telemetry.span(Span.CONTEXT_INSPECT, parts, seconds=Metric.CONTEXT_INSPECT_DURATION) as seen:
            seen.set(Attr.PARTS_MESSAGES, 12)
            seen.set(Attr.TOKENS_BEFORE, 1000)
            seen.set(Attr.TOKENS_AFTER, 900)
            seen.set(Attr.WOULD_COMPACT, False)
        request.answered("/v1/sessions/{session_id}/context", 200)

    inner, outer = receiver.spans
    assert (inner.name, inner.attributes, inner.failed, inner.events) == (
        "agent.context_inspect",
        {
            "hango.context.parts.system": 6,
            "hango.context.parts.tools": 40,
            "hango.context.parts.messages": 12,
            "hango.context.tokens.before": 1000,
            "hango.context.tokens.after": 900,
            "hango.context.would_compact": False,
        },
        False,
        [],
    )
    assert (outer.name, outer.kind, outer.attributes, outer.failed, outer.parent_id) == (
        "GET /v1/sessions/{session_id}/context",
        2,
        {
            "http.request.method": "GET",
            "http.route": "/v1/sessions/{session_id}/context",
            "http.response.status_code": 200,
        },
        False,
        "",
    )
    assert (inner.trace_id, inner.parent_id) == (outer.trace_id, outer.span_id)
    (measured,) = receiver.histograms
    assert (measured.name, measured.unit, measured.count, measured.attributes) == (
        "hango.context.inspect.duration",
        "s",
        1,
        {},
    )
    assert 0 < measured.total < 5
    assert {one["service.name"] for one in receiver.resources} == {"hango-api"}
    assert {one["authorization"] for one in receiver.headers} == {"Bearer letmein"}


def test_processes_are_told_apart(tmp_path: Path) -> None:
    """Each has an id of its own, so that two workers' counters do not overwrite each other."""
    with receiving() as receiver:
        for _ in range(2):
            with telemetry.setup(settings(receiver, tmp_path), "worker"), telemetry.span(Span.CONTEXT_INSPECT):
                pass

    ids = [one["service.instance.id"] for one in receiver.resources]
    assert (len(ids), len(set(ids))) == (2, 2)
    assert {one["service.name"] for one in receiver.resources} == {"hango-worker"}


def test_an_exception_leaves_its_class_and_not_its_text(tmp_path: Path) -> None:
    """No content on spans: an exception's text, which may hold a row, is not recorded."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "api"),
        pytest.raises(ValueError, match=CANARY),
        telemetry.span(Span.CONTEXT_INSPECT, seconds=Metric.CONTEXT_INSPECT_DURATION),
    ):
        raise ValueError(CANARY)

    (failed,) = receiver.spans
    (measured,) = receiver.histograms
    assert (failed.attributes, failed.failed, failed.events) == ({"error.type": "ValueError"}, True, [])
    assert measured.attributes == {"error.type": "ValueError"}
    assert not any(CANARY.encode() in body for body in receiver.raw)


@pytest.mark.parametrize(
    ("error", "status", "failed"), [(NotFound(CANARY), 404, False), (Unavailable(CANARY), 503, True)]
)
def test_only_the_servers_own_fault_marks_a_span_as_failed(
    error: NotFound | Unavailable, status: int, failed: bool, tmp_path: Path
) -> None:
    """A caller's mistake is no failure of the server."""
    with receiving() as receiver, telemetry.setup(settings(receiver, tmp_path), "api"):
        with pytest.raises(type(error)), telemetry.span(Span.CONTEXT_INSPECT):
            raise error
        with telemetry.request_span("GET", {}) as request:
            request.answered("/v1/me", status)

    assert [one.failed for one in receiver.spans] == [failed, failed]
    assert not any(CANARY.encode() in body for body in receiver.raw)


@pytest.mark.parametrize(
    ("headers", "trace_id", "parent_id"),
    [
        ({"traceparent": f"00-{TRACE}-{PARENT}-01"}, TRACE, PARENT),
        ({"traceparent": "00-nonsense"}, None, ""),
        ({}, None, ""),
    ],
)
def test_a_request_goes_on_with_the_callers_trace(
    headers: dict[str, str], trace_id: str | None, parent_id: str, tmp_path: Path
) -> None:
    """A W3C traceparent makes the request a part of the caller's trace; nonsense starts a new one."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "api"),
        telemetry.request_span("GET", headers),
    ):
        pass

    (seen,) = receiver.spans
    assert (seen.trace_id == trace_id) == (trace_id is not None)
    assert seen.parent_id == parent_id


def test_values_of_closed_sets_are_sent_as_their_text(tmp_path: Path) -> None:
    """A value is a number, an id or a member of a closed set."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "api"),
        telemetry.span(Span.CONTEXT_INSPECT, {Attr.ERROR_TYPE: Role.ADMIN}) as seen,
    ):
        seen.set(Attr.PARTS_TOOLS, UUID(int=7))

    (sent,) = receiver.spans
    assert sent.attributes == {
        "error.type": "admin",
        "hango.context.parts.tools": "00000000-0000-0000-0000-000000000007",
    }


def test_without_an_endpoint_nothing_is_opened(tmp_path: Path) -> None:
    """Off without HANGO_OTLP_ENDPOINT: one shared object, no span."""
    with telemetry.setup(Settings(home=tmp_path), "api"):
        opened = [telemetry.request_span("GET", {}), telemetry.span(Span.CONTEXT_INSPECT)]
        with opened[1] as seen:
            seen.set(Attr.TOKENS_BEFORE, 1)
            seen.answered("/v1/me", 500)
            seen.failed(ValueError(CANARY))

    assert opened[0] is opened[1]


def test_closing_switches_telemetry_off(tmp_path: Path) -> None:
    """After the end of a process's telemetry nothing more is sent."""
    with receiving() as receiver:
        with telemetry.setup(settings(receiver, tmp_path), "api"), telemetry.span(Span.CONTEXT_INSPECT):
            pass
        with telemetry.span(Span.CONTEXT_INSPECT):
            pass

    assert [one.name for one in receiver.spans] == ["agent.context_inspect"]


def test_a_collector_that_is_away_does_not_stop_the_process(tmp_path: Path) -> None:
    """Work goes on, and the end waits only for a moment, when nobody answers at the endpoint."""
    with receiving() as receiver:
        away = settings(receiver, tmp_path)

    with telemetry.setup(away, "api"), telemetry.span(Span.CONTEXT_INSPECT) as seen:
        seen.set(Attr.TOKENS_BEFORE, 1)


def test_a_proxy_of_the_environment_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent goes to the endpoint and nowhere else."""
    with receiving() as receiver, receiving() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        with telemetry.setup(settings(receiver, tmp_path), "api"), telemetry.span(Span.CONTEXT_INSPECT):
            pass

    assert (len(receiver.spans), proxy.raw) == (1, [])


def test_the_sdk_is_not_imported_without_an_endpoint() -> None:
    """Telemetry that is off costs no start-up time."""
    code = (
        "import sys, pathlib; from hango import telemetry; from hango.config import Settings;"
        "telemetry.setup(Settings(home=pathlib.Path('/')), 'api');"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk.') or name == 'requests'])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_content_is_allowed_by_the_tenants_switch_alone() -> None:
    """Content on telemetry stays controlled by trace_llm_content, off by default."""
    member = Principal(TenantID(UUID(int=1)), UserID(UUID(int=2)), KeyID(UUID(int=3)), Role.ADMIN)

    assert not telemetry.content_allowed(member)
    assert telemetry.content_allowed(replace(member, trace_llm_content=True))


def test_the_bounds_of_histograms_rise() -> None:
    """A bucket ends where the next one begins."""
    assert all(list(row.bounds) == sorted(set(row.bounds)) for row in HISTOGRAMS.values())
