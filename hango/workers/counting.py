"""What telemetry is told of tries and runs: how long they waited, how they ended, what became of those left alone."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from enum import StrEnum

from hango import telemetry
from hango.domain import RunStatus
from hango.messages import Usage
from hango.runs import ClaimedRun, RunError
from hango.telemetry import Attr, Metric, Seen, Span
from hango.telemetry.names import Name, Value
from hango.tries import Claimed, TryError, TryStatus


class Reconciled(StrEnum):
    """What was done with a try that no worker looked after."""

    RUNG = "rung"  # somebody was told that it waits
    RESCUED = "rescued"  # it waits again: its worker fell silent before the call
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"  # its worker fell silent once too often
    LOST = "lost"  # its worker fell silent during the call: an alarm


class Drift(StrEnum):
    LEDGERS = "ledgers"  # months whose reserved tokens are not those of the tries under way
    OVERDUE = "overdue"  # tries under way that are older than any may be


def claimed(one: Claimed) -> None:
    """How long a try waited for its first claim. By two clocks: the moment is PostgreSQL's, the age is this one's."""
    if one.attempt == 1 and telemetry.is_on():
        telemetry.measured(Metric.TRY_WAIT, max(0.0, (datetime.now(UTC) - one.created_at).total_seconds()))


def ended(status: TryStatus, tries: int = 1) -> None:
    """Whoever ended them; to be called after the commit."""
    if tries:
        telemetry.count(Metric.TRY, {Attr.TRY_OUTCOME: status}, by=tries)


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


def of_run(one: ClaimedRun) -> dict[Attr, Value]:
    """What the span of a claim says of its run."""
    return {Attr.TENANT_ID: one.tenant_id, Attr.RUN_ID: one.id, Attr.RUN_ATTEMPT: one.attempt}


def of_run_end(status: RunStatus, error: RunError | None) -> dict[Attr, Value]:
    """What the span of a claim says of its run's end."""
    found: dict[Attr, Value] = {Attr.RUN_STATUS: status}
    return found if error is None else found | {Attr.ERROR_TYPE: error}


def tool(name: str, known: Collection[str]) -> AbstractContextManager[Seen]:
    """The span of one call of a tool. A name that the request did not have is the model's own text: it is not told."""
    shown = Name(name if name in known else "unknown")
    return telemetry.span(Span.TOOL, {Attr.TOOL_NAME: shown}, of=shown)


def cached(model: str, usage: Usage) -> None:
    """What share of a call's input its provider had cached."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if read:
        ratio = usage.cache_read_tokens / read
        telemetry.gauge(Metric.CACHE_READ_RATIO, ratio, {Attr.REQUEST_MODEL: Name(model.partition("/")[2])})
