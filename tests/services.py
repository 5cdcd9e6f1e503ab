"""One PostgreSQL and one Valkey for a whole test run, started by the first test that needs them.

A process of their own, the keeper, holds them. It ends with the run, however that ends: the run holds a named
pipe open, and the keeper ends when the last writer is gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.migrations import cluster, runner

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = "hango_template"
START_SECONDS = 90
POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Services:
    """Where the run's services are."""

    superuser_url: str
    redis_url: str

    def database_url(self, role: str, database: str) -> str:
        return self.superuser_url.replace("//postgres@/postgres", f"//{role}@/{database}")


class Run:
    """The folder of one test run. The process that made it keeps the services alive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pipe: int | None = None

    @classmethod
    def begin(cls) -> Run:
        run = cls(Path(tempfile.mkdtemp(prefix="hango-test-")))
        os.mkfifo(run.folder / "alive")
        # Read and write, so that opening waits for nobody.
        run._pipe = os.open(run.folder / "alive", os.O_RDWR)
        return run

    def end(self) -> None:
        """Afterwards nothing of the run is left: neither a process nor a file."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        keeper = self.folder / "keeper.pid"
        if keeper.exists():
            deadline = time.monotonic() + START_SECONDS
            while self.folder.exists() and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def services(self) -> Services:
        """Starts them when nobody has yet."""
        with (self.folder / "start.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.folder / "services.json"
            if not found.exists():
                self._start_keeper(found)
            return Services(**json.loads(found.read_text()))

    def _start_keeper(self, found: Path) -> None:
        log = self.folder / "keeper.log"
        with log.open("wb") as output:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.services", str(self.folder)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        (self.folder / "keeper.pid").write_text(str(keeper.pid))
        deadline = time.monotonic() + START_SECONDS
        while not found.exists():
            if keeper.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the services of the tests did not start:\n{log.read_text()}")
            time.sleep(POLL_SECONDS)
        keeper.returncode = 0  # it outlives this worker on purpose; without this, Popen warns of it


def clone_database(services: Services, name: str) -> None:
    """A fresh, migrated database. The template takes no connections, so it can be copied at any time."""
    with psycopg.connect(services.superuser_url, autocommit=True) as connection:
        words = [sql.Identifier(word) for word in (name, TEMPLATE, cluster.OWNER)]
        connection.execute(sql.SQL("create database {} template {} owner {}").format(*words))


def drop_database(services: Services, name: str) -> None:
    with psycopg.connect(services.superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def keep(folder: Path) -> None:
    """The keeper: services up, template migrated, then wait for the run to end, then leave nothing."""
    pipe = os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
    with (
        EmbeddedPostgres(folder, durable=False) as postgres,
        EmbeddedValkey(folder, durable=False) as valkey,
    ):
        services = Services(postgres.url, valkey.url)
        cluster.prepare(services.superuser_url, TEMPLATE)
        runner.up(services.database_url(cluster.OWNER, TEMPLATE))
        with psycopg.connect(services.superuser_url, autocommit=True) as connection:
            connection.execute(f"alter database {TEMPLATE} allow_connections false")
        ready = folder / "services.json"
        ready.with_suffix(".new").write_text(json.dumps(asdict(services)))
        ready.with_suffix(".new").rename(ready)
        select.select([pipe], [], [])  # nobody writes: it becomes readable when the last writer is gone
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
