"""Places to work in: so many requests work at once, the others wait; in a lasting crowd who waited too long is refused.

With more asked than can be answered, letting everybody in, or everybody wait, would answer nobody in time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from hango.errors import Unavailable

# The database has ten connections for a process, and its loop one processor: more at once are only slower.
MOST_AT_WORK: Final = 24
# Whoever still waits after this is refused as soon as somebody else comes. A burst after which nobody comes is served.
LONGEST_WAIT_SECONDS: Final = 1.0


class Places:
    """Of one process, on its loop."""

    def __init__(self, most: int = MOST_AT_WORK, longest_wait: float = LONGEST_WAIT_SECONDS) -> None:
        self._most = most
        self._longest_wait = longest_wait
        self._at_work = 0
        self._turns: deque[tuple[asyncio.Future[None], float]] = deque()  # and since when

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        """A place for the time of the block. Raises Unavailable where the wait was too long."""
        await self._enter()
        try:
            yield Place(self)
        finally:
            self.leave()

    def leave(self) -> None:
        self._at_work -= 1
        self._call_in()

    def come_back(self) -> None:
        """Without a wait: who was in already is not made to stand behind newcomers."""
        self._at_work += 1

    def waited(self) -> float:
        """Seconds, of whoever waits for the longest; 0 when nobody does."""
        while self._turns and self._turns[0][0].done():  # it is gone
            self._turns.popleft()
        return asyncio.get_running_loop().time() - self._turns[0][1] if self._turns else 0.0

    async def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        while self.waited() > self._longest_wait:
            oldest, _ = self._turns.popleft()
            oldest.set_exception(Unavailable("More is asked than can be answered now. Try again in a moment."))
        turn = loop.create_future()
        self._turns.append((turn, loop.time()))
        self._call_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # called in, and gone
                self.leave()
            raise

    def _call_in(self) -> None:
        """In the order in which they came. In a crowd the last comes first: the others will have waited too long."""
        while self._turns and self._at_work < self._most:
            crowd = self.waited() > self._longest_wait / 2
            if not self._turns:
                return
            turn, _ = self._turns.pop() if crowd else self._turns.popleft()
            if not turn.done():
                self._at_work += 1
                turn.set_result(None)


class Place:
    """One request's."""

    def __init__(self, places: Places) -> None:
        self._places = places

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Not at work for the time of the block: it waits for its client, or for the end of a try."""
        self._places.leave()
        try:
            yield
        finally:
            self._places.come_back()
