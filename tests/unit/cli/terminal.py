"""The command line on a terminal of its own: what is drawn there, what is typed, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 30.0  # seconds


@dataclass(slots=True)
class Terminal:
    """`screen` is all that was written to it. Where stdout is a pipe, that went to stderr, or was typed."""

    process: subprocess.Popen[bytes]
    end: int
    screen: str = field(default="")

    def until(self, words: str) -> None:
        """Read on until the words are on the screen."""
        by = time.monotonic() + PATIENCE
        while words not in self.screen:
            if not self._read(by - time.monotonic()):
                raise AssertionError(f"{words!r} never came: {self.screen!r}")

    def type(self, words: str) -> None:
        os.write(self.end, words.encode())

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> tuple[int, str]:
        """Exit code and stdout, once the command is over."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        while self._read(0):
            pass
        return self.process.returncode, (out or b"").decode()

    def last_lines(self) -> list[str]:
        """The screen as a person sees it in the end: what was written over is gone."""
        lines = self.screen.replace("\r\n", "\n").split("\n")
        return [shown for line in lines if (shown := line.rsplit("\r\x1b[K", 1)[-1])]

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.end], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            found = os.read(self.end, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.screen += found.decode("utf-8", "replace")
        return bool(found)


@contextmanager
def terminal(*words: str, with_stdout: bool = False, **env: str) -> Iterator[Terminal]:
    """Run `hango` with these words and nothing of hango's in its environment but `env`.

    Stdout is a pipe; with `with_stdout` it is the terminal too.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hango", *words],
        stdin=theirs,
        stdout=theirs if with_stdout else subprocess.PIPE,
        stderr=theirs,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "80", "TERM": "dumb", "PYTHONWARNINGS": "error", **env},
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(ours)
