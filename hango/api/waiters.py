"""Requests that wait for an end: woken by the commit that brings it, never polling. One listener a process.

waiters = await Waiters.open(url)
found = await waiters.wait(id, key_id, look, is_ended, seconds=30, gone=leaving(request))
waiters.release()    the process is told to end: everybody gets what there is
await waiters.close()
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from starlette.requests import ClientDisconnect

from hango.domain import KeyID
from hango.store.notifications import Channel, Notifications

# Over these a request is answered at once, as if it had not asked to wait: bounds of memory, and of what one key takes.
MOST_WAITERS = 1000
MOST_WAITERS_OF_A_KEY = 200
# Hundreds may be woken by one end. They take turns: a process has ten connections, and others need some too.
LOOKS_AT_ONCE = 4

T = TypeVar("T")
Gone = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True, eq=False)
class _Waiter:
    """One request that waits: what has happened to it while it looked or slept."""

    is_gone: bool = False
    is_late: bool = False
    is_released: bool = False
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self) -> None:
        """Until something happens; at once when it already has since the sleep before."""
        await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def leave(self, watch: asyncio.Task[None]) -> None:
        """The client went away. A watch that is cancelled is one that is not needed any more."""
        if not watch.cancelled():
            watch.exception()  # asked for, so that asyncio does not report it: a watch that failed tells the same
            self.is_gone = True
            self.wake()

    def expire(self) -> None:
        self.is_late = True
        self.wake()

    def release(self) -> None:
        self.is_released = True
        self.wake()


class Waiters:
    """Everybody who waits in this process: at most so many, and so many of one key."""

    def __init__(self, most: int = MOST_WAITERS, most_of_a_key: int = MOST_WAITERS_OF_A_KEY) -> None:
        self._most = most
        self._most_of_a_key = most_of_a_key
        self._by_id: dict[UUID, set[_Waiter]] = {}
        self._of_key: Counter[KeyID] = Counter()
        self._is_released = False
        self._turns = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._notifications: Notifications | None = None

    @classmethod
    async def open(cls, url: str, *, most: int = MOST_WAITERS, most_of_a_key: int = MOST_WAITERS_OF_A_KEY) -> Waiters:
        """Afterwards it hears of every end. Raises Unavailable."""
        waiters = cls(most, most_of_a_key)
        waiters._notifications = await Notifications.open(
            url, [Channel.DONE], heard=waiters.hear, reconnected=waiters.wake_all
        )
        return waiters

    async def close(self) -> None:
        self.release()
        if self._notifications is not None:
            await self._notifications.close()

    def __len__(self) -> int:
        return self._of_key.total()

    async def wait(
        self,
        id: UUID,
        key_id: KeyID,
        look: Callable[[], Awaitable[T]],
        is_ended: Callable[[T], bool],
        *,
        seconds: float,
        gone: Gone,
    ) -> T:
        """What `look` finds when it is ended; when the seconds are over, what it finds then.

        It looks once at the start, once a notification and once at the end of the time, and raises what `look` raises.
        Over a bound it looks once and answers. When the process ends it answers with what it has found last. When
        `gone` ends, the client went away: raises ClientDisconnect, after a look that is under way.
        """
        if seconds <= 0 or self._is_released or not self._has_room(key_id):
            return await look()
        with self._seat(id, key_id) as waiter, _watch(waiter, seconds, gone):
            # After the registration: an end that this look does not see wakes.
            found = await look()
            while not is_ended(found):
                await waiter.sleep()
                async with self._turns:
                    if waiter.is_gone:
                        raise ClientDisconnect
                    if waiter.is_released:
                        break
                    is_last = waiter.is_late
                    found = await look()
                if is_last:
                    break
            return found

    def hear(self, _: Channel, id: UUID) -> None:
        """What waits for it looks again."""
        for waiter in self._by_id.get(id, ()):
            waiter.wake()

    def wake_all(self) -> None:
        """Everybody looks again: ends may have been missed."""
        for waiter in self._everybody():
            waiter.wake()

    def release(self) -> None:
        """Everybody answers at once; so does who comes later."""
        self._is_released = True
        for waiter in self._everybody():
            waiter.release()

    def _everybody(self) -> Iterator[_Waiter]:
        return (waiter for waiters in self._by_id.values() for waiter in waiters)

    def _has_room(self, key_id: KeyID) -> bool:
        return len(self) < self._most and self._of_key[key_id] < self._most_of_a_key

    @contextmanager
    def _seat(self, id: UUID, key_id: KeyID) -> Iterator[_Waiter]:
        waiter = _Waiter()
        self._by_id.setdefault(id, set()).add(waiter)
        self._of_key[key_id] += 1
        try:
            yield waiter
        finally:
            self._by_id[id].remove(waiter)
            if not self._by_id[id]:
                del self._by_id[id]
            self._of_key[key_id] -= 1
            if not self._of_key[key_id]:
                del self._of_key[key_id]


@contextmanager
def _watch(waiter: _Waiter, seconds: float, gone: Gone) -> Iterator[None]:
    """Within the block the waiter is told that its time is over, and that its client went away."""
    clock = asyncio.get_running_loop().call_later(seconds, waiter.expire)
    watch = asyncio.create_task(gone(), name="client")
    watch.add_done_callback(waiter.leave)
    try:
        yield
    finally:
        clock.cancel()
        watch.cancel()
