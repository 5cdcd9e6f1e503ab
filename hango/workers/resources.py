"""What a worker process opens on its loop, and closes in the opposite order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from hango import telemetry
from hango.chain import estimator, prices
from hango.chain.deps import Deps
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.errors import HangoError
from hango.messages import Usage
from hango.store.connection import Store
from hango.workers.broker import Doorbell

# No connection is held during a model call, so a few serve many calls: a try takes some 10 ms of one.
CALLS_PER_CONNECTION: Final = 4
LEAST_CONNECTIONS: Final = 4
MOST_CONNECTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Resources:
    deps: Deps
    doorbell: Doorbell


class Picker(Protocol):
    """Claims what may run and sees each call to its end, on the loop of the process."""

    async def ring(self) -> None:
        """Look whether there is something to claim. Returns when it has looked: the calls go on."""

    async def stop(self) -> None:
        """Claim nothing more; returns when the last call has ended and is written down."""


MakePicker = Callable[[Resources], Picker]


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Raises HangoError for a service that is not named, or cannot be reached."""
    if settings.database_url is None:
        raise HangoError("HANGO_DATABASE_URL is not set: name the database, or use `hango up`, which brings one.")
    if settings.redis_url is None:
        raise HangoError("HANGO_REDIS_URL is not set: name the Redis, or use `hango up`, which brings one.")
    async with AsyncExitStack() as stack:
        stack.enter_context(telemetry.setup(settings, "worker"))
        store = await Store.open(settings.database_url.reveal(), max_size=connections(settings.worker_threads))
        stack.push_async_callback(store.close)
        models = Models.load(settings.models)
        providers = Providers(settings, models)
        stack.push_async_callback(providers.close)
        doorbell = Doorbell(settings.redis_url.reveal())
        stack.push_async_callback(doorbell.close)
        # Tables that are read at their first use, for up to a second: beside the start, not while calls wait.
        warm = asyncio.create_task(asyncio.to_thread(warm_up))
        stack.push_async_callback(asyncio.wait, [warm])
        yield Resources(Deps(settings, store, providers, models), doorbell)


def warm_up() -> None:
    estimator.count(["warm"])
    prices.cost_usd("openai/gpt-4o", Usage())


def connections(calls: int) -> int:
    """How many connections serve so many calls at once."""
    return min(max(calls // CALLS_PER_CONNECTION, LEAST_CONNECTIONS), MOST_CONNECTIONS)
