"""What is asked for one by one and done together: whatever comes while a group is at work makes up the next one.

One that comes alone is done at once; the busier it gets, the larger the groups. Knows nothing of tries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from hango.errors import Unavailable

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")


class Groups(Generic[Key, Item, Result]):
    """`do` gets at most `most` items of one key and returns a result, or what went wrong, for each in their order.

    When it raises, that counts for all of them; unless PostgreSQL is away, each of several is done once more, alone:
    a fault of one must not become the others'. So what `do` raises must have left nothing behind.
    """

    def __init__(self, do: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]], *, most: int) -> None:
        self._do = do
        self._most = most
        self._waiting: dict[Key, deque[tuple[Item, asyncio.Future[Result]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, key: Key, item: Item) -> Result:
        """Its result. Raises what went wrong with it."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if key in self._waiting:
            self._waiting[key].append((item, future))
        else:
            self._waiting[key] = deque([(item, future)])
            task = asyncio.create_task(self._work(key), name="group")
            self._tasks.add(task)  # or nobody would hold it
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _work(self, key: Key) -> None:
        waiting = self._waiting[key]
        while waiting:
            group = [waiting.popleft() for _ in range(min(self._most, len(waiting)))]
            for (_, future), result in zip(group, await self._results([item for item, _ in group]), strict=True):
                if future.done():
                    continue  # whoever asked has gone
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        del self._waiting[key]

    async def _results(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return await self._do(items)
        except Unavailable as error:
            return [error] * len(items)
        except Exception as error:
            if len(items) == 1:
                return [error]
            return [result for item in items for result in await self._results([item])]
