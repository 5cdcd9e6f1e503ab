"""The API as a child of `hango up`: started early, told where its services are, ended, started again."""

from __future__ import annotations

import errno
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hango.cli.embedded.account import unusable
from hango.cli.embedded.process import end_with_caller, private_log
from hango.config import Settings
from hango.errors import Unavailable

START_SECONDS = 30
STOP_SECONDS = 15
HIGHEST_PORT = 65535
ASK_SECONDS = 1.0
POLL_SECONDS = 0.02
MOST_LOG_BYTES = 8 * 1024 * 1024


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


class ApiProcess:
    """Restarting it loses no connection attempt: the socket stays with the parent and queues them.

    It loads its libraries at once, and takes its services' addresses from its standard input when they are known: that
    is most of a start, and it costs nothing beside the start of the services.
    """

    name = "the API"
    word = "api"

    def __init__(self, listener: socket.socket, environment: Mapping[str, str], log_file: Path) -> None:
        self.listener = listener
        self.log_file = log_file
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._services = b""

    def on(self, settings: Settings) -> None:
        """Where its services are. To be said before `start`."""
        urls = {"database_url": settings.database_url, "redis_url": settings.redis_url}
        self._services = json.dumps({name: url.reveal() for name, url in urls.items() if url}).encode() + b"\n"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def load(self) -> None:
        """Start it as far as that goes without services. Raises Unavailable where its log cannot be written."""
        try:
            if self.log_file.exists() and self.log_file.stat().st_size > MOST_LOG_BYTES:
                self.log_file.replace(self.log_file.with_suffix(".log.1"))
            opened = private_log(self.log_file)
        except OSError as error:
            raise unusable(error) from None
        with opened as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hango", "serve", "--fd", str(self.listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
                pass_fds=[self.listener.fileno()],
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which ends it in order
                preexec_fn=end_with_caller(signal.SIGTERM),  # noqa: PLW1509  two system calls, no lock
            )

    def start(self) -> None:
        """Afterwards it is ready. Raises Unavailable with the last line of its log."""
        if not self.alive():
            self.load()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it ended, which is said below
            self._process.stdin.write(self._services)
            self._process.stdin.close()
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if not self.alive():
                raise Unavailable(f"the API did not start: {self._last_words()} Its log is {self.log_file}.")
            if time.monotonic() > deadline:
                raise Unavailable(f"the API was not ready in {START_SECONDS} s. Its log is {self.log_file}.")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _ready(self) -> bool:
        host, port = url_of(self.listener).removeprefix("http://").rsplit(":", 1)
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ASK_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _last_words(self) -> str:
        lines = self.log_file.read_text(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it gave no reason."
