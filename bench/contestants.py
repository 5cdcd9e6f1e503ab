"""The runner's side: a contestant's process, asked one thing at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.contestant import PLACE

ROOT = Path(__file__).resolve().parents[1]
LAST_WORDS = 12  # lines of a failed contestant's own that are shown


class Failed(Exception):
    """A contestant ended, with its last words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One contestant: its script, its Python, and what it can do at which sizes."""

    name: str
    module: str
    cases: Sequence[str]
    python: Path = Path(sys.executable)
    largest: int = 100_000  # messages


class Contestant:
    """Runs from the start to the end of the block; every contestant waits while another one works."""

    def __init__(self, entry: Entry, place: Path, log: Path) -> None:
        self.entry = entry
        self._place, self._log = place, log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self.entry.python, "-m", self.entry.module],
                cwd=ROOT,
                env=os.environ | {PLACE: str(self._place), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it ended, which was said
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, case: str, size: int) -> dict[str, Any]:
        """Run a case once; returns the facts of its result."""
        facts: dict[str, Any] = self._ask(do="open", case=case, size=size)["facts"]
        return facts

    def time(self, case: str, size: int, seconds: float) -> list[float]:
        times: list[float] = self._ask(do="time", case=case, size=size, seconds=seconds)["ms"]
        return times

    def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            said = self._log.read_text(errors="replace").strip().splitlines()[-LAST_WORDS:]
            raise Failed(f"{self.entry.name} ended at {asked}:\n  " + "\n  ".join(said))
        made: dict[str, Any] = json.loads(reply)
        return made
