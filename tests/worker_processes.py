"""A real `hango worker` on a test's services: ready when it has said so, killed or ended in order, its log kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hango.cli.worker_process import WorkerProcess
from hango.config import Settings

STARTED = '"event":"started"'


class Worker(WorkerProcess):
    """Its log, `log_file`, is JSON. It may be started again after an end."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, {"PATH": os.environ["PATH"], **environment, "HANGO_LOG_FORMAT": "json"})
        self._starts_before = 0

    def load(self) -> None:
        self._starts_before = self._starts()
        super().load()

    def ready(self) -> bool:
        return self._starts() > self._starts_before

    def kill(self) -> None:
        """As the kernel ends a process that took too much memory. Afterwards it is gone."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def _starts(self) -> int:
        return self.log_file.read_text().replace(" ", "").count(STARTED) if self.log_file.exists() else 0


@contextmanager
def a_worker(settings: Settings, environment: Mapping[str, str], folder: Path) -> Iterator[Worker]:
    """A worker at work on the services of `settings`; the other settings are in the environment. Its folder is made."""
    folder.mkdir()
    worker = Worker(folder, {"HANGO_HOME": str(folder), **environment})
    worker.on(settings)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
