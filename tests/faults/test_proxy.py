"""The proxy of the fault tests fails as it says: a fault that does not happen would prove nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.faults.proxy import Proxy, answers, proxying, says

STEP_SECONDS = 20


@dataclass
class Line:
    """A connection to the echo server, by lines."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, text: str) -> None:
        self.writer.write(f"{text}\n".encode())
        await self.writer.drain()

    async def hear(self) -> str | None:
        """The next line; None when the connection is over."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                return (await self.reader.readline()).decode().strip() or None
        except ConnectionResetError:
            return None

    async def ask(self, text: str) -> str | None:
        await self.send(text)
        return await self.hear()

    async def close(self) -> None:
        self.writer.transport.abort()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line.upper())
    writer.close()


@asynccontextmanager
async def echoing() -> AsyncIterator[Proxy]:
    """A proxy before a server that says everything again, loudly."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, proxying(server.sockets[0].getsockname()[:2]) as proxy:
        yield proxy


async def call(proxy: Proxy) -> Line:
    return Line(*await asyncio.open_connection("127.0.0.1", proxy.port))


async def test_it_passes_and_counts() -> None:
    """Without a fault it is not there."""
    async with echoing() as proxy:
        one, two = await call(proxy), await call(proxy)

        assert (await one.ask("a"), await two.ask("b"), proxy.taken) == ("A", "B", 2)
        await one.close()
        await two.close()


async def test_what_a_blackhole_kept_arrives_afterwards() -> None:
    """Nothing arrives, nothing is refused, nothing is lost."""
    async with echoing() as proxy:
        line = await call(proxy)
        proxy.blackhole()
        await line.send("a")
        await proxy.until(lambda proxy: proxy.kept == 1)
        proxy.pass_all()

        assert await line.hear() == "A"
        await line.close()


async def test_refused_is_refused_until_it_is_accepted_again() -> None:
    """Connections are reset and new ones refused; the port stays the same."""
    async with echoing() as proxy:
        line = await call(proxy)
        assert await line.ask("a") == "A"
        await proxy.refuse()
        assert await line.hear() is None
        with pytest.raises(ConnectionRefusedError):
            await call(proxy)
        await proxy.accept()

        again = await call(proxy)
        assert await again.ask("b") == "B"
        await line.close()
        await again.close()


async def test_a_slow_line_is_slow_both_ways() -> None:
    """Each piece takes its time there and back."""
    async with echoing() as proxy:
        line = await call(proxy)
        assert await line.ask("a") == "A"
        proxy.slow(0.1)
        started = asyncio.get_running_loop().time()

        assert await line.ask("b") == "B"
        assert asyncio.get_running_loop().time() - started >= 0.2
        await line.close()


async def test_the_nth_reply_that_matches_is_lost_with_its_connection() -> None:
    """The server has done what was asked; the client sees its connection end instead of the reply."""
    async with echoing() as proxy:
        cut = proxy.cut(says(b"B"), nth=2)
        first, second = await call(proxy), await call(proxy)
        assert [await first.ask("b"), await second.ask("a"), await first.ask("c")] == ["B", "A", "C"]
        assert await second.ask("b") is None
        await cut.wait()

        assert await first.ask("b") == "B"
        await first.close()
        await second.close()


async def test_a_reply_is_known_by_its_request() -> None:
    """A reply can be lost for what was asked."""
    async with echoing() as proxy:
        cut = proxy.cut(answers(b"commit"))
        line = await call(proxy)
        assert await line.ask("begin") == "BEGIN"
        assert await line.ask("commit") is None
        await cut.wait()
        await line.close()
