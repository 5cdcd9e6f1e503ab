"""One fault run's world: a PostgreSQL, a Valkey, a provider, API and worker processes, and tenants with sessions.

All of it is real and private, and nothing is left of it. What may fail is killed here, by its name:

    async with staged(Shape(workers=2), folder) as stage:
        stage.programs["worker1"].kill()
        await stage.crash_postgres()
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import psycopg
from redis import Redis

from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.migrations import cluster, runner
from hango.store import system
from hango.store.connection import Store
from tests.faults import canaries, naive, programs
from tests.faults.callers import Caller
from tests.faults.history import install
from tests.faults.postgres_wire import Conversation
from tests.faults.programs import WORKER, Program, becomes
from tests.faults.provider import CountingProvider, counting_provider
from tests.faults.proxy import Proxy, proxying

DATABASE: Final = "hango"
READY_SECONDS: Final = 60.0
# A run of minutes instead of hours: every bound of the product, made shorter.
SCALED: Final = {
    "HANGO_CONTEXT_TRY_LEASE": "6s",
    "HANGO_CONTEXT_TRY_RECONCILE": "1.5s",
    "HANGO_CONTEXT_TRY_TIMEOUT": "4s",
}
MODELS: Final = ("openai/fault", "anthropic/fault")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run needs. `clocks` says by how many seconds the clock of a program is wrong."""

    apis: int = 1
    workers: int = 2
    tenants: int = 3
    quota: int | None = 10**12
    settings: Mapping[str, str] = field(default_factory=dict)
    postgres_apart: bool = False  # reached through a proxy
    redis_apart: bool = False
    clocks: Mapping[str, float] = field(default_factory=dict)
    worker_command: Sequence[str] = WORKER
    scaled: bool = True

    @property
    def in_force(self) -> dict[str, str]:
        return {**(SCALED if self.scaled else {}), **self.settings}


@dataclass(slots=True)
class Stage:
    shape: Shape
    folder: Path
    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    provider: CountingProvider
    postgres_proxy: Proxy
    redis_proxy: Proxy
    programs: dict[str, Program]
    urls: list[str]
    callers: list[Caller] = field(default_factory=list)

    @property
    def database_url(self) -> str:
        """The superuser's, past every proxy."""
        return self.postgres.url_of("postgres", DATABASE)

    @property
    def workers(self) -> list[Program]:
        return [one for name, one in self.programs.items() if name.startswith("worker")]

    @property
    def apis(self) -> list[Program]:
        return [one for name, one in self.programs.items() if name.startswith("api")]

    def redis(self) -> Redis:
        return Redis.from_url(self.valkey.url)

    async def crash_postgres(self, sign: signal.Signals = signal.SIGQUIT, *, away_seconds: float = 0.0) -> None:
        """All of it ends at once, and what was not committed is gone; then it starts again and recovers."""
        assert self.postgres.pid is not None
        os.kill(self.postgres.pid, sign)
        await becomes(lambda: not self.postgres.alive())
        await asyncio.sleep(away_seconds)
        await self.restart_postgres()

    async def restart_postgres(self) -> None:
        """After it has ended."""
        await asyncio.to_thread(self.postgres.stop)
        await asyncio.to_thread(self.postgres.start)

    async def kill_valkey(self, *, away_seconds: float = 0.0) -> None:
        """It forgets all it was told."""
        await asyncio.to_thread(self.valkey.stop)
        await asyncio.sleep(away_seconds)
        await asyncio.to_thread(self.valkey.start)

    async def until_ready(self, url: str) -> None:
        """Raises TimeoutError with what the API said."""
        async with aiohttp.ClientSession() as client:
            end = time.monotonic() + READY_SECONDS
            while time.monotonic() < end:
                try:
                    async with client.get(f"{url}/readyz") as reply:
                        if reply.status == 200:
                            return
                except (aiohttp.ClientError, OSError):
                    pass
                await asyncio.sleep(0.05)
        said = "\n".join(one.log()[-2000:] for one in self.apis)
        raise TimeoutError(f"the API was not ready:\n{said}")

    async def until_working(self) -> None:
        """Every worker has said that it takes work."""
        async with asyncio.timeout(READY_SECONDS):
            await becomes(lambda: all(one.log().count('"started"') >= one.starts for one in self.workers))


@asynccontextmanager
async def staged(shape: Shape, folder: Path) -> AsyncIterator[Stage]:
    """From the main thread. Afterwards no process of it is left."""
    async with AsyncExitStack() as ends:
        postgres, valkey = EmbeddedPostgres(folder), EmbeddedValkey(folder, durable=False)
        for service in (postgres, valkey):
            ends.callback(service.stop)
            service.start()
        cluster.prepare(postgres.url, DATABASE)
        runner.up(postgres.url_of(cluster.OWNER, DATABASE))
        provider = await ends.enter_async_context(counting_provider())
        postgres_proxy = await ends.enter_async_context(proxying(str(postgres.socket), hearing=Conversation))
        redis_proxy = await ends.enter_async_context(proxying(str(valkey.socket)))
        stage = Stage(shape, folder, postgres, valkey, provider, postgres_proxy, redis_proxy, {}, [])
        with psycopg.connect(stage.database_url, autocommit=True) as connection:
            install(connection)
        for name, program in _programs(stage).items():
            stage.programs[name] = program
            ends.callback(program.kill)
            program.start()
        watching = asyncio.create_task(programs.watch(list(stage.programs.values())))
        ends.callback(watching.cancel)
        for url in stage.urls:
            await stage.until_ready(url)
        await stage.until_working()
        stage.callers = [await _caller(stage, number, ends) for number in range(shape.tenants)]
        yield stage


def _programs(stage: Stage) -> dict[str, Program]:
    made: dict[str, Program] = {}
    for number in range(1, stage.shape.apis + 1):
        name, port = f"api{number}", programs.free_port()
        made[name] = programs.serve(name, port, _environment(stage, name), stage.folder)
        stage.urls.append(f"http://127.0.0.1:{port}")
    for number in range(1, stage.shape.workers + 1):
        name = f"worker{number}"
        made[name] = Program(name, stage.shape.worker_command, _environment(stage, name), stage.folder)
    return made


def _environment(stage: Stage, name: str) -> dict[str, str]:
    shape, postgres = stage.shape, stage.postgres
    through = f"postgresql://{cluster.APP}@127.0.0.1:{stage.postgres_proxy.port}/{DATABASE}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HANGO_")}
    wrong = shape.clocks.get(name)
    clock = (
        {"PYTHONPATH": str(programs.ROOT / "tests/faults/clock"), "FAULT_CLOCK_SECONDS": str(wrong)} if wrong else {}
    )
    return {
        **kept,
        **clock,
        "HANGO_HOME": str(stage.folder),
        "HANGO_DATABASE_URL": through if shape.postgres_apart else postgres.url_of(cluster.APP, DATABASE),
        "HANGO_REDIS_URL": f"redis://127.0.0.1:{stage.redis_proxy.port}/0" if shape.redis_apart else stage.valkey.url,
        "HANGO_LOG_FORMAT": "json",
        "HANGO_OPENAI_BASE_URL": f"{stage.provider.url}/v1",
        "HANGO_OPENAI_API_KEY": canaries.PROVIDER_KEY,
        "HANGO_ANTHROPIC_BASE_URL": stage.provider.url,
        "HANGO_ANTHROPIC_API_KEY": canaries.PROVIDER_KEY,
        naive.DATABASE: stage.database_url,
        naive.REDIS: stage.valkey.url,
        naive.PROVIDER: stage.provider.url,
        **shape.in_force,
    }


async def _caller(stage: Stage, number: int, ends: AsyncExitStack) -> Caller:
    """A tenant with a key, an agent of a bad provider and a session."""
    store = await Store.open(stage.postgres.url_of(cluster.APP, DATABASE))
    try:
        async with store.system() as scope:
            made = await system.create_tenant(scope, f"tenant {number}", quota_tokens=stage.shape.quota)
    finally:
        await store.close()
    caller = Caller(stage.urls, made.api_key, str(made.tenant_id))
    ends.push_async_callback(caller.close)
    await caller.set_up(MODELS[number % len(MODELS)])
    return caller
