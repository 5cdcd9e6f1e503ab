"""Where words and data go, and what a terminal gets that a pipe does not."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from hango.cli import output
from hango.cli.output import Line, Span, Style
from hango.cli.progress import Progress

LINES = [Line.of("total ", Span("12", Style.STRONG), Span(" excluded", Style.CHANGED), "  "), Line()]


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal, in an encoding of its own."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="")

    def isatty(self) -> bool:
        return True

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Both streams of the process for a block."""
        with redirect_stdout(self), redirect_stderr(self):
            yield

    def shown(self) -> bytes:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_a_pipe_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    """Into a pipe there are no colours and no spaces at the ends of lines."""
    output.emit(LINES)

    assert capsys.readouterr() == ("total 12 excluded\n\n", "")


def test_a_terminal_gets_colours(terminal: Terminal) -> None:
    """On a terminal, colours are set and taken back around the text."""
    with terminal.taking():
        output.emit(LINES)

    assert terminal.shown() == b"total \x1b[1m12\x1b[0m\x1b[36m excluded\x1b[0m  \n\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_may_ask_for_none(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """NO_COLOR and a dumb terminal mean plain text."""
    monkeypatch.setenv(name, value)

    with terminal.taking():
        output.emit(LINES)

    assert terminal.shown() == b"total 12 excluded\n\n"


def test_json_cannot_act_on_a_terminal(terminal: Terminal) -> None:
    """What could act in a reply is written as JSON escapes: the same value, and harmless."""
    with terminal.taking():
        output.emit_reply('{"a":"\u009b31m \u202e \u2066 café"}'.encode())

    assert terminal.shown() == b'{"a":"\\u009b31m \\u202e \\u2066 caf\xc3\xa9"}\n'


def test_csv_cannot_act_on_a_terminal(terminal: Terminal, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Values are whole in a pipe; on a terminal what could act in them is shown by its number."""
    rows = [("a", "b"), (1, 'x\n"\x1b[2J')]
    with terminal.taking():
        output.emit_csv(rows)
    output.emit_csv(rows)

    assert terminal.shown().decode() == 'a,b\n1,"x ⏎ ""⟨U+001B⟩[2J"\n'
    assert capfdbinary.readouterr().out == b'a,b\n1,"x\n""\x1b[2J"\n'


def test_another_encoding_shows_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that is not UTF-8 shows by number what it cannot write."""
    monkeypatch.setenv("TERM", "dumb")
    made = Terminal("latin-1")

    with made.taking():
        output.emit([Line.of("café 漢")])

    assert made.shown() == b"caf\xe9 \\u6f22\n"


def test_notes_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Words go to stderr, on one line."""
    output.note("hango: one\ntwo\x1b[2J")

    assert capsys.readouterr() == ("", "hango: one ⏎ two⟨U+001B⟩[2J\n")


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("8", 40), ("", 100), ("many", 100)])
def test_columns_are_obeyed(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    """COLUMNS is the width; without it a pipe has 100; nothing lines up under 40."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "__stdout__", None)

    assert output.width() == width


def test_progress_is_one_line_that_goes_away(terminal: Terminal) -> None:
    """While bytes go out, one line on stderr is written over, and cleared at the end."""
    with terminal.taking():
        progress = Progress("importing", 2_000_000)
        sent = list(progress.watch([b"x" * 1_000_000, b"x" * 1_000_000]))
        progress.clear()

    drawn = terminal.shown().decode().split("\r\x1b[K")
    assert len(sent) == 2
    assert drawn[:2] == ["", "importing ████████████░░░░░░░░░░░░ 1.0 of 2.0 MB  50%"]
    assert drawn[-2:] == ["importing 2.0 MB sent, waiting for the answer", ""]


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, progress says nothing."""
    progress = Progress("importing", None)
    assert list(progress.watch([b"abc"])) == [b"abc"]
    progress.clear()

    assert (progress.sent, capsys.readouterr()) == (3, ("", ""))
