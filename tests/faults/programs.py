"""Processes of hango as an operator runs them, `hango serve` and `hango worker`: started, killed, frozen, watched."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from hango.cli.embedded.process import end_with_caller, private_log

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.02
SERVE, WORKER = ((sys.executable, "-P", "-m", "hango", word) for word in ("serve", "worker"))


class Program:
    """`wanted` says whether it is to be started again when it ends by itself; `starts` counts."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self.environment = dict(environment)
        self.wanted = False
        self.starts = 0
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """From the main thread: it dies with the thread that started it."""
        self.wanted = True
        self.starts += 1
        with private_log(self.log_file) as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
                preexec_fn=end_with_caller(signal.SIGKILL),  # noqa: PLW1509  two system calls, no lock
            )

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As the kernel ends a process that took too much memory. Afterwards it is gone."""
        self.wanted = False
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def send(self, sign: signal.Signals) -> None:
        os.kill(self.pid, sign)

    async def ended(self, seconds: float) -> int | None:
        """Its exit code, once it has one; None when it has not in that time."""
        assert self._process is not None
        end = time.monotonic() + seconds
        while self._process.poll() is None:
            if time.monotonic() > end:
                return None
            await asyncio.sleep(POLL_SECONDS)
        return self._process.returncode

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def rss_mib(self) -> float:
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20

    def descriptors(self) -> int:
        return int(psutil.Process(self.pid).num_fds())


def serve(name: str, port: int, environment: Mapping[str, str], folder: Path) -> Program:
    return Program(name, SERVE, {**environment, "HANGO_PORT": str(port)}, folder)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def becomes(holds: Callable[[], bool]) -> None:
    """Wait until it is so."""
    while not holds():  # noqa: ASYNC110  it is about other processes, which tell nobody
        await asyncio.sleep(POLL_SECONDS)


async def watch(programs: list[Program]) -> None:
    """What ends by itself is started again, as a supervisor of processes does. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(0.2)
        for one in programs:
            if one.wanted and not one.alive():
                one.start()
