"""A small disk in memory for a run's folder, and a way to fill it. Needs the right to mount one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DISK_MIB: Final = 512
PIECE: Final = b"\0" * 65_536


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A new folder that is a disk by itself; None where this account may not mount one."""
    place = folder / "disk"
    place.mkdir()
    if sys.platform != "linux" or not _mount("-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=711", "tmpfs", str(place)):
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


@contextmanager
def filling(disk: Path) -> Iterator[None]:
    """Not a byte is left on it, for the time of the block."""
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            while True:
                file.write(PIECE)
    except OSError:
        pass  # it is full
    try:
        yield
    finally:
        ballast.unlink()


def _mount(*words: str) -> bool:
    try:
        return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
