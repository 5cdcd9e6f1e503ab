"""The world of the cases with a try: an API and a worker as processes, on a database and a Valkey of their own, and a
provider that says what a case tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from aiohttp import web
from psycopg.rows import dict_row
from redis import Redis

from hango.cli.embedded.process import wait_until
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.config import Settings
from hango.config.values import SecretUrl
from tests.cases.world import COUNTER, Person, Server, a_provider, a_server, two_tenants
from tests.conftest import Database
from tests.faults import canaries
from tests.otlp import Receiver, receiving
from tests.providers_server import Answer, FakeProvider, Seen, chat, message
from tests.worker_processes import Worker, a_worker

SECONDS = 30.0
PROVIDER_KEYS = {"HANGO_ANTHROPIC_API_KEY": "sk-ant-of-tests", "HANGO_OPENAI_API_KEY": "sk-of-tests"}
ENDED = ("succeeded", "failed", "timed_out", "cancelled", "expired", "lost")
CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class TryWorld:
    """`worker` may be killed by a case; `ready` brings it back."""

    server: Server
    worker: Worker
    provider: FakeProvider
    receiver: Receiver
    redis: Redis
    admin: Person
    other_admin: Person  # of another tenant
    database: Database
    settings: Settings
    environment: dict[str, str]
    folder: Path

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """For Hypothesis, short: all that was seen and received is in it."""
        printer.text(f"TryWorld({self.server.url})")

    def ready(self) -> None:
        """A worker is there, and the provider answers as it does when nobody says otherwise."""
        if not self.worker.alive():
            self.worker.start()
        self.answers(in_its_words("In drawer 4."))
        self.provider.seen.clear()

    def answers(self, answer: Answer) -> None:
        self.provider.answer = answer

    def calls(self) -> list[Seen]:
        """What the provider was asked for an answer to, counting apart."""
        return [seen for seen in self.provider.seen if COUNTER not in seen.path]

    def until(self, person: Person, try_id: str, server: Server | None = None) -> dict[str, Any]:
        """The try, once it has ended."""
        for _ in range(int(SECONDS)):
            reply = person.send(server or self.server, "GET", f"/v1/tries/{try_id}?wait=1").raise_for_status()
            found: dict[str, Any] = reply.json()
            if found["status"] in ENDED:
                return found
        raise AssertionError(f"the try did not end: {found}")

    def until_called(self, times: int = 1) -> None:
        assert wait_until(lambda: len(self.calls()) >= times, SECONDS), f"{len(self.calls())} calls"

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """What a statement finds, as the superuser sees it."""
        with psycopg.connect(self.database.superuser_dsn, row_factory=dict_row) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def until_rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """What a statement finds, once it finds anything."""
        assert wait_until(lambda: bool(self.rows(query, *values)), SECONDS), query
        return self.rows(query, *values)

    def change(self, statement: LiteralString, *values: Any) -> None:
        """What nobody but time or an operator does, such as `update tries set lease_until = ...`."""
        with psycopg.connect(self.database.superuser_dsn) as connection:
            connection.execute(statement, values)

    def logs(self) -> list[Path]:
        return [self.server.log, self.worker.log_file]

    def exported(self, try_id: str) -> bytes:
        """All that was exported, once the spans of this try are among it."""
        assert wait_until(
            lambda: any(span.attributes.get("hango.try.id") == try_id for span in [*self.receiver.spans]), SECONDS
        ), "no span of the try"
        return b"\n".join(self.receiver.raw)

    def of_redis(self) -> bytes:
        return canaries.dump(self.redis)


def in_its_words(*content: dict[str, Any] | str, **usage: Any) -> Answer:
    """The same answer in the words of whoever asks: Messages or Chat Completions. Texts, and for Messages blocks."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith(CHAT):
            return web.json_response(chat("".join(one for one in content if isinstance(one, str)), **usage))
        return web.json_response(message(*content, **usage))

    return answer


def echoing_the_request(status: int) -> Answer:
    """An error whose sentence repeats what was asked."""

    async def answer(request: web.Request) -> web.StreamResponse:
        said = (await request.read()).decode()
        error = {"type": "invalid_request_error", "message": f"This is wrong: {said}"}
        return web.json_response({"type": "error", "error": error}, status=status)

    return answer


@contextmanager
def a_try_world(settings: Settings, database: Database, folder: Path, **more: str) -> Iterator[TryWorld]:
    """Everything a case with a try needs, for the time of the block; `more` are further settings of both processes."""
    folder.mkdir(exist_ok=True)
    with a_valkey(folder) as redis_url, a_provider() as provider, receiving() as receiver:
        own = replace(settings, database_url=SecretUrl(database.app_dsn), redis_url=SecretUrl(redis_url))
        environment = {
            "HANGO_HOME": str(folder),
            "HANGO_ANTHROPIC_BASE_URL": provider.url,
            "HANGO_OPENAI_BASE_URL": f"{provider.url}/v1",
            **PROVIDER_KEYS,
            "HANGO_CONTEXT_TRY_RECONCILE": "0.2s",
            "HANGO_OTLP_ENDPOINT": receiver.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
            "HANGO_LOG_FORMAT": "json",
            "HANGO_LOG_LEVEL": "debug",
            **more,
        }
        with (
            a_server(own, environment, folder / "api") as server,
            a_worker(own, environment, folder / "worker") as worker,
            Redis.from_url(redis_url) as redis,
        ):
            admin, other = asyncio.run(two_tenants(database))
            yield TryWorld(server, worker, provider, receiver, redis, admin, other, database, own, environment, folder)


@contextmanager
def a_valkey(folder: Path) -> Iterator[str]:
    """A Valkey of its own: its queue is nobody else's."""
    service = EmbeddedValkey(folder, durable=False).start()
    try:
        yield service.url
    finally:
        service.stop()
