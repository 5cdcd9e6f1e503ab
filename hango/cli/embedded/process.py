"""What a starter asks of the kernel about a process: to end with it, what it is, that it is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

POLL_SECONDS = 0.01
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def end_with_caller(sign: signal.Signals) -> Callable[[], None] | None:
    """To run in a child, so that the kernel sends it the signal when its starter dies; None without a way."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, sign)
        if os.getppid() != parent:  # it died before it was asked
            os._exit(1)

    return ask


def private_log(path: Path) -> BinaryIO:
    """A log to append to, for its owner's eyes alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def command_line(pid: int) -> str:
    """What a process was started with; empty when it is gone or has ended."""
    proc = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    shown = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], check=False, capture_output=True)
    return shown.stdout.decode(errors="replace")


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
