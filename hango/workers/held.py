"""The tries that this process has claimed and not yet seen to their end, and the wish that a call shall end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import UUID

from hango.tries import Claimed
from hango.workers.outcomes import Ending


class Held:
    """A claimed try. Whoever wants its call ended says so; whoever makes the call watches `ending`."""

    def __init__(self, claimed: Claimed) -> None:
        self.claimed = claimed
        self.ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(self, why: Ending) -> None:
        """End its call, if one is under way; the first reason stands. What is being written down is not stopped."""
        if not self.ending.done():
            self.ending.set_result(why)


class HeldTries:
    """By id. A try that was given up and claimed once more is held as its newer claim."""

    def __init__(self) -> None:
        self._held: dict[UUID, Held] = {}

    def __iter__(self) -> Iterator[Held]:
        """As of now: tries may come and go meanwhile."""
        return iter(list(self._held.values()))

    def take(self, claimed: Claimed) -> Held:
        held = Held(claimed)
        self._held[claimed.id] = held
        return held

    def let_go(self, held: Held) -> None:
        if self._held.get(held.claimed.id) is held:
            del self._held[held.claimed.id]

    def get(self, id: UUID) -> Held | None:
        return self._held.get(id)
