"""How long a client may take to send a request, and how large its head may be. uvicorn by itself waits for ever."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_MOST_BYTES: Final = 64 * 1024


class Patient(HttpToolsProtocol):
    """Closes the connection of a client that sends slower than that. Waiting for an answer, it may be silent.

    Between two requests uvicorn's own limit of silence holds.
    """

    grace_seconds: ClassVar[float] = 10.0
    # A longer body may take longer, a second for each of these: what the slowest networks still reach.
    least_bytes_per_second: ClassVar[float] = 500.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._bytes = 0
        self._in_head = True
        self._since = self.loop.time()
        self._look: asyncio.TimerHandle | None = self.loop.call_later(self.grace_seconds, self._judge)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if self._in_head and self._bytes > HEAD_MOST_BYTES and not self.transport.is_closing():
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._look is None:
            self._bytes, self._since = 0, self.loop.time()
            self._look = self.loop.call_later(self.grace_seconds, self._judge)
        self._in_head = True

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._arrived()

    def _arrived(self) -> None:
        self._in_head = False
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _judge(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # it is us who do not read on
            self._since, self._bytes = now, 0
        left = self._since + self.grace_seconds + self._bytes / self.least_bytes_per_second - now
        if left > 0:
            self._look = self.loop.call_later(left, self._judge)
        else:
            self._look = None
            self.transport.abort()
