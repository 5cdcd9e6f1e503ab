"""One line on a terminal that keeps moving while the command waits for an answer. Silent where stderr is none."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType

from hango.cli import output
from hango.cli.progress import REDRAW_SECONDS, overwrite

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Ticker:
    """While it is entered, the words of now are on the last line of the terminal; then the line is empty again."""

    def __init__(self, words: Callable[[], str]) -> None:
        self._words = words
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True) if output.stderr_is_terminal() else None

    def __enter__(self) -> Ticker:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            overwrite("")

    def _run(self) -> None:
        frame = 0
        while not self._over.wait(REDRAW_SECONDS if frame else 0):
            overwrite(f"{FRAMES[frame % len(FRAMES)]} {self._words()}")
            frame += 1
