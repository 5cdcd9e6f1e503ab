"""A model server that costs next to nothing: OpenAI's chat completions, after as long as the model's name says.

`bench-0ms` answers at once, `bench-2000ms` after two seconds; `bench-0ms-20turns` calls `read_file` until it has been
asked twenty times since the user spoke. It counts its calls: `GET /calls`.

python -m bench.tries.model    prints its address, and answers until its standard input ends
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any, cast

import uvloop

PREFIX = "bench-"
ANSWER = "Yes."
FILE = "/memories/AGENTS.md"
OUTPUT_TOKENS = 3
BYTES_A_TOKEN = 4

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model" *: *"bench-(\d+)ms(?:-(\d+)turns)?"')
_USER, _RESULT = b'"role":"user"', b'"role":"tool"'


def name(milliseconds: int, turns: int = 1) -> str:
    return f"{PREFIX}{milliseconds}ms" if turns == 1 else f"{PREFIX}{milliseconds}ms-{turns}turns"


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
        turn = 1 + request.count(_RESULT, request.rfind(_USER))
        choice = _says(ANSWER) if turn >= int(model[2] or 1) else _calls(turn)
        loop.call_later(int(model[1]) / 1000, self._complete, choice, len(request) // BYTES_A_TOKEN)

    def _complete(self, choice: dict[str, Any], tokens: int) -> None:
        self._counter.end()
        made = {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 0,
            "model": PREFIX,
            "choices": [{"index": 0, **choice}],
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


def _says(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def _calls(turn: int) -> dict[str, Any]:
    function = {"name": "read_file", "arguments": json.dumps({"path": FILE, "offset": turn, "limit": 1})}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}


async def main() -> None:
    counter = Counter()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(counter), "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(main())
