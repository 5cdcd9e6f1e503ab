"""A try, a batch or a run that was accepted: waited for, and on Ctrl-C cancelled or left as the person says.

A wait that ends early cancels nothing: the work goes on, and what comes of it can be looked at later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

from hango.cli import asking, output, replies
from hango.cli.client import PAUSE_SECONDS, Client, Missing
from hango.cli.exits import ExitCode, Failure
from hango.cli.ticker import Ticker

WAIT_SECONDS = 60  # the longest that the API holds an answer back
# On a terminal the state is shown, so it is asked for this often while it may change.
LOOK_SECONDS = 2
# An API that is started again answers within it; an answer that is paid for is worth the patience.
AWAY_SECONDS = 30.0
# A worker sees a cancel at its next heartbeat, every ten seconds.
CANCEL_SECONDS = 30.0
# An idle worker begins within milliseconds.
QUEUED_LONG_SECONDS = 10.0


class Seen(Protocol):
    """A thing that takes time, as it was seen last."""

    @property
    def ended(self) -> bool: ...


T = TypeVar("T", bound=Seen)


class CtrlC(Enum):
    """What an interrupt of the wait does."""

    ASKS = auto()  # whether to cancel
    CANCELS = auto()
    LEAVES = auto()  # what nobody can cancel


class Outcome(Enum):
    ENDED = auto()
    RAN_OUT = auto()  # of the seconds that the person gave
    LEFT = auto()  # by Ctrl-C, and it goes on


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """Where a thing that takes time is, and how it is shown."""

    word: str  # "try", "batch", "run", "preview"
    path: str
    kind: type[T]
    look: str  # the command that looks at it later
    state: Callable[[T, float], str]  # on the terminal, of the last one seen and the seconds waited

    @property
    def later(self) -> str:
        return f"look at it: {self.look}"

    def failure(self, outcome: Outcome) -> Failure:
        """The end of a command that did not wait to the end."""
        why = "did not end in time" if outcome is Outcome.RAN_OUT else "was not waited for"
        return Failure(f"the {self.word} {why} and goes on.", code=ExitCode.WAIT_RAN_OUT, more=[self.later])


def send(client: Client, path: str, wanted: object, *, word: str, listing: str, missing: str) -> bytes:
    """POST what starts a work, once whatever the connection does. Gives its first reply."""
    try:
        return client.post_once(path, wanted, missing=missing)
    except KeyboardInterrupt:
        said = f"stopped while the {word} was being sent: it may have been accepted."
        raise Failure(said, code=ExitCode.WAIT_RAN_OUT, more=[f"see whether it was: {listing}"]) from None


def wait(
    client: Client, work: Work[T], body: bytes, *, seconds: float | None, ctrl_c: CtrlC = CtrlC.ASKS
) -> tuple[Outcome, bytes]:
    """Wait until the thing has ended, at most so many seconds; `body` is its first reply. Gives the last reply.

    Raises Failure, which names the command that looks at it later, when the API is away for long.
    """
    following = _Following(client, work, body)
    try:
        return following.to_the_end(seconds), following.body
    except KeyboardInterrupt:
        pass
    try:
        if ctrl_c is CtrlC.CANCELS or (
            ctrl_c is CtrlC.ASKS and asking.someone_there() and asking.agreed(f"\ncancel the {work.word}?")
        ):
            following.cancel()
            return following.to_the_end(CANCEL_SECONDS), following.body
    except KeyboardInterrupt:
        output.note("")
    return Outcome.LEFT, following.body


def hint(*, queued: bool, seconds: float) -> str:
    """What is to be asked about work that is still queued after so many seconds; mostly nothing."""
    return "  is a worker running?" if queued and seconds > QUEUED_LONG_SECONDS else ""


def patiently(ask: Callable[[], bytes]) -> bytes:
    """The reply to a question that may be repeated, from an API that may be away for a moment."""
    until = time.monotonic() + AWAY_SECONDS
    while True:
        try:
            return ask()
        except Failure as failure:
            if failure.pause is None or time.monotonic() >= until:
                raise
            time.sleep(min(failure.pause, AWAY_SECONDS))


class _Following(Generic[T]):
    def __init__(self, client: Client, work: Work[T], body: bytes) -> None:
        self._client = client
        self._work = work
        self._began = time.monotonic()
        self.body = body
        self.seen = replies.read(body, work.kind)

    def to_the_end(self, seconds: float | None) -> Outcome:
        until = math.inf if seconds is None else time.monotonic() + seconds
        with Ticker(lambda: self._work.state(self.seen, time.monotonic() - self._began)):
            while not self.seen.ended:
                left = until - time.monotonic()
                if left <= 0:
                    return Outcome.RAN_OUT
                self._look(max(1, min(left, LOOK_SECONDS if output.stderr_is_terminal() else WAIT_SECONDS)))
        return Outcome.ENDED

    def cancel(self) -> None:
        """Ask the API to cancel it. What has ended meanwhile stays as it is."""
        self._took(self._client.post(f"{self._work.path}/cancel", missing=self._missing()))

    def _look(self, seconds: float) -> None:
        """Look once more, when it ends or after so many seconds."""
        began = time.monotonic()
        try:
            self._took(patiently(lambda: self._held_back(int(seconds))))
        except Missing:
            raise
        except Failure as failure:
            more = [*failure.more, self._work.later]
            raise Failure(failure.sentence, code=failure.code, more=more) from None
        if not self.seen.ended and time.monotonic() - began < PAUSE_SECONDS:
            time.sleep(PAUSE_SECONDS)  # an API with many that wait answers at once

    def _held_back(self, seconds: int) -> bytes:
        return self._client.get(self._work.path, {"wait": seconds}, missing=self._missing(), wait=seconds)

    def _took(self, body: bytes) -> None:
        self.body = body
        self.seen = replies.read(body, self._work.kind)

    def _missing(self) -> str:
        return f"the {self._work.word} is gone: its session was deleted, or it is too old to be kept."
