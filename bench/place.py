"""Where a bench takes place: services of its own, a tenant, an agent, and a session of each size."""

from __future__ import annotations

import http.client
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from bench import conversation
from hango.cli.api_process import ApiProcess, listen, url_of
from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.cli.serve import make_tenant
from hango.config import Settings
from hango.migrations import cluster, runner

DATABASE = "hango"
MODEL = "anthropic/claude-sonnet-4-5"
MESSAGES_A_REQUEST = 2_000  # under the 8 MiB of a body


@dataclass(frozen=True, slots=True)
class Place:
    """`file` tells the contestants all of it."""

    folder: Path
    file: Path
    api_pid: int


@contextmanager
def opened(sizes: Sequence[int]) -> Iterator[Place]:
    """Everything runs and is loaded at the start of the block; nothing of it is left after it."""
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="hango-bench-")))
        postgres = ends.enter_context(EmbeddedPostgres(folder, durable=False))
        valkey = ends.enter_context(EmbeddedValkey(folder, durable=False))
        cluster.prepare(postgres.url, DATABASE)
        runner.up(postgres.url_of(cluster.OWNER, DATABASE))
        settings = {
            "HANGO_HOME": str(folder / "home"),
            "HANGO_DATABASE_URL": postgres.url_of(cluster.APP, DATABASE),
            "HANGO_REDIS_URL": valkey.url,
        }
        api = ends.enter_context(api_process(settings, folder))
        superuser_url = postgres.url_of("postgres", DATABASE)
        found = {
            "settings": settings,
            "superuser_url": superuser_url,
            "database_urls": {name: other_database(postgres, name) for name in ("reference", "deepagents", "letta")},
            "api_url": api.url,
            **load(api.url, settings, sizes),
        }
        with psycopg.connect(superuser_url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        file = folder / "place.json"
        file.write_text(json.dumps(found))
        yield Place(folder, file, api.pid)


class Client:
    """One kept connection to an API."""

    def __init__(self, url: str, api_key: str = "") -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self._headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None, *, wait: int | None = None) -> bytes:
        """The body of the answer. `wait`: seconds that it may take. Raises RuntimeError for any status of refusal."""
        sent = None if body is None else json.dumps(body).encode()
        headers = self._headers if wait is None else self._headers | {"Prefer": f"wait={wait}"}
        try:
            self._connection.request(method, path, sent, headers)
            reply = self._connection.getresponse()
        except ConnectionError:  # it was idle for too long, while another contestant worked
            self._connection.close()
            self._connection.request(method, path, sent, headers)
            reply = self._connection.getresponse()
        answer = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path} gave {reply.status}: {answer[:500].decode()}")
        return answer

    def ask_json(self, method: str, path: str, body: Any = None, *, wait: int | None = None) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.ask(method, path, body, wait=wait))
        return made


@dataclass(frozen=True, slots=True)
class Api:
    url: str
    pid: int


@contextmanager
def api_process(settings: dict[str, str], folder: Path) -> Iterator[Api]:
    """An API of the product until the end of the block."""
    with listen("127.0.0.1", 0, tries=1) as listener:
        api = ApiProcess(folder, os.environ | settings, listener)
        try:
            api.on(Settings.from_env(settings))
            api.load()
            api.start()
            assert api.pid is not None
            yield Api(url_of(listener), api.pid)
        finally:
            api.stop()


def other_database(postgres: EmbeddedPostgres, name: str) -> str:
    """A database on the same server, so that nobody has a better one."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database bench_{name}".encode())
    return postgres.url_of("postgres", f"bench_{name}")


def load(
    url: str, settings: dict[str, str], sizes: Sequence[int], *, name: str = "bench", model: str = MODEL
) -> dict[str, Any]:
    """A new tenant with an agent and a session of each size; what a contestant needs to know of them."""
    made = make_tenant(Settings.from_env(settings), name)
    api = Client(url, made.api_key)
    api.ask("PATCH", "/v1/tenant", {"rate_per_minute": None})
    agent = {
        "name": "bench",
        "model": model,
        "system_prompt": conversation.system_prompt(),
        "tools": conversation.tools(),
        "memory": ["/memories/AGENTS.md"],
    }
    agent_id = api.ask_json("POST", "/v1/agents", agent)["id"]
    api.ask("PUT", f"/v1/agents/{agent_id}/files/memories/AGENTS.md", {"content": conversation.memory()})
    for skill, text in conversation.skills().items():
        api.ask("PUT", f"/v1/agents/{agent_id}/files/skills/{skill}/SKILL.md", {"content": text})
    return {
        "api_key": made.api_key,
        "principal": {
            "tenant_id": str(made.tenant_id),
            "user_id": str(made.user_id),
            "key_id": api.ask_json("GET", "/v1/me")["key_id"],
        },
        "agent_id": agent_id,
        "sessions": {str(size): make_session(api, agent_id, size) for size in sizes},
    }


def make_session(api: Client, agent_id: str, size: int) -> str:
    session_id = str(api.ask_json("POST", "/v1/sessions", {"agent_id": agent_id, "title": f"{size}"})["id"])
    history = conversation.messages(size)
    while part := list(islice(history, MESSAGES_A_REQUEST)):
        api.ask("POST", f"/v1/sessions/{session_id}/messages", {"messages": part})
    return session_id
