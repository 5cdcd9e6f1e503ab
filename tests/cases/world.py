"""The world of a case: API processes, a provider that nobody may ask for an answer, and people with keys."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
from psycopg import sql

from hango.cli.api_process import ApiProcess, url_of
from hango.config import Settings
from hango.store import system
from hango.store.connection import Store
from tests.conftest import Database
from tests.providers_server import FakeProvider, Seen, fake_provider, says

COUNTER = "/count_tokens"
ROWS_AND_VERSIONS = sql.SQL(
    "select count(*), coalesce(md5(string_agg(ctid::text || xmin::text, ',' order by ctid)), '') from {}"
)


@dataclass(frozen=True, slots=True)
class Server:
    """One API process, where it writes its log, and a client without a key."""

    url: str
    log: Path
    client: httpx2.Client


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who sends requests; `key` None sends no header."""

    key: str | None = field(repr=False)

    def send(
        self,
        server: Server,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        more: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """`body` is sent as JSON in ASCII letters, so that halves of letters can be sent too; `more` are headers."""
        content = raw if raw is not None else None if body is None else json.dumps(body).encode("ascii")
        headers = {**({"Authorization": f"Bearer {self.key}"} if self.key is not None else {}), **(more or {})}
        if content is not None:
            headers["Content-Type"] = "application/json"
        return server.client.request(method, path, content=content, headers=headers)

    def make(self, server: Server, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        reply = self.send(server, "POST", path, dict(body))
        assert reply.is_success, reply.text
        made: dict[str, Any] = reply.json()
        return made

    def member(self, server: Server) -> Person:
        """A new member of the same tenant."""
        user = self.make(server, "/v1/users", {"name": f"user {uuid4().hex[:8]}", "role": "member"})
        made = self.make(server, "/v1/api-keys", {"name": "key", "user_id": user["id"]})
        return Person(made["key"])


@dataclass(frozen=True, slots=True)
class World:
    """`server` knows no provider's key; `counting` has one, so that it asks the provider's counter."""

    server: Server
    counting: Server
    second: Server  # another process on the same data
    provider: FakeProvider
    admin: Person
    other_admin: Person  # of another tenant
    database: Database

    def answers_asked(self) -> list[Seen]:
        """What the provider was asked, counting apart."""
        return [seen for seen in self.provider.seen if COUNTER not in seen.path]

    def rows(self) -> dict[str, tuple[int, str]]:
        """Rows of every table, and a digest of their versions: any insert, update or delete changes it."""
        with psycopg.connect(self.database.superuser_dsn) as connection:
            tables = [
                name
                for (name,) in connection.execute(
                    "select tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')"
                )
            ]
            found = {}
            for name in tables:
                row = connection.execute(ROWS_AND_VERSIONS.format(sql.Identifier(name))).fetchone()
                assert row is not None
                found[name] = (row[0], row[1])
        return found


def hango(server: Server, person: Person, *words: str, columns: int | None = None) -> tuple[int, str, str]:
    """The command line in a process of its own: exit code, stdout, stderr."""
    env = {"HANGO_API_URL": server.url, "HANGO_API_KEY": person.key or "", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "hango", *words],
        env=env if columns is None else {**env, "COLUMNS": str(columns)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextmanager
def a_world(settings: Settings, database: Database, folder: Path) -> Iterator[World]:
    """Everything a case needs, for the time of the block."""
    with a_provider() as provider:
        env = {
            "HANGO_HOME": str(folder),
            "HANGO_ANTHROPIC_BASE_URL": provider.url,
            "HANGO_OPENAI_BASE_URL": f"{provider.url}/v1",
            "HANGO_LOG_FORMAT": "json",
            "HANGO_LOG_LEVEL": "debug",
            "PATH": os.environ["PATH"],
        }
        with (
            a_server(settings, env, folder / "first") as server,
            a_server(settings, {**env, "HANGO_ANTHROPIC_API_KEY": "sk-of-tests"}, folder / "counting") as counting,
            a_server(settings, env, folder / "second") as second,
        ):
            admin, other = asyncio.run(two_tenants(database))
            yield World(server, counting, second, provider, admin, other, database)


async def two_tenants(database: Database) -> tuple[Person, Person]:
    store = await Store.open(database.app_dsn, max_size=1)
    people = []
    for _ in range(2):
        async with store.system() as scope:
            made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=None)
        people.append(Person(made.api_key))
    await store.close()
    return people[0], people[1]


@contextmanager
def a_server(settings: Settings, env: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """An API process; its log is in the folder, which is made."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        process = ApiProcess(folder, env, listener)
        process.on(settings)
        process.start()
        url = url_of(listener)
        try:
            with httpx2.Client(base_url=url, timeout=60, trust_env=False, verify=False) as client:
                yield Server(url, process.log_file, client)
        finally:
            process.stop()


@contextmanager
def a_provider() -> Iterator[FakeProvider]:
    """A provider in a thread of its own: its counter answers 400, and so does all else."""
    ready: queue.Queue[tuple[FakeProvider, Callable[[], object]]] = queue.Queue()

    async def run() -> None:
        refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "This is not counted."}}
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        async with fake_provider(says(refusal, status=400)) as fake:
            ready.put((fake, lambda: loop.call_soon_threadsafe(ended.set)))
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    fake, end = ready.get(timeout=30)
    try:
        yield fake
    finally:
        end()
        thread.join()
