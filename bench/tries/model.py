"""A model server that costs next to nothing: OpenAI's chat completions, after as long as the model's name says.

`bench-0ms` answers at once, `bench-2000ms` after two seconds. It counts its calls: `GET /calls`.

python -m bench.tries.model    prints its address, and answers until its standard input ends
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import cast

import uvloop

PREFIX = "bench-"
ANSWER = "Yes."
OUTPUT_TOKENS = 3
BYTES_A_TOKEN = 4

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model" *: *"bench-(\d+)ms"')


def name(milliseconds: int) -> str:
    return f"{PREFIX}{milliseconds}ms"


class Counter:
    """How many calls there were, and how many at once at most since it was asked last."""

    def __init__(self) -> None:
        self.calls = self.open = self.most = 0

    def begin(self) -> None:
        self.calls += 1
        self.open += 1
        self.most = max(self.most, self.open)

    def end(self) -> None:
        self.open -= 1

    def told(self) -> bytes:
        told = json.dumps({"calls": self.calls, "most_at_once": self.most}).encode()
        self.most = self.open
        return told


class Connection(asyncio.Protocol):
    """One request at a time, as clients with a kept connection send them."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._read = bytearray()
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by class

    def data_received(self, data: bytes) -> None:
        self._read += data
        if not self._needed:
            head = self._read.find(b"\r\n\r\n")
            if head < 0:
                return
            length = _LENGTH.search(self._read, 0, head)
            self._needed = head + 4 + (int(length[1]) if length else 0)
        if len(self._read) >= self._needed:
            request, self._read = bytes(self._read[: self._needed]), self._read[self._needed :]
            self._needed = 0
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        if request.startswith(b"GET "):
            self._send(self._counter.told())
            return
        model = _MODEL.search(request)
        assert model is not None, "every contestant calls a model of this server"
        self._counter.begin()
        loop = asyncio.get_running_loop()
        loop.call_later(int(model[1]) / 1000, self._complete, model[1].decode(), len(request) // BYTES_A_TOKEN)

    def _complete(self, milliseconds: str, tokens: int) -> None:
        self._counter.end()
        made = {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 0,
            "model": name(int(milliseconds)),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": tokens,
                "completion_tokens": OUTPUT_TOKENS,
                "total_tokens": tokens + OUTPUT_TOKENS,
            },
        }
        self._send(json.dumps(made).encode())

    def _send(self, body: bytes) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


async def main() -> None:
    counter = Counter()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(counter), "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(main())
