"""One line on a terminal that is written over while bytes go out. Silent where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hango.cli import output

BAR = 24  # columns
REDRAW_SECONDS = 0.1
MEGABYTE = 1_000_000


@dataclass(slots=True)
class Progress:
    """Counts the bytes that pass. `total` None: it is not known how many there will be."""

    word: str
    total: int | None
    shown: bool = field(default_factory=output.stderr_is_terminal)
    sent: int = 0
    _drawn_at: float = float("-inf")

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self.sent += len(chunk)
            if self.shown and time.monotonic() - self._drawn_at >= REDRAW_SECONDS:
                self._drawn_at = time.monotonic()
                overwrite(self.line())
        if self.shown:
            overwrite(f"{self.word} {megabytes(self.sent)} MB sent, waiting for the answer")

    def clear(self) -> None:
        if self.shown:
            overwrite("")

    def line(self) -> str:
        if not self.total:
            return f"{self.word} {megabytes(self.sent)} MB"
        share = min(1.0, self.sent / self.total)
        return f"{self.word} {bar(share)} {megabytes(self.sent)} of {megabytes(self.total)} MB  {share:.0%}"


def bar(share: float) -> str:
    """A bar that is filled by a share from 0 to 1."""
    filled = "█" * round(share * BAR)
    return f"{filled:░<{BAR}}"


def overwrite(line: str) -> None:
    """Write a line of ours over the last one of the terminal behind stderr."""
    sys.stderr.write(f"\r\x1b[K{line[: output.width() - 1]}")
    sys.stderr.flush()


def megabytes(count: int) -> str:
    return f"{count / MEGABYTE:.1f}"
