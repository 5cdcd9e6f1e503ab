"""`hango worker` as a process: what it refuses to start with, how it works, how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from hango.cli.embedded.process import wait_until
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.migrations import runner
from hango.workers.broker import make_broker
from hango.workers.encoder import doorbell
from tests.conftest import Database
from tests.upping import LAUNCHER, ROOT, SECONDS, environment, hango

MOST_MIB = 120

# The process of `hango worker` with a picker of the test: a ring begins a call of so many seconds. An answer may take a
# fifth of a second to be written down.
WORKER = """
import asyncio, sys
from hango.config import Settings
from hango.workers.main import run

class OneCall:
    def __init__(self, resources):
        self.call = None

    async def ring(self):
        if self.call is None:
            print("begun", flush=True)
            self.call = asyncio.create_task(asyncio.sleep(float(sys.argv[1])))

    async def stop(self):
        print("stopping", flush=True)
        if self.call is not None:
            await self.call
            print("ended", flush=True)

run(Settings.from_env(), OneCall, settle_seconds=0.2)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hango-home-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def valkey(home: Path) -> Iterator[EmbeddedValkey]:
    """One of this test alone, not started."""
    service = EmbeddedValkey(home, durable=False)
    yield service
    service.stop()


@contextmanager
def started(home: Path, command: list[str], **settings: str) -> Iterator[subprocess.Popen[str]]:
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(home, {"HANGO_LOG_FORMAT": "json", **settings}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert wait_until(lambda: "started" in events(home) or process.poll() is not None, SECONDS)
        assert process.poll() is None, (home / "log").read_text()
        yield process
    finally:
        process.kill()
        process.communicate()


def events(home: Path) -> list[str]:
    return [line["event"] for line in lines(home)]


def lines(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "log").read_text().splitlines() if line.endswith("}")]


def with_one_call(seconds: float) -> list[str]:
    return [sys.executable, "-c", WORKER, str(seconds)]


def ring(redis_url: str) -> None:
    broker = make_broker(redis_url)
    broker.enqueue(doorbell())
    broker.client.close()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_sigterm_lets_the_call_under_way_end(home: Path, database: Database, valkey: EmbeddedValkey) -> None:
    """SIGTERM once: it takes no more work, lets the calls under way end, rings for another worker, and exits 0."""
    valkey.start()
    with started(home, with_one_call(1.5), HANGO_DATABASE_URL=database.app_dsn, HANGO_REDIS_URL=valkey.url) as process:
        ring(valkey.url)
        assert said(process) == "begun"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)

    assert (process.returncode, out) == (0, "stopping\nended\n")
    assert events(home) == ["started", "stopped"]
    assert {line["process"] for line in lines(home)} == {"worker"}
    with Redis.from_url(valkey.url) as redis:
        assert redis.llen("hango:tries") == 1


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(
    sign: signal.Signals, home: Path, database: Database, valkey: EmbeddedValkey
) -> None:
    """Whoever cannot wait says so twice."""
    valkey.start()
    with started(home, with_one_call(600), HANGO_DATABASE_URL=database.app_dsn, HANGO_REDIS_URL=valkey.url) as process:
        ring(valkey.url)
        assert said(process) == "begun"
        process.send_signal(sign)
        assert said(process) == "stopping"
        process.send_signal(sign)

        assert process.wait(SECONDS) == -sign


def test_calls_that_do_not_end_are_not_waited_for_for_ever(
    home: Path, database: Database, valkey: EmbeddedValkey
) -> None:
    """The wait for the calls under way is bounded by a try's own time, and some to write the answer down."""
    valkey.start()
    with started(
        home,
        with_one_call(600),
        HANGO_DATABASE_URL=database.app_dsn,
        HANGO_REDIS_URL=valkey.url,
        HANGO_CONTEXT_TRY_TIMEOUT="0.5s",
    ) as process:
        ring(valkey.url)
        assert said(process) == "begun"
        process.send_signal(signal.SIGTERM)

        assert process.wait(SECONDS) == 0
    assert events(home) == ["started", "unexpected_error", "stopped"]


def test_redis_may_come_later(home: Path, database: Database, valkey: EmbeddedValkey) -> None:
    """A worker whose Redis is away waits for it: PostgreSQL holds what is to be done."""
    valkey.start()
    valkey.stop()  # its address stays
    with started(home, with_one_call(0), HANGO_DATABASE_URL=database.app_dsn, HANGO_REDIS_URL=valkey.url) as process:
        assert wait_until(lambda: "redis_away" in events(home), SECONDS)
        valkey.start()
        ring(valkey.url)

        assert said(process) == "begun"


def test_it_starts_light_and_ends_in_order(home: Path, database: Database, redis_url: str) -> None:
    """`hango worker` starts in less than 120 MiB, and SIGTERM ends it with 0."""
    with started(
        home, [*LAUNCHER, "worker"], HANGO_DATABASE_URL=database.app_dsn, HANGO_REDIS_URL=redis_url
    ) as process:
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    found = re.search(r"VmRSS:\s*(\d+) kB", status)
    assert found
    assert int(found[1]) / 1024 < MOST_MIB


def test_it_refuses_a_role_that_sees_too_much(home: Path, database: Database, redis_url: str) -> None:
    """A role that owns tables, or has BYPASSRLS, or is a superuser ends the process with a sentence."""
    dsns = {
        "hango_owner of HANGO_DATABASE_URL owns tables": database.owner_dsn,
        "postgres of HANGO_DATABASE_URL is a superuser or has BYPASSRLS": database.superuser_dsn,
    }
    refused = [hango(home, "worker", HANGO_DATABASE_URL=dsn, HANGO_REDIS_URL=redis_url) for dsn in dsns.values()]

    because = "so row level security would not hold for it: connect as hango_app, and name the owner in"
    assert [(done.returncode, done.stdout, done.stderr) for done in refused] == [
        (1, "", f"hango: The role {what}, {because} HANGO_MIGRATE_DATABASE_URL.\n") for what in dsns
    ]


def test_it_refuses_what_would_lose_tries(home: Path, fresh_database: Database, redis_url: str) -> None:
    """A Redis without a password off this machine, a lease too short for three heartbeats, missing migrations, no
    database: each ends the process with a sentence that says what to do."""
    runner.down(fresh_database.owner_dsn, 7)
    good = {"HANGO_DATABASE_URL": fresh_database.app_dsn, "HANGO_REDIS_URL": redis_url}
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"postgresql://hango_app@127.0.0.1:{free.getsockname()[1]}/hango"
    no_password = (
        "HANGO_REDIS_URL names a Redis on another machine without a password, so that anybody there could ring or hold"
        " up the queue: set one in Redis and write redis://:PASSWORD@host."
    )
    too_short = (
        "HANGO_CONTEXT_TRY_LEASE is 0.1s, and a worker has to say in it three times that it lives: give it 1s or more."
    )
    cases = [
        ({"HANGO_REDIS_URL": "redis://valkey.example:6379/0"}, no_password),
        ({"HANGO_CONTEXT_TRY_LEASE": "0.1s"}, too_short),
        ({}, f"The database lacks {len(runner.load()) - 7} migrations; run `hango migrate up` first."),
        (
            {"HANGO_DATABASE_URL": nobody},
            "The database cannot be reached: check HANGO_DATABASE_URL and that it is up.",
        ),
    ]
    refused = [hango(home, "worker", **(good | given)) for given, _ in cases]

    assert [(done.returncode, done.stdout, done.stderr) for done in refused] == [
        (1, "", f"hango: {sentence}\n") for _, sentence in cases
    ]
