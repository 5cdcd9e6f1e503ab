"""Cancels that take effect at once: PostgreSQL tells of them. Without it the next renewal of the lease does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from hango.errors import Unavailable
from hango.store.notifications import Channel, Notifications
from hango.workers.held import HeldJobs
from hango.workers.outcomes import Ending

RETRY_SECONDS: Final = 1.0


class Cancels:
    """Ends the calls of held jobs that somebody cancels. `missed` is called when cancels may have gone unheard."""

    def __init__(self, database_url: str, held: Sequence[HeldJobs], missed: Callable[[], None]) -> None:
        self._url = database_url
        self._held = held
        self._missed = missed
        self._listening: Notifications | None = None
        self._opening: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._opening = asyncio.create_task(self._open(), name="cancels")

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._listening is not None:
            await self._listening.close()

    async def _open(self) -> None:
        while True:
            try:
                self._listening = await Notifications.open(
                    self._url, [Channel.CANCEL], heard=self._heard, reconnected=self._missed
                )
            except Unavailable:  # whoever claims and renews says it
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._missed()
                return

    def _heard(self, _: Channel, id: UUID) -> None:
        for jobs in self._held:
            if (held := jobs.get(id)) is not None:
                held.end(Ending.CANCELLED)
