"""A TCP proxy that fails on demand, between hango and a service: PostgreSQL, Valkey, a provider.

async with proxying(address) as proxy:        a Unix socket's path, or (host, port)
    ...connect to 127.0.0.1 at proxy.port...
    proxy.blackhole()                         nothing arrives, nothing is refused; what is sent is kept
    proxy.slow(2.0)                           each piece takes this long, either way
    proxy.pass_all()                          as if it were not there; what was kept arrives
    await proxy.refuse()                      all connections are reset, new ones are refused
    await proxy.accept()                      new ones are taken again, at the same port
    cut = proxy.cut(says(b"COMMIT"))          the next such reply is lost, and the connection with it
    await cut.wait()
    await proxy.until(lambda proxy: proxy.taken == 3)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

Address = str | tuple[str, int]
# What a client asked, as its connection's `Hearing` has it, and the piece of the reply that came: is it the one?
Matches = Callable[[bytes, bytes], bool]

PIECE_BYTES = 65_536
HOST = "127.0.0.1"


class Hearing(Protocol):
    """What is known of one connection: `asked` is what the next reply answers."""

    asked: bytes

    def says(self, piece: bytes) -> None: ...

    def hears(self, piece: bytes) -> None: ...


class SinceReply:
    """Whatever was sent since the reply before."""

    def __init__(self) -> None:
        self.asked = b""

    def says(self, piece: bytes) -> None:
        self.asked += piece

    def hears(self, piece: bytes) -> None:
        self.asked = b""


@dataclass(slots=True)
class Cut:
    """A reply that is to be lost: the `nth` that matches. Set when that has happened."""

    matches: Matches
    nth: int
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        await self._done.wait()

    def takes(self, asked: bytes, reply: bytes) -> bool:
        if self._done.is_set() or not self.matches(asked, reply):
            return False
        self.nth -= 1
        if self.nth == 0:
            self._done.set()
        return self.nth == 0


class Proxy:
    """`taken` counts connections, `kept` the pieces that were held back by a blackhole; `port` stays the same."""

    def __init__(self, target: Address, hearing: Callable[[], Hearing] = SinceReply) -> None:
        self._target = target
        self._hearing = hearing
        self._open = asyncio.Event()
        self._open.set()
        self._delay = 0.0
        self._cuts: list[Cut] = []
        self._links: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self.port = 0
        self.taken = 0
        self.kept = 0

    def pass_all(self) -> None:
        self._delay = 0.0
        self._open.set()

    def blackhole(self) -> None:
        self._open.clear()

    def slow(self, seconds: float) -> None:
        self._delay = seconds

    def cut(self, matches: Matches, nth: int = 1) -> Cut:
        made = Cut(matches, nth)
        self._cuts.append(made)
        return made

    async def until(self, state: Callable[[Proxy], bool]) -> None:
        """Wait until what is counted is so."""
        while not state(self):
            self._changed.clear()
            await self._changed.wait()

    async def accept(self) -> None:
        self._server = await asyncio.start_server(self._take, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Afterwards no connection is left."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.reset()

    async def reset(self) -> None:
        """End every connection; new ones are taken."""
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        self._changed.set()
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it or a reply of it is cut."""
        ends = [writer]
        try:
            there, back = await self._reach()
            ends.append(back)
            heard = self._hearing()
            halves = [
                asyncio.create_task(self._carry(reader, back, heard, replies=False)),
                asyncio.create_task(self._carry(there, writer, heard, replies=True)),
            ]
            try:
                await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for half in halves:
                    half.cancel()
                await asyncio.gather(*halves, return_exceptions=True)
        except OSError:
            pass  # the service is away: so is the connection
        finally:
            for end in ends:
                end.transport.abort()

    def _is_cut(self, asked: bytes, reply: bytes) -> bool:
        # Each cut counts each reply, so none is passed over when one has taken it.
        return True in [cut.takes(asked, reply) for cut in self._cuts]

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, str):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, heard: Hearing, *, replies: bool
    ) -> None:
        """`heard` is shared by both directions of a connection."""
        with suppress(OSError):
            while piece := await source.read(PIECE_BYTES):
                if replies and self._is_cut(heard.asked, piece):
                    return
                if replies:
                    heard.hears(piece)
                else:
                    heard.says(piece)
                if self._delay:
                    await asyncio.sleep(self._delay)
                if not self._open.is_set():
                    self.kept += 1
                    self._changed.set()
                    await self._open.wait()
                sink.write(piece)
                await sink.drain()


def says(text: bytes) -> Matches:
    """A reply that holds the text."""
    return lambda _, reply: text in reply


def answers(text: bytes) -> Matches:
    """The reply to a request that holds the text."""
    return lambda asked, _: text in asked


@asynccontextmanager
async def proxying(target: Address, hearing: Callable[[], Hearing] = SinceReply) -> AsyncIterator[Proxy]:
    proxy = Proxy(target, hearing)
    await proxy.accept()
    try:
        yield proxy
    finally:
        await proxy.refuse()
