"""Where tries are benched: the services as `hango up` runs them, an API, a model server, tenants, references."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench import conversation
from bench.place import DATABASE, Client, api_process, load, other_database
from bench.tries import model, rows, servers
from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.cli.worker_process import WorkerProcess
from hango.config import Settings
from hango.migrations import cluster, runner

# A chat of some length: the request is about 80 kB, most of it tools.
MESSAGES = 20
INSTANT = model.name(0)
# More than is measured, so that none is refused; the worker's own numbers are its defaults where a case does not say.
OUTSTANDING = 20_000


@dataclass(frozen=True, slots=True)
class Tenant:
    client: Client
    session_id: str


@dataclass(frozen=True, slots=True)
class Services:
    """PostgreSQL and Valkey as `hango up` runs them, migrated; `settings` name them and the model server."""

    folder: Path
    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    settings: dict[str, str]
    model_url: str

    @property
    def superuser_url(self) -> str:
        return self.postgres.url_of("postgres", DATABASE)

    @contextmanager
    def worker(self, **settings: int) -> Iterator[WorkerProcess]:
        """One worker of the product until the end of the block."""
        given = self.settings | {f"HANGO_{name.upper()}": str(value) for name, value in settings.items()}
        process = WorkerProcess(self.folder, os.environ | given)
        process.on(Settings.from_env(given))
        try:
            process.load()
            process.start()
            yield process
        finally:
            process.stop()


@dataclass(frozen=True, slots=True)
class Place:
    services: Services
    tenants: tuple[Tenant, Tenant]
    model: Client
    plain: Client
    stock: Client

    @property
    def superuser_url(self) -> str:
        return self.services.superuser_url

    def worker(self, **settings: int) -> AbstractContextManager[WorkerProcess]:
        return self.services.worker(**settings)


@contextmanager
def serving() -> Iterator[Services]:
    """What every bench of calls needs; nothing of it is left after the block."""
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="hango-bench-")))
        postgres = ends.enter_context(EmbeddedPostgres(folder))
        valkey = ends.enter_context(EmbeddedValkey(folder))
        cluster.prepare(postgres.url, DATABASE)
        runner.up(postgres.url_of(cluster.OWNER, DATABASE))
        model_url = ends.enter_context(servers.answering("bench.tries.model", log=folder / "servers.log"))
        settings = {
            "HANGO_HOME": str(folder / "home"),
            "HANGO_DATABASE_URL": postgres.url_of(cluster.APP, DATABASE),
            "HANGO_REDIS_URL": valkey.url,
            "HANGO_OPENAI_BASE_URL": f"{model_url}/v1",
            "HANGO_OPENAI_API_KEY": "bench",
            "HANGO_CONTEXT_TRY_TENANT_OUTSTANDING": str(OUTSTANDING),
        }
        yield Services(folder, postgres, valkey, settings, model_url)


@contextmanager
def opened() -> Iterator[Place]:
    """Everything but the product's worker runs at the start of the block; nothing of it is left after it."""
    with ExitStack() as ends:
        services = ends.enter_context(serving())
        folder, settings = services.folder, services.settings
        log = folder / "servers.log"
        url = ends.enter_context(api_process(settings, folder)).url
        tenants = (_tenant(url, settings, "one"), _tenant(url, settings, "other"))
        with psycopg.connect(services.superuser_url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        place = _write_place(services, _request(tenants[0]))
        plain = ends.enter_context(servers.answering("bench.tries.plain", place=place, log=log))
        stock = ends.enter_context(servers.answering("bench.tries.stock", place=place, log=log))
        command = ("-m", "dramatiq", "bench.tries.stock_worker", "--processes", "1", "--threads", str(rows.THREADS))
        ends.enter_context(servers.running(command, place=place, log=log))
        yield Place(services, tenants, Client(services.model_url), Client(plain), Client(stock))


def _tenant(url: str, settings: dict[str, str], name: str) -> Tenant:
    made = load(url, settings, [MESSAGES], name=name, model=f"openai/{INSTANT}")
    return Tenant(Client(url, made["api_key"]), made["sessions"][str(MESSAGES)])


def _request(tenant: Tenant) -> str:
    """What the product would send: the references send the same."""
    path = f"/v1/sessions/{tenant.session_id}/context/preview?format=provider"
    found = tenant.client.ask_json("POST", path, {"message": conversation.LAST_WORDS})
    return json.dumps(found["request"], separators=(",", ":"), ensure_ascii=False)


def _write_place(services: Services, request: str) -> Path:
    urls = {name: other_database(services.postgres, name) for name in ("plain", "stock")}
    for address in urls.values():
        rows.make(address, request, INSTANT)
    found: dict[str, Any] = {
        "database_urls": urls,
        "stock_redis_url": services.valkey.url,
        "model_url": services.model_url,
    }
    file = services.folder / "place.json"
    file.write_text(json.dumps(found))
    return file
