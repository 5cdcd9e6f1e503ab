"""The OpenTelemetry SDK, wired for OTLP over HTTP. Imported only when there is an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.metrics import _Gauge as Gauge  # it has no public name
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from hango import __version__
from hango.config import Secret
from hango.telemetry.names import COUNTERS, GAUGES, HISTOGRAMS, Metric

# One attempt with its repeats: a stop must not hang on a collector that is away.
EXPORT_SECONDS = 3.0


class Exporters:
    """One tracer and one meter of this process, beside OpenTelemetry's globals: nothing else writes here."""

    def __init__(self, endpoint: str, headers: tuple[tuple[str, Secret], ...], process: str) -> None:
        resource = Resource.create(
            {
                "service.namespace": "hango",
                "service.name": f"hango-{process}",
                # Two workers count each for itself: under one name their counters would overwrite each other.
                "service.instance.id": str(uuid4()),
                "service.version": __version__,
            }
        )
        sent = {name: secret.reveal() for name, secret in headers}
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(
            BatchSpanProcessor(
                OTLPSpanExporter(f"{endpoint}/v1/traces", headers=sent, timeout=EXPORT_SECONDS, session=_session())
            )
        )
        metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", headers=sent, timeout=EXPORT_SECONDS, session=_session())
        self._metrics = MeterProvider(
            [PeriodicExportingMetricReader(metrics)], resource=resource, shutdown_on_exit=False
        )
        self.tracer: trace.Tracer = self._spans.get_tracer("hango", __version__)
        meter = self._metrics.get_meter("hango", __version__)
        self.histograms: Mapping[Metric, Histogram] = {
            name: meter.create_histogram(
                name, unit=row.unit, description=row.meaning, explicit_bucket_boundaries_advisory=row.bounds
            )
            for name, row in HISTOGRAMS.items()
        }
        self.gauges: Mapping[Metric, Gauge] = {
            name: meter.create_gauge(name, unit=row.unit, description=row.meaning) for name, row in GAUGES.items()
        }
        self.counters: Mapping[Metric, Counter] = {
            name: meter.create_counter(name, unit=row.unit, description=row.meaning) for name, row in COUNTERS.items()
        }

    def flush(self) -> None:
        self._spans.force_flush()
        self._metrics.force_flush()

    def close(self) -> None:
        self._spans.shutdown()
        self._metrics.shutdown()


def _session() -> requests.Session:
    made = requests.Session()
    made.trust_env = False  # no proxy and no .netrc of the environment: the endpoint is where it is said to be
    return made
