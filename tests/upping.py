"""`./dev up` as a person starts it: a real process, its words, its end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from hango.cli.embedded.process import command_line, wait_until

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = [sys.executable, str(ROOT / "dev")]
SECONDS = 90
LAST_LINE = "/context"  # of the greeting


@dataclass(slots=True)
class Up:
    """A running `hango up`, ready."""

    process: subprocess.Popen[str]
    home: Path
    greeting: str
    words: TextIO  # what it writes to stderr
    written: dict[str, Any]  # its up.json

    @property
    def url(self) -> str:
        return str(self.written["url"])

    @property
    def pids(self) -> dict[str, int]:
        return dict(self.written["pids"])

    def read_again(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "up.json").read_text())
        return found

    def said(self) -> str:
        """All of stderr so far."""
        self.words.seek(0)
        return self.words.read()

    def end(self, sign: signal.Signals = signal.SIGINT) -> int:
        """Send the signal and wait; returns the exit code."""
        self.process.send_signal(sign)
        return self.process.wait(SECONDS)

    def all_gone(self) -> bool:
        return wait_until(lambda: not any(command_line(pid) for pid in self.pids.values()), SECONDS)


def environment(home: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The caller's, without settings of his own; any free port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HANGO_")}
    return {**kept, "HANGO_HOME": str(home), "HANGO_PORT": "0", **given}


@contextmanager
def up(home: Path, *words: str, cwd: Path = Path("/"), before: tuple[str, ...] = (), **settings: str) -> Iterator[Up]:
    """Starts it and waits until it is ready; ends it with the block. `before` stands before the launcher."""
    with tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(
            [*before, *LAUNCHER, "up", *words],
            cwd=cwd,
            env=environment(home, settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        assert process.stdout is not None
        try:
            greeting = ""
            for line in process.stdout:
                greeting += line
                if line.rstrip().endswith(LAST_LINE):
                    break
            else:
                stderr.seek(0)
                raise AssertionError(f"it ended with {process.wait()}: {stderr.read()}")
            yield Up(process, home, greeting, stderr, json.loads((home / "up.json").read_text()))
        finally:
            process.terminate()
            process.wait(SECONDS)
            process.stdout.close()


def hango(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Any other command of hango, through the launcher."""
    return subprocess.run(
        [*LAUNCHER, *words],
        check=False,
        cwd="/",
        env=environment(home, settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def answers(url: str) -> bool:
    """An API is ready there."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
