"""What commands are tried out on: an API and a worker in processes of their own, with a database of their own."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hango.cli.embedded.process import wait_until
from hango.config import Settings
from tests import live
from tests.command_line import Hango
from tests.conftest import Database
from tests.services import Services, clone_database, drop_database

SECONDS = 30.0  # for a worker to start, and to end


@contextmanager
def own_place(services: Services, redis_url: str, home: Path, **more: str) -> Iterator[dict[str, str]]:
    """The variables of an API and a worker; `more` are settings of theirs."""
    name = f"hango_{secrets.token_hex(8)}"
    clone_database(services, name)
    database = Database.of(services, name)
    try:
        yield {
            "HANGO_HOME": str(home),
            "HANGO_DATABASE_URL": database.app_dsn,
            "HANGO_MIGRATE_DATABASE_URL": database.owner_dsn,
            "HANGO_REDIS_URL": redis_url,
            **more,
        }
    finally:
        drop_database(services, name)


@contextmanager
def command_line(place: Mapping[str, str]) -> Iterator[Hango]:
    """The command line of an admin; an API is running."""
    made = subprocess.run(
        [sys.executable, "-m", "hango", "tenant", "create", "--name", "shop"],
        env={**place, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    with live.serving(Settings.from_env({**place, "HANGO_PORT": "0"})) as url:
        yield Hango(url, json.loads(made.stdout)["api_key"], Path(place["HANGO_HOME"]))


@contextmanager
def working(place: Mapping[str, str], log: Path) -> Iterator[None]:
    """A worker process, started."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "hango", "worker"],
            env={**place, "HANGO_LOG_FORMAT": "json", "PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        assert wait_until(lambda: '"started"' in log.read_text() or process.poll() is not None, SECONDS)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)
