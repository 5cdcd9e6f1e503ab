"""A server that answers as the test says, over real HTTP, for the failures that a healthy API does not show."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PATIENCE = 30.0  # seconds
KEY = "hango_abcdefgh_" + "s" * 43


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # until it answers
    lost: bool = False  # the request arrives, and the connection is closed without an answer


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server got it."""

    line: str
    key: str | None
    body: bytes
    if_match: str | None = None
    idempotency_key: str | None = None


@dataclass(slots=True)
class Scripted:
    url: str
    # By the start of "METHOD path?query"; the longest start that fits. Of several answers each is given once, in
    # order, and the last one from then on.
    answers: Mapping[str, Answer | list[Answer]]
    asked: list[Asked] = field(default_factory=list)

    def until(self, start: str, times: int = 1) -> None:
        """Wait until so many requests that begin so have arrived."""
        by = time.monotonic() + PATIENCE
        while sum(one.line.startswith(start) for one in self.asked) < times:
            assert time.monotonic() < by, f"{start!r} never came"
            time.sleep(0.005)


def reply(value: Any) -> Answer:
    return Answer(json.dumps(value).encode())


def problem(status: int, code: str, detail: str, **more: Any) -> Answer:
    body = {"type": "about:blank", "title": "T", "status": status, "detail": detail, "code": code, **more}
    return Answer(json.dumps(body).encode(), status, "application/problem+json")


def _chunks(stream: io.BufferedIOBase) -> bytes:
    """A body that came in pieces."""
    found = b""
    while size := int(stream.readline(), 16):
        found += stream.read(size)
        stream.readline()
    stream.readline()
    return found


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone before its answer is no fault, and stderr is what the tests look at."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(answers: Mapping[str, Answer | list[Answer]]) -> Iterator[Scripted]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length")
            self._answer(_chunks(self.rfile) if length is None else self.rfile.read(int(length)))

        def do_PUT(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            line = f"{self.command} {self.path}"
            of = self.headers.get
            scripted.asked.append(Asked(line, of("Authorization"), body, of("If-Match"), of("Idempotency-Key")))
            answer = self._next(line)
            time.sleep(answer.seconds)
            if answer.lost:
                self.close_connection = True
                return
            self.send_response(answer.status)
            headers = {"Content-Type": answer.media_type, "Content-Length": str(len(answer.body)), **answer.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def _next(self, line: str) -> Answer:
            found = scripted.answers[max((start for start in scripted.answers if line.startswith(start)), key=len)]
            if isinstance(found, Answer):
                return found
            return found.pop(0) if len(found) > 1 else found[0]

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with Server(("127.0.0.1", 0), Handler) as server:
        scripted = Scripted(f"http://127.0.0.1:{server.server_address[1]}", answers)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield scripted
        finally:
            server.shutdown()
            thread.join()
