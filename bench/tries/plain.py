"""What a try costs at least: a handler that makes the call itself and stores a row. Nothing survives a kill.

python -m bench.tries.plain    prints its address, and answers until it is told to end
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.contestant import place
from bench.tries import rows
from hango.cli.api_process import listen, url_of

CONNECTIONS = 16


class Plain:
    def __init__(self, pool: AsyncConnectionPool[Any], session: aiohttp.ClientSession, model_url: str) -> None:
        self._pool = pool
        self._session = session
        self._url = f"{model_url}/v1/chat/completions"

    async def one(self, request: Request) -> JSONResponse:
        asked = await request.json()
        return JSONResponse({"answer": await self.call(asked["model"])})

    async def many(self, request: Request) -> JSONResponse:
        """So many calls, so many of them at once."""
        asked = await request.json()
        room = asyncio.Semaphore(asked["at_once"])

        async def call() -> str:
            async with room:
                return await self.call(asked["model"])

        answers = await asyncio.gather(*(call() for _ in range(asked["count"])))
        return JSONResponse({"done": len(answers)})

    async def call(self, model: str) -> str:
        async with self._pool.connection() as connection:
            row = await (await connection.execute(rows.ONE_REQUEST)).fetchone()
        assert row is not None
        body = rows.named(row[0], model)
        async with self._session.post(self._url, data=body, headers={"content-type": "application/json"}) as reply:
            made = json.loads(await reply.read())
        answer: str = made["choices"][0]["message"]["content"]
        id = uuid.uuid4()
        async with self._pool.connection() as connection:
            await connection.execute(rows.ADD_DONE, [id, model, answer])
            usage = made["usage"]
            await connection.execute(rows.ADD_USAGE, [id, usage["prompt_tokens"], usage["completion_tokens"]])
        return answer


def main() -> None:
    found = place()
    plain: list[Plain] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with (
            AsyncConnectionPool(found["database_urls"]["plain"], min_size=CONNECTIONS, max_size=CONNECTIONS) as pool,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            plain.append(Plain(pool, session, found["model_url"]))
            yield

    async def one(request: Request) -> JSONResponse:
        return await plain[0].one(request)

    async def many(request: Request) -> JSONResponse:
        return await plain[0].many(request)

    routes = [Route("/one", one, methods=["POST"]), Route("/many", many, methods=["POST"])]
    app = Starlette(routes=routes, lifespan=lifespan)
    with listen("127.0.0.1", 0, tries=1) as listener:
        print(url_of(listener), flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
