"""The closed tables of telemetry: every span, event, attribute and metric hango writes, listed in docs/telemetry.md.

A value is never a text of a user: `Value` has no plain str, so the type checker refuses one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from hango.domain import PartID

Value = bool | int | float | StrEnum | UUID | PartID  # a part id is a name


class Span(StrEnum):
    """Spans below the one of the request, which is named `METHOD /route/{template}`."""

    CONTEXT_INSPECT = "agent.context_inspect"  # one inspect or preview: assembly, snapshot, counting


class Event(StrEnum):
    """Events on the span that is open; those of parts on an inspect's or preview's, `EVENTS_MOST` of a kind."""

    OVERRIDE_STALE = "agent.context_override_stale"  # one override whose part is not there now
    OVERRIDE_PAIRED = "agent.context_override_paired"  # one message that leaves with its partner
    OVERRIDES_NOT_APPLIED = "agent.context_overrides_not_applied"  # a stored set turned bad; sent without it


# On one span. An agent's set may hold thousands of overrides, and a span is no list.
EVENTS_MOST = 100


class Attr(StrEnum):
    PARTS_SYSTEM = "hango.context.parts.system"
    PARTS_TOOLS = "hango.context.parts.tools"
    PARTS_MESSAGES = "hango.context.parts.messages"
    TOKENS_BEFORE = "hango.context.tokens.before"
    TOKENS_AFTER = "hango.context.tokens.after"
    WOULD_COMPACT = "hango.context.would_compact"
    PART = "hango.context.part"  # a part id, never the part's text
    BECAUSE = "hango.context.because"  # the part id with which a partner leaves
    REASON = "hango.context.reason"
    TENANT_ID = "hango.tenant.id"
    HTTP_METHOD = "http.request.method"
    HTTP_ROUTE = "http.route"  # the template: an address may hold a file's path
    HTTP_STATUS = "http.response.status_code"
    ERROR_TYPE = "error.type"  # the class of an exception, never its text


class Metric(StrEnum):
    CONTEXT_INSPECT_DURATION = "hango.context.inspect.duration"
    CONTEXT_OVERRIDES_ACTIVE = "hango.context.overrides.active"


@dataclass(frozen=True, slots=True)
class Histogram:
    unit: str
    meaning: str
    bounds: tuple[float, ...]


HISTOGRAMS: Mapping[Metric, Histogram] = {
    Metric.CONTEXT_INSPECT_DURATION: Histogram(
        unit="s",
        meaning="Time of one inspect, from the read of the session to the finished snapshot.",
        # A short session takes about 2 ms, 100,000 messages about 200 ms, a provider's counter up to 2 s.
        bounds=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    ),
}


@dataclass(frozen=True, slots=True)
class Gauge:
    unit: str
    meaning: str


GAUGES: Mapping[Metric, Gauge] = {
    Metric.CONTEXT_OVERRIDES_ACTIVE: Gauge(
        unit="{override}",
        meaning="Saved overrides of a tenant's agents and sessions, at the last change of a set.",
    ),
}
