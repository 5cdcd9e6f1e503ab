"""A real OTLP/HTTP receiver: it decodes what an exporter sends, and keeps every byte for a search."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    name: str
    kind: int
    attributes: dict[str, Any]
    failed: bool
    trace_id: str
    span_id: str
    parent_id: str
    events: list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class ReceivedHistogram:
    name: str
    unit: str
    count: int
    total: float
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedGauge:
    name: str
    value: float
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedCounter:
    name: str
    value: float
    attributes: dict[str, Any]


@dataclass
class Receiver:
    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    histograms: list[ReceivedHistogram] = field(default_factory=list)
    gauges: list[ReceivedGauge] = field(default_factory=list)
    counters: list[ReceivedCounter] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def take(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(plain(group.resource.attributes))
                self.spans += [
                    ReceivedSpan(
                        name=one.name,
                        kind=one.kind,
                        attributes=plain(one.attributes),
                        failed=one.status.code == one.status.STATUS_CODE_ERROR,
                        trace_id=one.trace_id.hex(),
                        span_id=one.span_id.hex(),
                        parent_id=one.parent_span_id.hex(),
                        events=[(event.name, plain(event.attributes)) for event in one.events],
                    )
                    for scope in group.scope_spans
                    for one in scope.spans
                ]
        elif path == "/v1/metrics":
            metrics = [
                metric
                for group in ExportMetricsServiceRequest.FromString(body).resource_metrics
                for scope in group.scope_metrics
                for metric in scope.metrics
            ]
            self.histograms += [
                ReceivedHistogram(metric.name, metric.unit, point.count, point.sum, plain(point.attributes))
                for metric in metrics
                for point in metric.histogram.data_points
            ]
            self.gauges += [
                ReceivedGauge(metric.name, point.as_double or point.as_int, plain(point.attributes))
                for metric in metrics
                for point in metric.gauge.data_points
            ]
            self.counters += [
                ReceivedCounter(metric.name, point.as_double or point.as_int, plain(point.attributes))
                for metric in metrics
                for point in metric.sum.data_points
            ]


def plain(attributes: Any) -> dict[str, Any]:
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(given: Any) -> Any:
    kind = str(given.WhichOneof("value"))
    return [_value(one) for one in given.array_value.values] if kind == "array_value" else getattr(given, kind)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a free port of this machine, for the time of the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            receiver.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
