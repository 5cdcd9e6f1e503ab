"""What telemetry is told of jobs and calls: how they ended, what they cost, what became of those left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from enum import StrEnum

from hango import telemetry
from hango.chain.builtin_tools.base import Outcome
from hango.domain import Purpose, RunStatus
from hango.messages import Usage
from hango.runs import ClaimedRun, OverdueRun, RunError
from hango.telemetry import Attr, Metric, Seen, Span, gen_ai
from hango.telemetry.names import Name, Value
from hango.tries import Claimed, Overdue, TryError, TryStatus, TryUsage


class Reconciled(StrEnum):
    """What was done with a job that no worker looked after."""

    RUNG = "rung"  # somebody was told that it waits
    RESCUED = "rescued"  # it waits again: its worker fell silent before the call
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"  # its worker fell silent once too often
    LOST = "lost"  # its worker fell silent during the call: an alarm


class ToolError(StrEnum):
    REFUSED = "tool_error"  # its result tells the model what went wrong


class TokenType(StrEnum):
    INPUT = "input"
    OUTPUT = "output"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"


# A try and the preview of a summary wait in one queue, and are two kinds of things to whoever looks at them.
JOBS: Mapping[Purpose, tuple[Span, Metric]] = {
    Purpose.CONTEXT_TRY: (Span.CONTEXT_TRY, Metric.TRY),
    Purpose.SUMMARY: (Span.SUMMARY_PREVIEW, Metric.SUMMARY_PREVIEW),
}


class Drift(StrEnum):
    LEDGERS = "ledgers"  # months whose reserved tokens are not those of the tries under way
    OVERDUE = "overdue"  # tries under way that are older than any may be


def waited(one: Claimed) -> float:
    """For how many seconds a try waited. By two clocks: the moment is PostgreSQL's, the age is this one's."""
    return max(0.0, (datetime.now(UTC) - one.created_at).total_seconds())


def claimed(one: Claimed, purpose: Purpose, seconds: float) -> None:
    """How long a try waited for its first claim."""
    if one.attempt == 1 and purpose is Purpose.CONTEXT_TRY:
        telemetry.measured(Metric.TRY_WAIT, seconds)


def ended(status: TryStatus, jobs: Mapping[Purpose, int]) -> None:
    """Tries and previews, whoever ended them; to be called after the commit."""
    for purpose, number in jobs.items():
        if number:
            _, metric = JOBS[purpose]
            telemetry.count(metric, {Attr.TRY_OUTCOME: status}, by=number)


def run_ended(status: RunStatus, runs: int = 1) -> None:
    """As `ended`, of runs."""
    if runs:
        telemetry.count(Metric.RUN, {Attr.RUN_STATUS: status}, by=runs)


def reconciled(kind: Reconciled, tries: int = 1) -> None:
    if tries:
        telemetry.count(Metric.TRY_RECONCILED, {Attr.TRY_KIND: kind}, by=tries)


def drift(kind: Drift, things: int) -> None:
    telemetry.gauge(Metric.TRY_DRIFT, things, {Attr.TRY_KIND: kind})


def of_claim(one: Claimed) -> dict[Attr, Value]:
    """What the span of a claim says of its try."""
    return {
        Attr.TENANT_ID: one.tenant_id,
        Attr.SESSION_ID: one.session_id,
        Attr.TRY_ID: one.id,
        Attr.TRY_ATTEMPT: one.attempt,
    }


def of_end(status: TryStatus, error: TryError | None) -> dict[Attr, Value]:
    """What the span of a claim says of its end."""
    found: dict[Attr, Value] = {Attr.TRY_OUTCOME: status}
    return found if error is None else found | {Attr.ERROR_TYPE: error}


def taken_over(one: Overdue, purpose: Purpose, status: TryStatus) -> None:
    """The span of a claim whose worker fell silent: it sends none any more."""
    span, _ = JOBS[purpose]
    known: dict[Attr, Value] = {
        Attr.TENANT_ID: one.principal.tenant_id,
        Attr.TRY_ID: one.id,
        Attr.TRY_ATTEMPT: one.attempt,
    }
    with telemetry.job_span(span, one.traceparent, known) as seen:
        seen.set_all(of_end(status, TryError.WORKER_LOST))


def run_taken_over(one: OverdueRun, status: RunStatus) -> None:
    """As `taken_over`, of a run."""
    known: dict[Attr, Value] = {
        Attr.TENANT_ID: one.principal.tenant_id,
        Attr.RUN_ID: one.id,
        Attr.RUN_ATTEMPT: one.attempt,
    }
    with telemetry.job_span(Span.RUN, one.traceparent, known) as seen:
        seen.set_all(of_run_end(status, RunError.WORKER_LOST))


def of_run(one: ClaimedRun) -> dict[Attr, Value]:
    """What the span of a claim says of its run."""
    return {
        Attr.TENANT_ID: one.tenant_id,
        Attr.RUN_ID: one.id,
        Attr.RUN_ATTEMPT: one.attempt,
        Attr.LANGFUSE_TYPE: gen_ai.Observation.AGENT,
    }


def of_run_end(status: RunStatus, error: RunError | None) -> dict[Attr, Value]:
    """What the span of a claim says of its run's end."""
    found: dict[Attr, Value] = {Attr.RUN_STATUS: status}
    return found if error is None else found | {Attr.ERROR_TYPE: error}


def tool(name: str, known: Collection[str]) -> AbstractContextManager[Seen]:
    """The span of one call of a tool. A name that the request did not have is the model's own text: it is not told."""
    shown = Name(name if name in known else "unknown")
    return telemetry.span(Span.TOOL, gen_ai.of_tool(shown), of=shown)


def tool_ended(seen: Seen, outcome: Outcome) -> None:
    if outcome.is_error:
        seen.set(Attr.ERROR_TYPE, ToolError.REFUSED)


def billed(model: str, purpose: Purpose, usage: TryUsage) -> None:
    """What a call is billed at; to be called after the commit."""
    about: dict[Attr, Value] = {Attr.PURPOSE: purpose, Attr.REQUEST_MODEL: _name(model)}
    tokens = {
        TokenType.INPUT: usage.tokens.input_tokens,
        TokenType.OUTPUT: usage.tokens.output_tokens,
        TokenType.CACHE_READ: usage.tokens.cache_read_tokens,
        TokenType.CACHE_WRITE: usage.tokens.cache_write_tokens,
    }
    for kind, number in tokens.items():
        if number:
            telemetry.count(Metric.TOKENS, about | {Attr.TOKEN_TYPE: kind}, by=number)
    if usage.cost_usd:
        telemetry.count(Metric.COST, about, by=usage.cost_usd)


def cached(model: str, usage: Usage) -> None:
    """What share of a call's input its provider had cached."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if read:
        ratio = usage.cache_read_tokens / read
        telemetry.gauge(Metric.CACHE_READ_RATIO, ratio, {Attr.REQUEST_MODEL: _name(model)})


def _name(model: str) -> Name:
    """As providers know it, without their own."""
    return Name(model.partition("/")[2])
