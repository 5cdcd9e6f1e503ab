"""Signs of life: one statement for all jobs of a kind, three times in a lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from hango import logs
from hango.errors import Unavailable
from hango.logs import Log
from hango.store.connection import Store, SystemScope
from hango.workers.held import HeldJobs
from hango.workers.outcomes import Ending

PER_LEASE: Final = 3

# (scope, owner, claims, lease_seconds) -> the ids that the process still has, and whether each shall be cancelled.
Renew = Callable[[SystemScope, UUID, Any, float], Awaitable[Mapping[Any, bool]]]


class Leases:
    """Renews the leases of the held jobs, and ends their calls when somebody else has them or wants that.

    When no renewal gets through for a whole lease, others may take them: all calls are ended.
    """

    def __init__(self, store: Store, owner: UUID, held: HeldJobs, renew: Renew, *, lease_seconds: float) -> None:
        self._store = store
        self._owner = owner
        self._held = held
        self._renew_all = renew
        self._lease_seconds = lease_seconds
        self._pause = lease_seconds / PER_LEASE
        self._soon = asyncio.Event()
        self._renewals: set[asyncio.Task[bool]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="leases")

    async def close(self) -> None:
        tasks = [*self._renewals, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def renew_soon(self) -> None:
        """Look now what has become of the held jobs."""
        self._soon.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        silent = 0
        while True:
            self._soon.clear()
            next_one = loop.time() + self._pause
            silent = 0 if await self._renewed() else silent + 1
            if silent == PER_LEASE:
                for held in self._held:
                    held.end(Ending.GIVEN_UP)
                silent = 0
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_one):
                    await self._soon.wait()

    async def _renewed(self) -> bool:
        """Whether PostgreSQL has heard of us within a third of a lease.

        A renewal that hangs is left to itself, since to cancel it could take longer than it does; the next one goes
        over another connection.
        """
        if len(self._renewals) < PER_LEASE:
            self._renewals.add(asyncio.create_task(self._renew(), name="renewal"))
        done, self._renewals = await asyncio.wait(
            self._renewals, timeout=self._pause, return_when=asyncio.FIRST_COMPLETED
        )
        return any(one.result() for one in done)

    async def _renew(self) -> bool:
        asked = sorted(self._held, key=lambda held: held.claimed.id)
        if not asked:
            return True
        try:
            async with self._store.system() as scope:
                kept = await self._renew_all(
                    scope,
                    self._owner,
                    [(held.claimed.id, held.claimed.attempt) for held in asked],
                    self._lease_seconds,
                )
        except Exception as error:
            unavailable = isinstance(error, Unavailable)
            (logs.warning if unavailable else logs.error)(
                Log.UNAVAILABLE if unavailable else Log.UNEXPECTED, error, process="worker"
            )
            return False
        for held in asked:
            if held.claimed.id not in kept:
                held.end(Ending.GIVEN_UP)
            elif kept[held.claimed.id]:
                held.end(Ending.CANCELLED)
        return True
