"""What PostgreSQL tells at a commit: one LISTEN connection outside the pool, which comes back by itself.

notifications = await Notifications.open(url, [Channel.DONE], heard=..., reconnected=...)
await notifications.close()
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from enum import StrEnum
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

from hango import logs
from hango.errors import Unavailable
from hango.logs import Log
from hango.store.connection import Connection
from hango.store.failures import reduced

# How often the connection is asked for a sign of life: so long a dead one is not noticed. It costs a statement.
CHECK_SECONDS = 2.0
# How long PostgreSQL may take to let somebody in or to answer: far over what it takes when it is well.
ANSWER_SECONDS = 2.0
# Between attempts to connect: short after a restart of PostgreSQL, doubled up to what does not burden one that is down.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


class Channel(StrEnum):
    """Every channel that hango notifies. The payload is the id as text."""

    DONE = "done"  # a try, a batch or a run has reached its end
    CANCEL = "cancel"  # somebody asked for the end of a try


class Notifications:
    """Calls `heard` for each notification of its channels, in the order of their commits.

    What is told while the connection is away is lost: `reconnected` is called each time it listens again, and then
    everybody has to look for themselves. Both are called on the event loop; they must return at once and never raise.
    """

    def __init__(
        self,
        url: str,
        channels: Sequence[Channel],
        *,
        heard: Callable[[Channel, UUID], None],
        reconnected: Callable[[], None],
        check_seconds: float,
        answer_seconds: float,
    ) -> None:
        self._url = url
        self._channels = channels
        self._heard = heard
        self._reconnected = reconnected
        self._check_seconds = check_seconds
        self._answer_seconds = answer_seconds
        self._closing = False
        self._conn: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        channels: Sequence[Channel],
        *,
        heard: Callable[[Channel, UUID], None],
        reconnected: Callable[[], None],
        check_seconds: float = CHECK_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Notifications:
        """Afterwards it listens. Raises Unavailable when PostgreSQL does not answer in time."""
        made = cls(
            url,
            channels,
            heard=heard,
            reconnected=reconnected,
            check_seconds=check_seconds,
            answer_seconds=answer_seconds,
        )
        try:
            conn = await made._connect()
        except psycopg.Error as error:
            raise reduced(error) from None
        except TimeoutError:
            raise Unavailable("The database cannot be reached. Try again in a moment.") from None
        made._task = asyncio.create_task(made._listen(conn), name="notifications")
        return made

    async def close(self) -> None:
        """Ends at once, also while PostgreSQL is silent."""
        self._closing = True
        if self._task is None:
            return
        if self._conn is not None:
            # Not cancelled: psycopg would first ask PostgreSQL to end the statement, and wait for it.
            _hang_up(self._conn)
        else:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _listen(self, conn: Connection) -> None:
        """Until it is closed."""
        while True:
            cause = await self._hear(conn)
            if self._closing:
                return
            logs.warning(Log.NOTIFICATIONS_AWAY, cause)
            conn = await self._connect_again()
            self._reconnected()

    async def _hear(self, conn: Connection) -> Exception:
        """Pass on what is told on the connection until it breaks; why it did."""
        try:
            while True:
                async with aclosing(conn.notifies(timeout=self._check_seconds)) as told:
                    async for one in told:
                        id = _id(one.payload)
                        if id is not None:
                            self._heard(Channel(one.channel), id)
                await self._say(conn, "select 1")
        except Exception as error:  # whatever it was: a process that has ceased to listen leaves its waiters asleep
            return error
        finally:
            await self._drop(conn)

    async def _connect_again(self) -> Connection:
        """Tries until it listens, or raises CancelledError when it is closed before."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self._connect()
            except Exception:  # said once, when the connection was lost
                if self._closing:
                    raise asyncio.CancelledError from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _connect(self) -> Connection:
        """A connection that listens. Raises psycopg.Error or TimeoutError."""
        async with asyncio.timeout(self._answer_seconds):
            conn: Connection = await AsyncConnection.connect(
                self._url, autocommit=True, application_name="hango_notifications"
            )
        self._conn = conn
        try:
            for channel in self._channels:
                await self._say(conn, f"listen {channel}")
        except BaseException:
            await self._drop(conn)
            raise
        return conn

    async def _say(self, conn: Connection, statement: str) -> None:
        """Run a statement that is answered at once. Raises OperationalError when it is not."""
        late = asyncio.get_running_loop().call_later(self._answer_seconds, _hang_up, conn)
        try:
            await conn.execute(statement.encode())
        finally:
            late.cancel()

    async def _drop(self, conn: Connection) -> None:
        self._conn = None
        await conn.close()


def _id(payload: str) -> UUID | None:
    """None for what is no id: whoever may connect may notify."""
    try:
        return UUID(payload)
    except ValueError:
        return None


def _hang_up(conn: Connection) -> None:
    """End a connection at its socket: what waits on it fails at once. It still has to be closed."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(conn.fileno())) as twin:
        twin.shutdown(socket.SHUT_RDWR)
