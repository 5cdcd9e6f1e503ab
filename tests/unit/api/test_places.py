"""Places to work in: how many at once, in which order, and who is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hango.api.places import Place, Places
from hango.errors import Unavailable


class Worker:
    """One request: at work until it is let go."""

    def __init__(self, places: Places) -> None:
        self.place: Place | None = None
        self.refused: Unavailable | None = None
        self.ended = False
        self._let_go = asyncio.Event()
        self._task = asyncio.create_task(self._work(places))

    async def _work(self, places: Places) -> None:
        try:
            async with places.place() as self.place:
                await self._let_go.wait()
        except Unavailable as refused:
            self.refused = refused
        self.ended = True

    async def end(self) -> None:
        self._let_go.set()
        await self._task

    async def give_up(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


@asynccontextmanager
async def at_work(places: Places, number: int) -> AsyncIterator[list[Worker]]:
    workers = [Worker(places) for _ in range(number)]
    await settled()
    yield workers
    for one in workers:
        await one.give_up()


async def settled() -> None:
    """Whatever can go on has gone on."""
    for _ in range(5):
        await asyncio.sleep(0)


def working(workers: list[Worker]) -> list[bool]:
    return [one.place is not None for one in workers]


async def test_so_many_work_and_the_others_wait_their_turn() -> None:
    """Who came first is called in first; one that gave up waiting takes no place."""
    async with at_work(Places(most=2), 5) as workers:
        at_first = working(workers)
        await workers[2].give_up()
        await workers[0].end()
        await settled()
        then = working(workers)
        await workers[1].give_up()
        await settled()

        assert at_first == [True, True, False, False, False]
        assert then == [True, True, False, True, False]
        assert working(workers) == [True, True, False, True, True]


async def test_who_steps_aside_makes_room_and_comes_back_without_a_wait() -> None:
    """Waiting for a client or a try takes no place; who comes back is not made to wait, but nobody new is called in."""
    async with at_work(Places(most=1), 3) as workers:
        first = workers[0].place
        assert first is not None
        with first.aside():
            await settled()
            meanwhile = working(workers)
        await workers[1].end()
        await settled()
        still = working(workers)
        await workers[0].end()
        await settled()

        assert meanwhile == [True, True, False]
        assert still == [True, True, False]
        assert working(workers) == [True, True, True]


async def test_in_a_lasting_crowd_the_last_comes_first_and_the_first_is_refused() -> None:
    """Whoever waited for longer than the bound is refused when somebody else comes, who is then the next."""
    places = Places(most=1, longest_wait=0.01)
    async with at_work(places, 2) as workers:
        await asyncio.sleep(0.02)
        newcomers = [Worker(places), Worker(places)]
        await settled()
        refused = workers[1].refused
        await asyncio.sleep(0.02)
        await workers[0].end()
        await settled()

        assert refused is not None
        assert working(newcomers) == [False, True]
        for one in newcomers:
            await one.give_up()


async def test_a_burst_is_served_however_long_that_takes() -> None:
    """Where nobody else comes, nobody is refused."""
    async with at_work(Places(most=1, longest_wait=0.01), 4) as workers:
        await asyncio.sleep(0.05)
        for _ in workers:
            at_work_now = next(one for one in workers if one.place is not None and not one.ended)
            await at_work_now.end()
            await settled()

        assert [(one.ended, one.refused) for one in workers] == [(True, None)] * 4


async def test_one_that_is_called_in_while_it_gives_up_leaves_its_place() -> None:
    """No place is lost to a request that is cancelled in the moment of its turn."""
    places = Places(most=1)
    async with at_work(places, 2) as workers:
        giving_up = asyncio.create_task(workers[1].give_up())
        await workers[0].end()
        await giving_up
        await settled()

    async with asyncio.timeout(1), places.place():
        assert places.waited() == 0.0
