"""The API of the stock way: a row and a message a job, and a wait for the commit that ends it.

It waits as the product does, by LISTEN, so that what differs is the queue.

python -m bench.tries.stock    prints its address, and answers until it is told to end
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import uvicorn
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.contestant import place
from bench.tries import rows
from bench.tries.stock_worker import call
from hango.cli.api_process import listen, url_of

CONNECTIONS = 4


class Stock:
    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool
        self._waiting: dict[str, asyncio.Event] = {}

    async def listen(self, url: str) -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        await connection.execute("listen done")
        async for told in connection.notifies():
            if event := self._waiting.pop(told.payload, None):
                event.set()

    async def one(self, request: Request) -> JSONResponse:
        asked = await request.json()
        await self._run(1, asked["model"])
        return JSONResponse({"done": 1})

    async def many(self, request: Request) -> JSONResponse:
        asked = await request.json()
        await self._run(asked["count"], asked["model"])
        return JSONResponse({"done": asked["count"]})

    async def _run(self, count: int, model: str) -> None:
        ids = [uuid.uuid4() for _ in range(count)]
        events = [self._waiting.setdefault(str(id), asyncio.Event()) for id in ids]
        await self._add(ids, model)
        for id in ids:
            call.send(str(id))
        for event in events:
            await event.wait()

    async def _add(self, ids: Sequence[uuid.UUID], model: str) -> None:
        batch_id = uuid.uuid4()
        async with self._pool.connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(rows.ADD_JOB, [(id, batch_id, model) for id in ids])


def main() -> None:
    url: str = place()["database_urls"]["stock"]
    stock: list[Stock] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncConnectionPool(url, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
            stock.append(Stock(pool))
            hears = asyncio.create_task(stock[0].listen(url))
            yield
            hears.cancel()

    async def one(request: Request) -> JSONResponse:
        return await stock[0].one(request)

    async def many(request: Request) -> JSONResponse:
        return await stock[0].many(request)

    routes = [Route("/one", one, methods=["POST"]), Route("/many", many, methods=["POST"])]
    app = Starlette(routes=routes, lifespan=lifespan)
    with listen("127.0.0.1", 0, tries=1) as listener:
        print(url_of(listener), flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
