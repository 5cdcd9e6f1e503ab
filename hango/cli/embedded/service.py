"""The life of one embedded service: locked, started, shared, ended, cleaned up after a kill. Names none."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from hango.cli.embedded.account import Account, room, service_account, unusable
from hango.cli.embedded.process import POLL_SECONDS, command_line, end_with_caller, private_log, wait_until
from hango.errors import Unavailable

START_SECONDS = 60  # a recovery after a crash reads what was written since the last checkpoint
STOP_SECONDS = 20
MOST_LOG_BYTES = 8 * 1024 * 1024
# A socket's address holds 104 bytes on macOS and 108 on Linux, the file's name and an ending NUL included.
MOST_SOCKET_BYTES = 103


class EmbeddedService(ABC):
    """A server process with its files in one folder of the home.

    Start it from the main thread: on Linux it ends with the thread that started it, so that even `kill -9` of
    the starter leaves nothing running.
    """

    name: ClassVar[str]  # for people
    word: ClassVar[str]  # its folder
    socket_name: ClassVar[str]
    end_signal: ClassVar[signal.Signals]  # asks for an orderly end
    drop_signal: ClassVar[signal.Signals]  # ends it at once, when nobody needs the data

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self.home = home.resolve()
        self.durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._log_start = 0

    # What a service says of itself

    @abstractmethod
    def prepare(self) -> None:
        """Make what must be there before a start. Runs under the lock."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def recorded_pid(self) -> int | None:
        """The process that its pid file names, alive or not."""

    @abstractmethod
    def answers(self) -> bool:
        """It takes connections at this moment."""

    # Its life

    def start(self, *, share: bool = False, fresh: bool = False) -> Self:
        """Afterwards it answers. With `share`, one that another process runs is used and left running.

        `fresh` throws away what it held.

        Raises Unavailable, with the reason in one sentence.
        """
        if self._process is not None:
            return self
        self._open_folder()
        deadline = time.monotonic() + START_SECONDS
        while not self._take_lock():
            if share and self.answers():
                return self
            if time.monotonic() > deadline:
                raise Unavailable(f"{self.name} in {self.folder} is in use by another hango; end that one first.")
            time.sleep(POLL_SECONDS)
        try:
            self._end_orphan()
            if fresh:
                shutil.rmtree(self.folder)
                self._open_folder()
            self.prepare()
            self._launch(deadline)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends the process that this object started; a shared one goes on."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(self.end_signal if self.durable else self.drop_signal)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def alive(self) -> bool:
        """The process that this object started is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Where things are

    @property
    def socket(self) -> Path:
        return self.socket_folder / self.socket_name

    @property
    def log_file(self) -> Path:
        return self.folder / f"{self.word}.log"

    def _open_folder(self) -> None:
        try:
            self.room = room(self.home)
            self.account: Account = service_account(self.room / self.word)
            self.folder = self.account.own(self.room / self.word)
            self.socket_folder = self._short_folder()
        except OSError as error:
            raise unusable(error) from None

    def _short_folder(self) -> Path:
        """The service's own folder, or one in /tmp when the socket's address would be too long."""
        if len(os.fsencode(self.folder / self.socket_name)) <= MOST_SOCKET_BYTES:
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return self.account.own(Path(tempfile.gettempdir()) / f"hango-{name}")

    # Steps of a start

    def _take_lock(self) -> bool:
        """The lock dies with its holder, so a killed one never stands in the way."""
        handle = os.open(self.home / f"{self.word}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._lock = handle
        return True

    def _end_orphan(self) -> None:
        """Nobody holds the lock, so a server that still runs here was left by a killed starter."""
        pid = self.recorded_pid()
        if pid is None or str(self.folder) not in command_line(pid):
            return
        for sign in (self.end_signal, self.drop_signal, signal.SIGKILL):
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                return
            if wait_until(lambda: not command_line(pid), STOP_SECONDS):
                return

    def _launch(self, deadline: float) -> None:
        if self.log_file.exists() and self.log_file.stat().st_size > MOST_LOG_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        self._spawn()
        while not self.answers():
            if not self.alive():
                if self.may_try_again() and time.monotonic() < deadline:
                    time.sleep(0.1)
                    self._spawn()
                    continue
                raise Unavailable(f"{self.name} did not start: {self.last_words()} Its log is {self.log_file}.")
            if time.monotonic() > deadline:
                raise Unavailable(f"{self.name} did not answer in {START_SECONDS} s. Its log is {self.log_file}.")
            time.sleep(POLL_SECONDS)

    def may_try_again(self) -> bool:
        """It ended at once for a reason that passes by itself."""
        return False

    def last_words(self) -> str:
        """The reason that the last start gave for its end."""
        text = self.log_file.read_bytes()[self._log_start :].decode(errors="replace")
        fatal = re.search(r"FATAL.*", text)
        lines = [fatal.group()] if fatal else text.strip().splitlines()
        return f"{lines[-1].strip()}." if lines else "it gave no reason."

    def _spawn(self) -> None:
        with private_log(self.log_file) as log:
            self._log_start = log.tell()
            self._process = self.popen(self.command(), log.fileno())

    def popen(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        """A process of the service's account, with no setting of the caller's, that ends with the caller."""
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
                preexec_fn=end_with_caller(self.end_signal),  # noqa: PLW1509  two system calls, no lock
                **self.account.popen(),
            )
        except OSError as error:
            who = self.account.name or "this account"
            raise Unavailable(
                f"{self.name} could not be started as {who} ({error.strerror}); "
                "set HANGO_DATABASE_URL and HANGO_REDIS_URL to services of your own."
            ) from None
