"""Figures of the product that need a fresh process each: its start, its size, and the memory of one large inspect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestant import PLACE
from bench.contestants import ROOT
from bench.goals import Key
from bench.place import Place

COMMAND = (sys.executable, "-P", "-m", "hango")
LARGE = 100_000
KIB_A_MIB = 1024
END_SECONDS = 30


class Figures:
    """`home` holds what a first `hango up` leaves for the warm ones."""

    def __init__(self, place: Place, home: Path) -> None:
        self._place = place
        self._home = home

    def all(self) -> dict[Key, float]:
        """Every figure once."""
        return self._memory() | self._start()

    def _memory(self) -> dict[Key, float]:
        done = subprocess.run(
            [sys.executable, "-m", "bench.product.memory", str(LARGE)],
            cwd=ROOT,
            env=os.environ | {PLACE: str(self._place.file)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return {Key("product", "memory of an inspect (MiB)", LARGE): float(done.stdout)}

    def _start(self) -> dict[Key, float]:
        made = {Key("product", "API after this bench (MiB)"): _rss_mib(self._place.api_pid)}
        for case, command in {
            "an empty Python (ms)": (sys.executable, "-c", ""),
            "context show --help (ms)": (*COMMAND, "context", "show", "--help"),
        }.items():
            before = time.perf_counter()
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            made[Key("product", case)] = (time.perf_counter() - before) * 1000
        before = time.perf_counter()
        with self.up() as pids:
            made[Key("product", "warm up (ms)")] = (time.perf_counter() - before) * 1000
            made[Key("product", "API at start (MiB)")] = _rss_mib(pids["api"])
        return made

    @contextmanager
    def up(self) -> Iterator[dict[str, int]]:
        """The processes of a `hango up` that is ready."""
        process = subprocess.Popen(
            [*COMMAND, "up"],
            cwd=ROOT,
            env=os.environ | {"HANGO_HOME": str(self._home), "HANGO_PORT": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            greeting = process.stdout.readline()  # said when the server is ready
            if " is up at " not in greeting:
                raise RuntimeError(f"`hango up` did not come up: {greeting}")
            recorded: dict[str, dict[str, int]] = json.loads((self._home / "up.json").read_text())
            yield recorded["pids"]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=END_SECONDS)


@contextmanager
def figures(place: Place) -> Iterator[Figures]:
    with tempfile.TemporaryDirectory(prefix="hango-bench-home-") as home:
        made = Figures(place, Path(home))
        with made.up():  # makes the data, so that every later one is a warm start
            pass
        yield made


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / KIB_A_MIB
