"""The watch over the parts of `hango up`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hango.cli.watch import MOST_RESTARTS, watch
from hango.errors import Unavailable


class Program:
    """A part that is any program."""

    name = "the program"
    word = "program"
    log_file = Path("program.log")

    def __init__(self, *words: str) -> None:
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.starts += 1
        self._process = subprocess.Popen(self._words)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def stop_after(times: int) -> Callable[[], None]:
    """Interrupts the watch as Ctrl-C does, at the given call."""
    left = [times]

    def changed() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    return changed


def test_what_ended_is_started_again(capfd: pytest.CaptureFixture[str]) -> None:
    """A part that ended by itself is started, and the watch says so; one that runs is let alone."""
    ended, running = Program("sleep", "600"), Program("sleep", "600")
    running.start()

    with pytest.raises(KeyboardInterrupt):
        watch([running, ended], stop_after(1))

    assert (ended.alive(), ended.starts, running.alive(), running.starts) == (True, 1, True, 1)
    assert capfd.readouterr().err == "hango: the program ended and is started again; its log is program.log\n"
    ended.stop()
    running.stop()


def test_what_ends_again_and_again_is_given_up() -> None:
    """A fault that a restart does not mend ends the watch, with one sentence."""
    broken = Program("false")

    with pytest.raises(Unavailable) as caught:
        watch([broken], stop_after(100))

    assert str(caught.value) == "the program ends again and again; its log is program.log."
    assert broken.starts == MOST_RESTARTS
    broken.stop()
