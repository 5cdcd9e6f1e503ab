"""Spans and metrics: what is open, what is measured, and the one gate for content. Names are in `names.py`.

    with telemetry.setup(settings, "api"):                                       a process, start to end
        with telemetry.request_span("GET", headers) as request:                  one request
            with telemetry.span(Span.CONTEXT_INSPECT, seconds=Metric....) as seen:
                seen.set(Attr.TOKENS_BEFORE, 12)
            request.answered("/v1/agents/{agent_id}", 200)
        with telemetry.job_span(Span.CONTEXT_TRY, traceparent):                      one job of a worker
            with telemetry.chat_span(Name("claude-sonnet-4-5")) as seen:
                seen.content(Content.INPUT, principal, lambda: ...)

Without `HANGO_OTLP_ENDPOINT` all of it does nothing, and the SDK is not imported.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hango.config import Settings
from hango.domain import Principal
from hango.errors import HangoError
from hango.telemetry.names import Attr, Content, Event, Metric, Name, Span, Value

if TYPE_CHECKING:
    from hango.telemetry.otlp import Exporters

__all__ = [
    "Attr",
    "Content",
    "Event",
    "Metric",
    "Name",
    "Seen",
    "Span",
    "Telemetry",
    "chat_span",
    "content_allowed",
    "count",
    "gauge",
    "happened",
    "is_on",
    "job_span",
    "measured",
    "request_span",
    "setup",
    "span",
    "traceparent",
]

_PROPAGATOR: Final = TraceContextTextMapPropagator()


class Telemetry:
    """The telemetry of this process. Closing it sends what is left and switches it off."""

    def __init__(self, exporters: Exporters | None) -> None:
        self._exporters = exporters

    def flush(self) -> None:
        """Send what was seen so far. Blocks until it was sent or given up."""
        if self._exporters is not None:
            self._exporters.flush()

    def close(self) -> None:
        """Blocks for some seconds at most when nobody answers at the endpoint."""
        if self._exporters is not None:
            _State.exporters = None
            self._exporters.close()

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _State:
    """The exporters of the process: a span may be opened anywhere, so they are not passed along."""

    exporters: Exporters | None = None


def setup(settings: Settings, process: str) -> Telemetry:
    """Send to `settings.otlp_endpoint` from here on, or do nothing. `process` is `api` or `worker`."""
    if settings.otlp_endpoint is None:
        return Telemetry(None)
    from hango.telemetry.otlp import Exporters

    _State.exporters = Exporters(settings.otlp_endpoint, settings.otlp_headers, process)
    return Telemetry(_State.exporters)


def content_allowed(principal: Principal) -> bool:
    """Whether texts of messages, memory or answers may stand on spans: the tenant's switch, off at first."""
    return principal.trace_llm_content


class Seen:
    """An open span, or nothing at all when telemetry is off."""

    __slots__ = ("_method", "_span")

    def __init__(self, opened: trace.Span | None, method: str = "") -> None:
        self._span = opened
        self._method = method

    def set(self, attr: Attr, value: Value) -> None:
        if self._span is not None:
            self._span.set_attribute(attr, _plain(value))

    def set_all(self, attrs: Mapping[Attr, Value]) -> None:
        if self._span is not None:
            self._span.set_attributes(_all_plain(attrs))

    def content(self, attr: Content, principal: Principal, write: Callable[[], str]) -> None:
        """Texts of messages or answers, where the tenant wants them on spans; else they are not even written."""
        if self._span is not None and content_allowed(principal):
            self._span.set_attribute(attr, write())

    def become(self, name: Span) -> None:
        """Another name, of a span whose kind shows only while it is open."""
        if self._span is not None:
            self._span.update_name(name.value)

    def happened(self, event: Event, attrs: Mapping[Attr, Value]) -> None:
        if self._span is not None:
            self._span.add_event(event, _all_plain(attrs))

    def answered(self, route: str, status: int) -> None:
        """The end of a request. `route` is the template of the table, never the address that came.

        Only one of the server's own faults marks the span as failed.
        """
        if self._span is None:
            return
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attributes({Attr.HTTP_ROUTE.value: route, Attr.HTTP_STATUS.value: status})
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)

    def failed(self, error: BaseException) -> None:
        """An exception leaves its class, never its text or traceback."""
        if self._span is None:
            return
        self._span.set_attribute(Attr.ERROR_TYPE, type(error).__name__)
        if not (isinstance(error, HangoError) and error.status < 500):
            self._span.set_status(StatusCode.ERROR)


class _Off:
    """What is handed out when telemetry is off: one object for all, no work."""

    seen: Final = Seen(None)

    def __enter__(self) -> Seen:
        return self.seen

    def __exit__(self, *_: object) -> None:
        return None


class _Open:
    """One span from enter to exit."""

    def __init__(
        self, exporters: Exporters, opened: trace.Span, *, method: str = "", seconds: Metric | None = None
    ) -> None:
        self._exporters = exporters
        self._span = opened
        self._seen = Seen(opened, method)
        self._seconds = seconds
        self._started = time.perf_counter()

    def __enter__(self) -> Seen:
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self._seen

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        context.detach(self._token)
        if error is not None:
            self._seen.failed(error)
        if self._seconds is not None:
            failure = {} if kind is None else {Attr.ERROR_TYPE.value: kind.__name__}
            self._exporters.histograms[self._seconds].record(time.perf_counter() - self._started, failure)
        self._span.end()


_OFF: Final = _Off()


def span(
    name: Span, attrs: Mapping[Attr, Value] | None = None, *, of: Name | None = None, seconds: Metric | None = None
) -> _Open | _Off:
    """A span below the one that is open, named after what it is of. `seconds` names the histogram of its duration."""
    exporters = _State.exporters
    if exporters is None:
        return _OFF
    shown = name.value if of is None else f"{name} {of}"
    return _Open(exporters, exporters.tracer.start_span(shown, attributes=_all_plain(attrs)), seconds=seconds)


def job_span(name: Span, traceparent: str | None, attrs: Mapping[Attr, Value] | None = None) -> _Open | _Off:
    """The SERVER span of a job; the trace context of the request that asked for it makes it a part of that trace."""
    exporters = _State.exporters
    if exporters is None:
        return _OFF
    opened = exporters.tracer.start_span(
        name.value,
        context=_PROPAGATOR.extract({} if traceparent is None else {"traceparent": traceparent}),
        kind=SpanKind.SERVER,
        attributes=_all_plain(attrs),
    )
    return _Open(exporters, opened)


def chat_span(model: Name, attrs: Mapping[Attr, Value] | None = None, *, seconds: Metric | None = None) -> _Open | _Off:
    """The CLIENT span of a model call, named after the model."""
    exporters = _State.exporters
    if exporters is None:
        return _OFF
    name = f"{Span.CHAT} {model}"
    opened = exporters.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=_all_plain(attrs))
    return _Open(exporters, opened, seconds=seconds)


def traceparent() -> str | None:
    """The span that is open as a W3C header, to be handed on with work that is done later; None when there is none."""
    carrier: dict[str, str] = {}
    if _State.exporters is not None:
        _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent")


def happened(event: Event, attrs: Mapping[Attr, Value]) -> None:
    """Say on the span that is open, whoever opened it, what happened."""
    if _State.exporters is not None:
        Seen(trace.get_current_span()).happened(event, attrs)


def is_on() -> bool:
    """Whether what is measured goes anywhere: what costs a query is not looked up for nobody."""
    return _State.exporters is not None


def gauge(name: Metric, value: float, attrs: Mapping[Attr, Value]) -> None:
    """Say how much there is of something, as of now."""
    if _State.exporters is not None:
        _State.exporters.gauges[name].set(value, _all_plain(attrs))


def count(name: Metric, attrs: Mapping[Attr, Value], *, by: float = 1) -> None:
    """Say that something happened, once or more often."""
    if _State.exporters is not None:
        _State.exporters.counters[name].add(by, _all_plain(attrs))


def measured(name: Metric, seconds: float) -> None:
    """Say how long something took that is no span."""
    if _State.exporters is not None:
        _State.exporters.histograms[name].record(seconds)


def request_span(method: str, headers: Mapping[str, str]) -> _Open | _Off:
    """The one SERVER span of a request; it gets its name and route by `Seen.answered`.

    A caller's `traceparent` makes it a part of the caller's trace.
    """
    exporters = _State.exporters
    if exporters is None:
        return _OFF
    carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    opened = exporters.tracer.start_span(
        method,
        context=_PROPAGATOR.extract(carrier),
        kind=SpanKind.SERVER,
        attributes={Attr.HTTP_METHOD.value: method},
    )
    return _Open(exporters, opened, method=method)


def _plain(value: Value) -> bool | int | float | str | list[str]:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple):
        return [str(one) for one in value]
    if isinstance(value, Mapping):
        return json.dumps({str(name): figure for name, figure in value.items()})
    return str(value)


def _all_plain(attrs: Mapping[Attr, Value] | None) -> dict[str, bool | int | float | str | list[str]]:
    return {attr.value: _plain(value) for attr, value in (attrs or {}).items()}
