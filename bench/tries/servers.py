"""A process of the bench that answers at an address of its own, which it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.contestant import PLACE
from bench.contestants import ROOT

END_SECONDS = 10


@contextmanager
def running(command: Sequence[str], *, place: Path | None = None, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program until the end of the block; what it says of itself goes to the log."""
    with log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | ({PLACE: str(place)} if place else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def answering(module: str, *, place: Path | None = None, log: Path) -> Iterator[str]:
    """The address of a server of the bench."""
    with running(["-m", module], place=place, log=log) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"{module} did not start; its log says:\n{log.read_text(errors='replace')}")
        yield url
