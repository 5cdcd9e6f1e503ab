"""Log lines without content: closed events, closed fields, exceptions as type and place. One event, one line.

    logs.setup(settings)
    logs.info(Log.REQUEST, method="GET", route="/v1/me", status=200, ms=1.8)
    logs.error(Log.UNEXPECTED, error, route="/v1/me")

The text of an exception or of a library's message may hold a row of a table, so neither is ever written.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO, TypedDict, Unpack
from uuid import UUID

import structlog
from opentelemetry import trace

from hango.config import LogFormat, Settings

PACKAGE: Final = Path(__file__).resolve().parent
MOST_CAUSES: Final = 5
MOST_PLACES: Final = 3  # of one exception: where it was raised, and who called
PLAIN: Final = re.compile(r"[!-~]+")  # shown without quotes in a text line

Line = MutableMapping[str, Any]


class Log(StrEnum):
    """Every event that hango logs."""

    STARTED = "started"  # the process takes work
    STOPPED = "stopped"
    REQUEST = "request"  # one answered request
    UNEXPECTED = "unexpected_error"  # a fault of hango: the caller got a 500
    FAILED = "failed"  # a foreseen failure of the server: a refused statement, a provider; the caller got a 5xx
    UNAVAILABLE = "unavailable"  # PostgreSQL is away or busy, or a bound of time ran out; the caller got a 503
    REDIS_AWAY = "redis_away"  # requests pass without a rate limit until it is back, and tries are found later
    NOTIFICATIONS_AWAY = "notifications_away"  # waiting requests are not woken until PostgreSQL is back; then they look
    COUNTER_FAILED = "counter_failed"  # a provider's token counter did not answer; the estimate stands
    SUMMARY_FAILED = "summary_failed"  # compaction gave no summary: the run goes on with its whole history
    OVERRIDES_NOT_APPLIED = "overrides_not_applied"  # a stored set would leave no valid request; sent without it
    RUN_LOST = "run_lost"  # as try_lost, of a model call of a run
    TRY_LOST = "try_lost"  # its worker fell silent during the call: outcome unknown, billed by its estimate
    TRIES_DRIFT = "tries_drift"  # the reserved tokens of a month are wrong, or a try is older than any may be
    NO_PROVIDER_KEY = "no_provider_key"  # this worker lacks a provider's key that the API has; the work ends uncalled
    POISON = "poison_message"  # a message in Redis that is none of this version's; dropped
    LIBRARY = "library"  # a warning of a library: its logger, its place, its constant text


class Fields(TypedDict, total=False):
    """Every field that a caller may give; time, level, event, trace and the exception's are added here."""

    method: str
    route: str  # the template, never the address that came
    status: int
    ms: float
    process: str
    version: str
    provider: str
    fingerprint: str  # the first digits of a SHA-256
    bytes: int
    tenant_id: UUID
    user_id: UUID
    key_id: UUID
    session_id: UUID
    try_id: UUID
    run_id: UUID
    job_id: UUID  # of a try or a run
    ledgers: int
    overdue: int


def setup(settings: Settings, stream: TextIO | None = None) -> None:
    """Write lines of `settings.log_level` and above to `stream`, else to stderr; libraries' warnings too."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[_head, _trace, _json if settings.log_format is LogFormat.JSON else _text],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _Libraries)), _Libraries()]
    root.setLevel(max(level, logging.WARNING))


def info(event: Log, **fields: Unpack[Fields]) -> None:
    _logger().info(event.value, **fields)


def warning(event: Log, cause: BaseException | None = None, **fields: Unpack[Fields]) -> None:
    _logger().warning(event.value, **fields, **described(cause))


def error(event: Log, cause: BaseException | None = None, **fields: Unpack[Fields]) -> None:
    _logger().error(event.value, **fields, **described(cause))


def described(cause: BaseException | None) -> dict[str, str]:
    """What may be said of an exception: classes, places in code, and what a database names of its own."""
    if cause is None:
        return {}
    found = {
        "error": " < ".join(f"{type(one).__module__}.{type(one).__qualname__}" for one in _chain(cause)),
        "at": " < ".join(_places(cause)),
        "sqlstate": _named(cause, "sqlstate"),
        "constraint": _named(cause, "diag", "constraint_name"),
    }
    return {name: str(value) for name, value in found.items() if value}


def _chain(cause: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    step: BaseException | None = cause
    while step is not None and id(step) not in seen:
        yield step
        seen.add(id(step))
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)


def _named(cause: BaseException, *names: str) -> object:
    """The first such attribute of an exception or of one that it hides."""
    step: BaseException | None = cause
    for _ in range(MOST_CAUSES):
        found: object = step
        for name in names:
            found = getattr(found, name, None)
        if found or step is None:
            return found
        step = step.__cause__ or step.__context__
    return None


def _places(cause: BaseException) -> Iterator[str]:
    """The innermost lines of hango's own code, else where it was raised."""
    frames = list(reversed(traceback.extract_tb(cause.__traceback__)))
    own = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    for frame in own[:MOST_PLACES] or frames[:1]:
        path = Path(frame.filename)
        shown = path.relative_to(PACKAGE.parent) if frame in own else path.name
        yield f"{shown}:{frame.lineno} in {frame.name}"


def _logger() -> Any:
    return structlog.get_logger()


def _head(_: object, level: str, line: Line) -> Line:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": now, "level": level, "event": line.pop("event"), **line}


def _trace(_: object, __: str, line: Line) -> Line:
    """The ids that lead from a line to its trace."""
    found = trace.get_current_span().get_span_context()
    if found.is_valid:
        line["trace_id"] = trace.format_trace_id(found.trace_id)
        line["span_id"] = trace.format_span_id(found.span_id)
    return line


def _json(_: object, __: str, line: Line) -> str:
    return json.dumps(line, default=str)


def _text(_: object, __: str, line: Line) -> str:
    head = f"{line.pop('time')[11:19]} {line.pop('level'):<7} {line.pop('event')}"
    return " ".join([head, *(f"{name}={_quoted(str(value))}" for name, value in line.items())])


def _quoted(shown: str) -> str:
    return shown if PLAIN.fullmatch(shown) else json.dumps(shown)


class _Libraries(logging.Handler):
    """Lines of libraries: the constant text that has its values apart, never a finished message."""

    def emit(self, record: logging.LogRecord) -> None:
        constant = {"text": record.msg} if record.args and isinstance(record.msg, str) else {}
        cause = record.exc_info[1] if record.exc_info else None
        write = _logger().error if record.levelno >= logging.ERROR else _logger().warning
        place = {"logger": record.name, "at": f"{record.module}:{record.lineno}"}
        write(Log.LIBRARY.value, **constant, **{**place, **described(cause)})
