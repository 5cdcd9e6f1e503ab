"""The closed tables of telemetry: every span, event, attribute and metric hango writes, listed in docs/telemetry.md.

A value is never a text of a user: `Value` has no plain str, so the type checker refuses one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType
from uuid import UUID

from hango.domain import PartID

Name = NewType("Name", str)  # of a provider or a model: what an operator or an agent's maker calls it

# A part id is a name. Figures by name are written as one JSON object.
Value = bool | int | float | StrEnum | UUID | PartID | Name | tuple[StrEnum, ...] | Mapping[StrEnum, int | float]


class Span(StrEnum):
    """Spans below the one of the request, which is named `METHOD /route/{template}`, and those of a worker."""

    CONTEXT_INSPECT = "agent.context_inspect"  # one inspect or preview: assembly, snapshot, counting
    CONTEXT_TRY = "context_try"  # one claim of a try in a worker, a part of the trace that asked for it
    SUMMARY_PREVIEW = "summary_preview"  # as of a try, of the preview of a summary
    RUN = "run"  # one claim of a run in a worker, a part of the trace that asked for it
    TURN = "run.turn"  # one model call of a run's own conversation, with what is written down around it
    TOOL = "execute_tool"  # one call of a built-in tool; the tool's name follows it
    CHAT = "chat"  # one model call; the model's name follows it


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
    ERROR_TYPE = "error.type"  # the class of an exception, never its text; of a try or run the code of its error
    SESSION_ID = "hango.session.id"
    TRY_ID = "hango.try.id"
    TRY = "hango.context.try"  # on a model call: it was one of a try
    TRY_ATTEMPT = "hango.context.try.attempt"
    TRY_OUTCOME = "hango.context.try.outcome"
    TRY_KIND = "hango.context.try.kind"
    RUN_ID = "hango.run.id"
    RUN_ATTEMPT = "hango.run.attempt"
    RUN_STATUS = "hango.run.status"
    RUN_CALL = "hango.run.call"  # which call of its run a model call is: the n of GET /v1/runs/{id}/calls/{n}/context
    PURPOSE = "hango.call.purpose"  # of a model call: run, subagent, summary, context_try
    COST = "hango.call.cost_usd"  # as it is billed; missing where nobody knows the price
    TOOL_NAME = "gen_ai.tool.name"
    OVERRIDES = "hango.context.overrides"
    EXCLUDED_TOKENS = "hango.context.excluded_tokens"
    OPERATION = "gen_ai.operation.name"
    PROVIDER = "gen_ai.provider.name"
    REQUEST_MODEL = "gen_ai.request.model"
    REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
    FINISH_REASONS = "gen_ai.response.finish_reasons"
    INPUT_TOKENS = "gen_ai.usage.input_tokens"  # the cached ones with them
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
    CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
    CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens"
    TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  input, output, cache_read, cache_write: apart from each other
    LANGFUSE_TYPE = "langfuse.observation.type"
    LANGFUSE_USAGE = "langfuse.observation.usage_details"
    LANGFUSE_COST = "langfuse.observation.cost_details"


class Content(StrEnum):
    """Attributes that hold texts of users and models: set only through `Seen.content`."""

    SYSTEM = "gen_ai.system_instructions"
    INPUT = "gen_ai.input.messages"
    OUTPUT = "gen_ai.output.messages"


class Metric(StrEnum):
    CONTEXT_INSPECT_DURATION = "hango.context.inspect.duration"
    CONTEXT_OVERRIDES_ACTIVE = "hango.context.overrides.active"
    TRY = "hango.context.try"
    TRY_WAIT = "hango.context.try.wait.duration"
    TRY_CALL = "hango.context.try.call.duration"
    TRY_RECONCILED = "hango.context.try.reconciled"
    TRY_DRIFT = "hango.context.try.drift"
    SUMMARY_PREVIEW = "hango.summary.preview"
    RUN = "hango.run"
    RUN_CALL = "hango.run.call.duration"
    CACHE_READ_RATIO = "hango.cache.read_ratio"
    TOKENS = "hango.usage.tokens"
    COST = "hango.usage.cost"
    POISON = "hango.queue.poison"


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
    Metric.TRY_WAIT: Histogram(
        unit="s",
        meaning="Time from the acceptance of a try to its first claim by a worker.",
        # A free worker takes milliseconds, a try waits up to a minute and one of a batch up to an hour.
        bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
    ),
    Metric.TRY_CALL: Histogram(
        unit="s",
        meaning="Time of one model call of a try, from right before the first byte to the last one or the failure.",
        # A small model says a word in tenths of a second; two minutes is the default of the longest.
        bounds=(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0),
    ),
    Metric.RUN_CALL: Histogram(
        unit="s",
        meaning="Time of one model call of a run, from right before the first byte to the last one or the failure.",
        # As of a try; an answer of a run may take longer.
        bounds=(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0),
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
    Metric.CACHE_READ_RATIO: Gauge(
        unit="1",
        meaning="Share of the input tokens that a provider read from its cache, by model: at the last call of a run's"
        " own conversation whose usage the provider told.",
    ),
    Metric.TRY_DRIFT: Gauge(
        unit="{thing}",
        meaning="What should not be: months whose reserved tokens are not those of the tries under way, and tries"
        " under way that are older than any may be.",
    ),
}


@dataclass(frozen=True, slots=True)
class Counter:
    unit: str
    meaning: str


COUNTERS: Mapping[Metric, Counter] = {
    Metric.TRY: Counter(unit="{try}", meaning="Tries that ended, by outcome."),
    Metric.TRY_RECONCILED: Counter(
        unit="{job}",
        meaning="Jobs that no worker looked after, by what was done with them: tries and previews of summaries, and of"
        " runs those that somebody was rung for.",
    ),
    Metric.SUMMARY_PREVIEW: Counter(unit="{preview}", meaning="Previews of summaries that ended, by outcome."),
    Metric.RUN: Counter(unit="{run}", meaning="Runs that ended, by status."),
    Metric.TOKENS: Counter(
        unit="{token}",
        meaning="Tokens that model calls were billed at, by purpose, model and type. What a lost call is billed at is"
        " missing.",
    ),
    Metric.COST: Counter(
        unit="{USD}", meaning="US dollars that model calls cost, by purpose and model; as of the tokens."
    ),
    Metric.POISON: Counter(
        unit="{message}", meaning="Messages in Redis that no hango of this version wrote; they were dropped."
    ),
}
