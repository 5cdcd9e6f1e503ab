"""What a command writes: data on stdout, words on stderr, colours on a terminal only."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from hango.cli import text
from hango.cli.exits import Failure

PIPE_WIDTH = 100
NARROWEST = 40  # below it nothing lines up anyway

# Characters that may stand raw in JSON and still act on a terminal. JSON writes them as \uXXXX just as well.
_ACTS_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Style(StrEnum):
    """The few looks there are; the value is the terminal's code. None carries a meaning of its own."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    CACHED = "32"
    CHANGED = "36"
    WARNING = "33"
    FAULT = "31"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text in one style. The text went through `text.one_line` or `text.lines`."""

    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Line:
    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, *spans: Span | str) -> Line:
        return cls(tuple(Span(one) if isinstance(one, str) else one for one in spans))

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans).rstrip(" ")

    @property
    def cells(self) -> int:
        return text.cells(self.text)

    def painted(self) -> str:
        return "".join(_paint(span) for span in self.spans)


def width() -> int:
    """Columns to write in: COLUMNS, else the terminal's, else 100 (a pipe)."""
    return max(NARROWEST, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)


def emit(lines: Iterable[Line]) -> None:
    """Write data for people to stdout, one line each. Raises Failure when it cannot be written."""
    with _stdout() as out:
        colours = wants_colour(out)
        for line in lines:
            _write(out, (line.painted() if colours else line.text) + "\n")


def emit_reply(body: bytes) -> None:
    """Write the API's reply as it came. On a terminal, what could act there is written as JSON escapes.

    Raises Failure when it cannot be written.
    """
    with _stdout() as out:
        if out.isatty():
            shown = _ACTS_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", body.decode("utf-8", "replace"))
            _write(out, shown if shown.endswith("\n") else f"{shown}\n")
            return
        out.flush()
        out.buffer.write(body if body.endswith(b"\n") else body + b"\n")


def emit_csv(rows: Iterable[Sequence[object]]) -> None:
    """Write rows of comma-separated values. On a terminal, what could act there is shown by its number.

    Raises Failure when it cannot be written.
    """
    with _stdout() as out:
        made = io.StringIO()
        write = csv.writer(made, lineterminator="\n").writerow
        for row in rows:
            write([text.one_line(str(cell)) for cell in row] if out.isatty() else row)
        if out.isatty():
            _write(out, made.getvalue())
            return
        out.flush()
        out.buffer.write(made.getvalue().encode())


def note(words: str) -> None:
    """Write one line of words to stderr, where there is one."""
    if sys.stderr is not None:
        _write(sys.stderr, text.one_line(words) + "\n")


def wants_colour(stream: TextIO) -> bool:
    """A terminal that can, and nobody asked for none. NO_COLOR and TERM are the terminal's, not settings."""
    if not stream.isatty() or os.environ.get("NO_COLOR"):  # noqa: TID251
        return False
    return os.environ.get("TERM", "dumb") != "dumb"  # noqa: TID251


def stderr_is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _stdout() -> Iterator[TextIO]:
    """Stdout, flushed at the end. Raises Failure when it is closed or full; a reader that goes away is no failure."""
    if sys.stdout is None:
        raise Failure("stdout is closed, so nothing can be shown.")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _give_up(sys.stdout)
        reason = (error.strerror or type(error).__name__).lower()
        raise Failure(f"the output cannot be written: {reason}.") from None


def _give_up(stream: TextIO) -> None:
    """What is left in the buffer goes nowhere: else Python fails once more over it at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _paint(span: Span) -> str:
    return f"\x1b[{span.style.value}m{span.text}\x1b[0m" if span.style and span.text else span.text


def _write(stream: TextIO, words: str) -> None:
    encoding = stream.encoding or "utf-8"
    # A terminal that is not UTF-8 shows what it lacks by number instead of ending the command.
    stream.write(words.encode(encoding, "backslashreplace").decode(encoding))
