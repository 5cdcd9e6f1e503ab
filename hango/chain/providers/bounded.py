"""Answers that cannot take the process for themselves, however much is sent.

A provider may send interim answers without end, or its answer in a great many tiny pieces. Nobody gets to see them, and
reading them is work that all other calls have to wait for. So what comes over the connection is counted, too.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

# Before the answer begins: a head has a few kilobytes, and the first stretch of the answer may come with it.
HEAD_BYTES = 1024 * 1024


class _Counting(asyncio.Protocol):
    """In front of the connection's own protocol: ends the connection when more comes than is `left`."""

    def __init__(self, inner: Any, transport: asyncio.Transport) -> None:
        self._inner = inner
        self._transport = transport
        self.left = 0

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left < 0:
            self._transport.abort()
        else:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        kept: bool | None = self._inner.eof_received()
        return kept

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def bounded_answer(answer_bytes: int) -> type[aiohttp.ClientResponse]:
    """The class of answers of at most so many bytes. The marks of pieces may take a quarter more."""

    class BoundedAnswer(aiohttp.ClientResponse):
        async def start(self, connection: Any) -> aiohttp.ClientResponse:
            counting = _counting(connection.transport)
            counting.left = HEAD_BYTES
            started = await super().start(connection)
            counting.left += answer_bytes + answer_bytes // 4
            return started

    return BoundedAnswer


def _counting(transport: Any) -> _Counting:
    """A connection serves one call after the other: its protocol counts from the first on."""
    inner = transport.get_protocol()
    if isinstance(inner, _Counting):
        return inner
    made = _Counting(inner, transport)
    transport.set_protocol(made)
    return made
