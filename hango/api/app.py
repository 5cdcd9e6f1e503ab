"""Composition root of the API: what a process opens, and the ASGI application on it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from hango import __version__, logs, telemetry
from hango.api.documents import Documents
from hango.api.edge import Edge
from hango.api.endpoint import Runtime
from hango.api.errors import not_found, problem
from hango.api.limits import Limiter
from hango.api.routes import ROUTES, starlette_routes
from hango.api.waiters import Waiters
from hango.chain import estimator
from hango.chain.deps import Deps
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.errors import HangoError
from hango.logs import Log
from hango.store.connection import Store
from hango.workers.broker import Doorbell
from hango.workers.reconciler import Reconciler

# A rate limit is not worth a longer wait than this: after it the request passes without one.
REDIS_SECONDS = 0.5


def create_app(settings: Settings) -> Starlette:
    """The application. Opens nothing before its lifespan starts; serving a request needs the lifespan."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with open_runtime(settings) as runtime:
            app.state.runtime = runtime
            # What is there by now stays: the collector need not walk through it again and again.
            gc.freeze()
            logs.info(Log.STARTED, process="api", version=__version__)
            yield
            logs.info(Log.STOPPED, process="api")

    app = Starlette(
        routes=starlette_routes(ROUTES),
        middleware=[Middleware(Edge)],
        exception_handlers={HTTPException: _refused_by_router},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.documents = Documents(ROUTES)
    return app


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
    """Everything a process needs for its requests; closed in the opposite order."""
    if settings.database_url is None:
        raise HangoError("HANGO_DATABASE_URL is not set: name the database, or use `hango up`, which brings one.")
    if settings.redis_url is None:
        raise HangoError("HANGO_REDIS_URL is not set: name the Redis, or use `hango up`, which brings one.")
    if not structlog.is_configured():
        logs.setup(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(telemetry.setup(settings, "api"))
        store = await Store.open(settings.database_url.reveal())
        stack.push_async_callback(store.close)
        models = Models.load(settings.models)
        providers = Providers(settings, models)
        stack.push_async_callback(providers.close)
        limiter = Limiter(_redis(settings.redis_url.reveal()))
        stack.push_async_callback(limiter.close)
        doorbell = Doorbell(settings.redis_url.reveal())
        stack.push_async_callback(doorbell.close)
        waiters = await Waiters.open(settings.database_url.reveal())
        stack.push_async_callback(waiters.close)
        # The first count reads the tokenizer's table, half a second: done beside the start, not in a first request.
        warm = asyncio.create_task(asyncio.to_thread(estimator.count, ["warm"]))
        stack.push_async_callback(asyncio.wait, [warm])
        deps = Deps(settings, store, providers, models)
        reconciler = Reconciler(deps, doorbell.ring)
        stack.push_async_callback(reconciler.close)
        reconciler.start()
        yield Runtime(deps, limiter, waiters, doorbell)


def _redis(url: str) -> Redis:
    return Redis.from_url(
        url,
        socket_timeout=REDIS_SECONDS,
        socket_connect_timeout=REDIS_SECONDS,
        retry=Retry(NoBackoff(), 0),  # the limiter fails open: a second attempt would only cost time
    )


async def _refused_by_router(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 404:
        return not_found()
    return problem(400, "invalid", "The request cannot be answered here.")
