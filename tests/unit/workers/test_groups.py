"""What is asked for one by one and done together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from hango.errors import NotFound, Unavailable
from hango.workers.groups import Groups


@dataclass
class Doubling:
    """Doubles numbers, once it may. A negative one spoils its whole group, and zero says of itself that it is none."""

    may: asyncio.Event = field(default_factory=asyncio.Event)
    groups: list[list[int]] = field(default_factory=list)

    async def __call__(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.groups.append(list(items))
        await self.may.wait()
        if any(item < 0 for item in items):
            raise ValueError("a negative number")
        return [item * 2 if item else NotFound("zero") for item in items]


@pytest.fixture
def doubling() -> Doubling:
    return Doubling()


def start(groups: Groups[str, int, int], key: str, *items: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(groups.ask(key, item)) for item in items]


async def test_one_alone_is_done_at_once(doubling: Doubling) -> None:
    """Nobody waits for company."""
    doubling.may.set()
    groups = Groups[str, int, int](doubling, most=9)

    assert [await groups.ask("a", 1), await groups.ask("a", 2)] == [2, 4]
    assert doubling.groups == [[1], [2]]


async def test_what_comes_meanwhile_is_the_next_group(doubling: Doubling) -> None:
    """A group is at most so large and in order; the next begins when it is done; another key has groups of its own."""
    groups = Groups[str, int, int](doubling, most=3)
    first = start(groups, "a", 1)
    await asyncio.sleep(0)
    later, other = start(groups, "a", 2, 3, 4, 5), start(groups, "b", 6)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = list(doubling.groups)
    doubling.may.set()
    results = await asyncio.gather(*first, *later, *other)

    assert before == [[1], [6]]
    assert doubling.groups == [[1], [6], [2, 3, 4], [5]]
    assert results == [2, 4, 6, 8, 10, 12]


async def test_a_fault_of_one_is_not_the_others(doubling: Doubling) -> None:
    """A spoilt group is done once more, each alone; what is said of one item is for whoever asked for it."""
    doubling.may.set()
    groups = Groups[str, int, int](doubling, most=9)
    results = await asyncio.gather(*start(groups, "a", 1, -1, 0, 2), return_exceptions=True)

    assert [result if isinstance(result, int) else type(result) for result in results] == [2, ValueError, NotFound, 4]
    assert doubling.groups == [[1, -1, 0, 2], [1], [-1], [0], [2]]


async def test_an_absence_of_the_database_is_for_all(doubling: Doubling) -> None:
    """Unavailable: nobody knows what was done, so nothing is done again here, and the next group has its own chance."""
    calls = 0

    async def away(items: Sequence[int]) -> Sequence[int | Exception]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Unavailable
        return list(items)

    groups = Groups[str, int, int](away, most=9)
    results = await asyncio.gather(*start(groups, "a", 1, 2), return_exceptions=True)

    assert [type(result) for result in results] == [Unavailable, Unavailable]
    assert (await groups.ask("a", 3), calls) == (3, 2)


async def test_who_has_gone_takes_nobody_along(doubling: Doubling) -> None:
    """One that is cancelled while its group is at work leaves the others their results."""
    groups = Groups[str, int, int](doubling, most=9)
    gone, stays = start(groups, "a", 1, 2)
    await asyncio.sleep(0)
    gone.cancel()
    doubling.may.set()

    assert await stays == 4
    assert gone.cancelled()
