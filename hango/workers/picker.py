"""What a worker process does when it is rung: claim as many tries and runs as it has room for, and see each to its end.

One look at a time: a wish that comes during a look asks for another one. Whatever ends makes room and looks again, so
that nobody has to ring once for each try.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from hango import logs
from hango.chain.deps import Deps
from hango.errors import HangoError
from hango.logs import Log
from hango.store.ids import new_id
from hango.workers.cancels import Cancels
from hango.workers.held import Held, HeldJobs, Job
from hango.workers.kinds import Kind, kinds
from hango.workers.leases import Leases
from hango.workers.resources import Resources
from hango.workers.together import Together


class Picker:
    """Of one process, on its one event loop."""

    def __init__(self, deps: Deps) -> None:
        settings = deps.settings
        assert settings.database_url is not None, "resources are open"
        self._deps = deps
        self._owner = new_id()
        self._together = Together(deps)
        self._held = {kind: HeldJobs() for kind in kinds(deps, self._together)}
        lease = settings.context_try_lease
        self._leases = [
            Leases(deps.store, self._owner, held, kind.renew, lease_seconds=lease) for kind, held in self._held.items()
        ]
        self._cancels = Cancels(settings.database_url.reveal(), [*self._held.values()], self._renew_soon)
        self._running: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self._ringers: list[asyncio.Future[None]] = []
        self._stopping = False
        self._looker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with a look: the last worker may have left something. To be called on the loop of the process."""
        for leases in self._leases:
            leases.start()
        self._cancels.start()
        self._wanted.set()
        self._looker = asyncio.create_task(self._look_when_wanted(), name="picker")

    async def ring(self) -> None:
        """Returns when a look that began after the call has ended; the calls go on. Raises what that look raised."""
        if self._stopping:
            return
        looked = asyncio.get_running_loop().create_future()
        self._ringers.append(looked)
        self._wanted.set()
        await looked

    async def stop(self) -> None:
        """Claim nothing more; returns when the last call has ended and is written down.

        When it is cancelled, the calls under way end without that: the reconciler finds them.
        """
        assert self._looker is not None, "it was started"
        self._stopping = True
        self._wanted.set()
        for held_jobs in self._held.values():
            for held in held_jobs:
                held.leave()
        try:
            await asyncio.wait([self._looker])
            while self._running:
                await asyncio.wait(self._running)
        finally:
            left = [self._looker, *self._running]
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            await self._together.close()
            for leases in self._leases:
                await leases.close()
            await self._cancels.close()

    async def _look_when_wanted(self) -> None:
        while not self._stopping:
            await self._wanted.wait()
            self._wanted.clear()
            ringers, self._ringers = self._ringers, []
            failure: Exception | None = None
            try:
                await self._look()
            except Exception as error:
                failure = error
            self._answer(ringers, failure)
        self._answer(self._ringers, None)

    async def _look(self) -> None:
        """Claim while there is room and something to claim."""
        while not self._stopping and (room := self._deps.settings.worker_threads - len(self._running)) > 0:
            claimed, more = await self._claim(room)
            for kind, one in claimed:
                self._begin(kind, one)
            if not more:
                return

    async def _claim(self, most: int) -> tuple[list[tuple[Kind, Job]], bool]:
        """Of every kind what there is room for, in one transaction; whether there may be more to claim."""
        settings = self._deps.settings
        claimed: list[tuple[Kind, Job]] = []
        is_more = False
        async with self._deps.store.system() as scope:
            for kind in self._held:
                if len(claimed) < most:
                    found, more = await kind.claim(
                        scope,
                        self._owner,
                        lease_seconds=settings.context_try_lease,
                        cap=settings.context_try_tenant_running,
                        most=most - len(claimed),
                    )
                    claimed += [(kind, one) for one in found]
                    is_more = is_more or more
        return claimed, is_more

    def _begin(self, kind: Kind, claimed: Job) -> None:
        held = self._held[kind].take(claimed)
        if self._stopping:
            held.leave()
        task = asyncio.create_task(self._see_through(kind, held), name=kind.name)
        self._running.add(task)
        task.add_done_callback(partial(self._ended, kind, held))

    async def _see_through(self, kind: Kind, held: Held[Any]) -> None:
        wait_seconds = await kind.see_through(held)
        if wait_seconds is not None:
            asyncio.get_running_loop().call_later(wait_seconds, self._wanted.set)

    def _ended(self, kind: Kind, held: Held[Any], task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._held[kind].let_go(held)
        self._wanted.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logs.error(Log.UNEXPECTED, error, process="worker", job_id=held.claimed.id)

    def _renew_soon(self) -> None:
        for leases in self._leases:
            leases.renew_soon()

    def _answer(self, ringers: list[asyncio.Future[None]], failure: Exception | None) -> None:
        """Tell those who rang that it was looked, or what went wrong; if nobody rang, the log hears that."""
        if failure is not None and not ringers:
            event = Log.UNAVAILABLE if isinstance(failure, HangoError) else Log.UNEXPECTED
            logs.warning(event, failure, process="worker")
        for ringer in ringers:
            if ringer.done():
                continue  # cancelled
            if failure is None:
                ringer.set_result(None)
            else:
                ringer.set_exception(failure)


def make_picker(resources: Resources) -> Picker:
    """The picker of a worker process, at work."""
    made = Picker(resources.deps)
    made.start()
    return made
