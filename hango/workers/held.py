"""The jobs that this process has claimed and not yet seen to their end, and the wish that a call shall end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from hango.domain import Principal
from hango.workers.outcomes import Ending


class Job(Protocol):
    """A claimed try or run: `attempt` is the fencing number of the claim."""

    @property
    def id(self) -> UUID: ...
    @property
    def attempt(self) -> int: ...
    @property
    def principal(self) -> Principal: ...


J = TypeVar("J", bound=Job)


class Held(Generic[J]):
    """A claimed job. Whoever wants its call ended says so; whoever makes the call watches `ending`.

    `leaving` is done when the process ends: what comes after the call under way is for another.
    """

    def __init__(self, claimed: J) -> None:
        self.claimed = claimed
        loop = asyncio.get_running_loop()
        self.ending: asyncio.Future[Ending] = loop.create_future()
        self.leaving: asyncio.Future[None] = loop.create_future()

    def end(self, why: Ending) -> None:
        """End its call, if one is under way; the first reason stands. What is being written down is not stopped."""
        if not self.ending.done():
            self.ending.set_result(why)

    def leave(self) -> None:
        """The process ends."""
        if not self.leaving.done():
            self.leaving.set_result(None)


class HeldJobs:
    """By id. A job that was given up and claimed once more is held as its newer claim."""

    def __init__(self) -> None:
        self._held: dict[UUID, Held[Any]] = {}

    def __iter__(self) -> Iterator[Held[Any]]:
        """As of now: jobs may come and go meanwhile."""
        return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def take(self, claimed: J) -> Held[J]:
        held = Held(claimed)
        self._held[claimed.id] = held
        return held

    def let_go(self, held: Held[Any]) -> None:
        if self._held.get(held.claimed.id) is held:
            del self._held[held.claimed.id]

    def get(self, id: UUID) -> Held[Any] | None:
        return self._held.get(id)
