"""The sockets of calls to providers: none of them takes the process for itself, however much is sent.

A provider may send a great many tiny pieces, or interim answers without end. They are thrown away before anybody can
count them, and reading them is work that all other calls have to wait for.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import aiohttp

# What is read in one turn of the event loop: a few milliseconds of work, if it is all pieces of one byte.
MOST_BYTES_AT_ONCE = 16 * 1024
# Beside the answer itself: heads, and the marks of pieces.
HEAD_BYTES = 256 * 1024
# A long answer is minutes of silence, which some networks take for the end of a connection.
PROBE_SECONDS = 60


class BoundedSocket(socket.socket):
    """A socket that reads little at once, and no more than `most_bytes` between two sends: then it is reset."""

    most_bytes = 0
    _received = 0

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        read = super().recv(min(bufsize, MOST_BYTES_AT_ONCE), flags)
        self._count(len(read))
        return read

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        read = super().recv_into(buffer, min(nbytes or len(buffer), MOST_BYTES_AT_ONCE), flags)
        self._count(read)
        return read

    def send(self, *args: Any) -> int:
        self._received = 0
        return super().send(*args)

    def sendmsg(self, *args: Any) -> int:
        self._received = 0
        return super().sendmsg(*args)

    def _count(self, read: int) -> None:
        self._received += read
        if self._received > self.most_bytes:
            raise ConnectionResetError("more was sent than any answer has")


def make_factory(answer_bytes: int) -> Callable[[aiohttp.AddrInfoType], BoundedSocket]:
    """For answers of at most so many bytes. The system probes a silent connection: a dead one is noticed, a live one
    kept.
    """

    def make(address: aiohttp.AddrInfoType) -> BoundedSocket:
        family, kind, protocol, *_ = address
        made = BoundedSocket(family, kind, protocol)
        made.most_bytes = 2 * answer_bytes + HEAD_BYTES
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_SECONDS)
        return made

    return make
