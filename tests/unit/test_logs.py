"""Log lines: one event, one line, no content."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import structlog

from hango import logs
from hango.config import LogFormat, LogLevel, Settings
from hango.domain import SessionID
from hango.errors import Unavailable
from hango.logs import Log
from hango.messages import read_content

CANARY = "canary-4711"
SESSION = SessionID(UUID(int=5))


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The logging of the test run is as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def written(kind: LogFormat = LogFormat.JSON, level: LogLevel = LogLevel.INFO) -> io.StringIO:
    stream = io.StringIO()
    logs.setup(Settings(home=Path("/"), log_format=kind, log_level=level), stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in found:
        assert line.pop("time").endswith("Z")
    return found


def test_an_event_is_one_line_of_json() -> None:
    """JSON lines only; one event is one line."""
    stream = written()

    logs.info(Log.REQUEST, method="GET", route="/v1/me", status=200, ms=1.5, session_id=SESSION)

    assert lines(stream) == [
        {
            "level": "info",
            "event": "request",
            "method": "GET",
            "route": "/v1/me",
            "status": 200,
            "ms": 1.5,
            "session_id": "00000000-0000-0000-0000-000000000005",
        }
    ]


def test_a_line_for_people_quotes_what_could_mislead() -> None:
    """No control character, line break or bidirectional control reaches a terminal."""
    stream = written(LogFormat.TEXT)

    logs.warning(Log.REDIS_AWAY, route="/v1/me", process="a\nb\x1b[2J\u202ec")

    (line,) = stream.getvalue().splitlines()
    assert line[8:] == r' warning redis_away route=/v1/me process="a\nb\u001b[2J\u202ec"'


def test_an_exception_is_its_classes_and_places() -> None:
    """An exception's text is never logged; class, place and cause are."""
    stream = written()

    try:
        try:
            read_content(CANARY)
        except Exception as cause:
            raise Unavailable(CANARY) from cause
    except Unavailable as error:
        logs.error(Log.UNEXPECTED, error, route="/v1/me")

    (line,) = lines(stream)
    assert CANARY not in stream.getvalue()
    assert line["error"].startswith("hango.errors.Unavailable < ")
    assert line["at"].startswith("test_logs.py:")


def test_a_database_error_keeps_the_names_that_are_no_content() -> None:
    """psycopg's errors are reduced to sqlstate and constraint: their text carries the row."""

    class Diagnosis:
        constraint_name = "agents_name_check"

    class RefusedError(Exception):
        sqlstate = "23514"
        diag = Diagnosis()

    said = logs.described(RefusedError(f"Failing row contains ({CANARY})"))

    assert said == {
        "error": f"{__name__}.{RefusedError.__qualname__}",
        "sqlstate": "23514",
        "constraint": "agents_name_check",
    }


def test_the_names_of_a_hidden_database_error_are_kept() -> None:
    """The store hides psycopg's error behind one without content; its sqlstate is still logged."""

    class RefusedError(Exception):
        sqlstate = "23514"

    try:
        try:
            raise RefusedError(CANARY)
        except RefusedError:
            raise Unavailable from None
    except Unavailable as error:
        said = logs.described(error)

    assert {name: said[name] for name in ("error", "sqlstate")} == {
        "error": "hango.errors.Unavailable",
        "sqlstate": "23514",
    }


def test_the_places_are_hangos_own() -> None:
    """The innermost lines of hango's own code are named, not those of a library below it."""
    with pytest.raises(msgspec.DecodeError) as refused:
        read_content("{")

    assert logs.described(refused.value)["at"].split(":")[0] in {"hango/messages.py", "hango/jsontext.py"}


def test_an_exception_that_is_its_own_cause_ends() -> None:
    """A circle of causes is walked once."""
    first, second = ValueError(CANARY), KeyError(CANARY)
    first.__cause__, second.__cause__ = second, first

    assert logs.described(first) == {"error": "builtins.ValueError < builtins.KeyError"}


def test_a_librarys_line_keeps_its_constant_text_only() -> None:
    """A finished message of a library may hold content: logger, place and constant text are kept."""
    stream = written()

    logging.getLogger("some.library").warning("could not read %s", CANARY)
    logging.getLogger("some.library").error(f"failed at {CANARY}")  # noqa: G004  what a library may do
    logging.getLogger("some.library").info("chatter")

    first, second = lines(stream)
    assert first == {
        "level": "warning",
        "event": "library",
        "text": "could not read %s",
        "logger": "some.library",
        "at": first["at"],
    }
    assert second == {"level": "error", "event": "library", "logger": "some.library", "at": second["at"]}
    assert first["at"].startswith("test_logs:")


async def test_a_task_that_nobody_waited_for_leaks_nothing() -> None:
    """asyncio logs a lost exception with its text; here its class is left."""
    stream = written()
    loop = asyncio.get_running_loop()

    loop.call_exception_handler({"message": f"lost {CANARY}", "exception": ValueError(CANARY)})

    (line,) = lines(stream)
    assert (line["logger"], line["error"]) == ("asyncio", "builtins.ValueError")
    assert CANARY not in stream.getvalue()


def test_lines_below_the_level_are_not_written() -> None:
    """HANGO_LOG_LEVEL is the least level that is logged."""
    stream = written(level=LogLevel.ERROR)

    logs.info(Log.STARTED, process="api")
    logs.warning(Log.REDIS_AWAY)
    logging.getLogger("some.library").warning("below %s", "it")
    logs.error(Log.UNEXPECTED)

    assert [line["event"] for line in lines(stream)] == ["unexpected_error"]


def test_setting_up_twice_writes_once() -> None:
    """A second set-up replaces the first."""
    written()
    stream = written()

    logging.getLogger("some.library").warning("once %s", "only")

    assert len(lines(stream)) == 1
