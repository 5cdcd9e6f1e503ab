"""The API as a child of `hango up`, and the address that it answers at."""

from __future__ import annotations

import errno
import http.client
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from hango.cli.child import Child
from hango.errors import Unavailable

HIGHEST_PORT = 65535
ASK_SECONDS = 1.0


def listen(host: str, port: int, *, tries: int) -> socket.socket:
    """A listening socket at the port or, with more tries, the next free one after it; 0 takes any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, min(port + tries, HIGHEST_PORT + 1)):
        try:
            return socket.create_server((host, candidate), family=family, backlog=2048)
        except OSError as error:
            failure = error
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                break
    reason = str(failure.strerror).partition(" (while")[0]
    raise Unavailable(f"hango cannot listen on {host} port {port} ({reason}); set HANGO_HOST and HANGO_PORT.")


def url_of(listener: socket.socket) -> str:
    """An address that reaches the socket from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{reachable}:{port}"


class ApiProcess(Child):
    """Restarting it loses no connection attempt: the socket stays with the parent and queues them."""

    name = "the API"
    word = "api"
    module = ("hango", "serve")

    def __init__(self, home: Path, environment: Mapping[str, str], listener: socket.socket) -> None:
        super().__init__(home, environment)
        self.listener = listener

    def arguments(self) -> list[str]:
        return ["--fd", str(self.listener.fileno())]

    def handed_over(self) -> Sequence[int]:
        return [self.listener.fileno()]

    def ready(self) -> bool:
        host, port = url_of(self.listener).removeprefix("http://").rsplit(":", 1)
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ASK_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
