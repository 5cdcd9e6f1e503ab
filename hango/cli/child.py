"""A process of hango as a child of `hango up`: loaded early, told where its services are, ended, started again.

Loading is most of a start and needs no service, so it runs beside the services' own start; the child then waits for one
line on its standard input. Both ends of that line are here.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from hango.cli.embedded.account import unusable
from hango.cli.embedded.process import end_with_caller, private_log
from hango.config import Settings
from hango.config.values import SecretUrl
from hango.errors import Unavailable

START_SECONDS = 30
STOP_SECONDS = 15
POLL_SECONDS = 0.02
MOST_LOG_BYTES = 8 * 1024 * 1024


def told_services(settings: Settings) -> Settings | None:
    """In the child: its settings with the services that its parent names; None when the parent ended before."""
    told = sys.stdin.readline()
    if not told:
        return None
    urls = {name: SecretUrl(url) for name, url in json.loads(told).items()}
    return replace(settings, database_url=urls["database_url"], redis_url=urls["redis_url"])


class Child(ABC):
    """Load it from the main thread: on Linux it ends with the thread that started it."""

    name: ClassVar[str]  # for people
    word: ClassVar[str]  # in up.json, and of its log
    module: ClassVar[tuple[str, ...]]  # what Python is to run

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.log_file = home / f"{self.word}.log"
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._services = b""
        self._told_to_end = False

    @classmethod
    def is_one(cls, command_line: str) -> bool:
        """Whether a process was started as one of these."""
        return f"-m {' '.join(cls.module)}" in command_line

    @abstractmethod
    def arguments(self) -> list[str]:
        """What follows the module."""

    def ready(self) -> bool:
        """Whether it does its work; the starter waits for that."""
        return True

    def handed_over(self) -> Sequence[int]:
        """File descriptors that it keeps."""
        return ()

    def on(self, settings: Settings) -> None:
        """Where its services are. To be said before `start`."""
        urls = {"database_url": settings.database_url, "redis_url": settings.redis_url}
        self._services = json.dumps({name: url.reveal() for name, url in urls.items() if url}).encode() + b"\n"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def load(self) -> None:
        """Start it as far as that goes without services. Raises Unavailable where its log cannot be written."""
        try:
            if self.log_file.exists() and self.log_file.stat().st_size > MOST_LOG_BYTES:
                self.log_file.replace(self.log_file.with_suffix(".log.1"))
            opened = private_log(self.log_file)
        except OSError as error:
            raise unusable(error) from None
        self._told_to_end = False
        with opened as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", *self.module, *self.arguments()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
                pass_fds=self.handed_over(),
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which ends it in order
                preexec_fn=end_with_caller(signal.SIGTERM),  # noqa: PLW1509  two system calls, no lock
            )

    def start(self) -> None:
        """Afterwards it is ready. Raises Unavailable with the last line of its log."""
        if not self.alive():
            self.load()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it ended, which is said below
            self._process.stdin.write(self._services)
            self._process.stdin.close()
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            if not self.alive():
                raise Unavailable(f"{self.name} did not start: {self._last_words()} Its log is {self.log_file}.")
            if time.monotonic() > deadline:
                raise Unavailable(f"{self.name} was not ready in {START_SECONDS} s. Its log is {self.log_file}.")
            time.sleep(POLL_SECONDS)

    def tell_to_end(self) -> None:
        """Returns at once: several end at the same time. Tells it once: a second signal would cut the end short."""
        if self._process is not None and not self._told_to_end:
            self._told_to_end = True
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.terminate()

    def stop(self) -> None:
        """Afterwards it has ended: by itself, or killed when that took too long."""
        self.tell_to_end()
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_words(self) -> str:
        lines = self.log_file.read_text(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it gave no reason."
