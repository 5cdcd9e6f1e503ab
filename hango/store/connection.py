"""The pool and the transaction: who is asking is part of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from hango.domain import Principal, TenantID, UserID
from hango.errors import HangoError
from hango.store.failures import StatementRefused, reduced

Connection = AsyncConnection[Any]
Row = TypeVar("Row")

# A request that cannot get a connection in this time is told so, before its own caller gives up.
POOL_TIMEOUT_SECONDS = 5.0
# No statement of the product comes near the first limit; the second ends a transaction whose process hangs. Every
# statement goes by a key, so one plan fits all values: planning the base of a request takes longer than reading it.
_SETTINGS = (
    b"set timezone = 'UTC'; set statement_timeout = '30s'; set idle_in_transaction_session_timeout = '5min';"
    b" set plan_cache_mode = 'force_generic_plan'"
)

# A server that vanishes without a word is noticed within half a minute, not when TCP gives up. In seconds, the last one
# in milliseconds; a socket in the file system needs none of it.
_SIGNS_OF_LIFE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

_WRITE = "begin"
_READ = "begin isolation level repeatable read read only"


@dataclass(frozen=True, slots=True)
class Scope:
    """An open transaction of one principal: row level security lets it see and write its tenant's rows
    alone."""

    conn: Connection
    principal: Principal

    @property
    def tenant_id(self) -> TenantID:
        return self.principal.tenant_id

    @property
    def user_id(self) -> UserID:
        return self.principal.user_id

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """What fails inside is undone alone, and the transaction goes on."""
        try:
            async with self.conn.transaction():
                yield
        except psycopg.Error as error:
            raise reduced(error) from None


@dataclass(frozen=True, slots=True)
class SystemScope:
    """An open transaction of nobody, for the few queries of system.py that cannot name a tenant."""

    conn: Connection

    async def ping(self) -> None:
        """Ask PostgreSQL for a sign of life, on this transaction."""
        await self.conn.execute("select 1")

    @asynccontextmanager
    async def act_as(self, principal: Principal) -> AsyncIterator[Scope]:
        """A scope on the same transaction: what is done unscoped and what is done in it is committed
        together.

        The system scope must not be used inside the block.
        """
        await self.conn.execute(f"set local role none; {_as_tenant(principal)}".encode(), prepare=False)
        yield Scope(self.conn, principal)
        # Not in a finally: after an error the transaction is over anyway.
        await self.conn.execute(b"set local app.t = ''; set local role hango_system", prepare=False)

    @asynccontextmanager
    async def attempt_as(self, principal: Principal) -> AsyncIterator[Scope]:
        """Like `act_as`, for one of many: what fails inside is undone alone, and the transaction goes on."""
        async with Scope(self.conn, principal).attempt(), self.act_as(principal) as own:
            yield own


class Store:
    """A pool of connections. Each `async with` of `begin`, `read` or `system` is one transaction.

    It commits when the block ends and rolls back when it raises. Raises Unavailable when PostgreSQL cannot be
    reached; every error of PostgreSQL leaves the block without the content of a row.
    """

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    @classmethod
    async def open(
        cls, url: str, *, min_size: int = 1, max_size: int = 10, wait_seconds: float = POOL_TIMEOUT_SECONDS
    ) -> Store:
        """Connect. Raises Unavailable when no connection can be made in `wait_seconds`.

        It is also how long a transaction waits for a free connection.
        """
        pool = AsyncConnectionPool[Connection](
            url,
            kwargs={"autocommit": True, "application_name": "hango", "prepare_threshold": 0, **_SIGNS_OF_LIFE},
            min_size=min_size,
            max_size=max_size,
            timeout=wait_seconds,
            configure=_configure,
            open=False,
            name="hango",
        )
        store = cls(pool)
        failure: HangoError | None = None
        try:
            await pool.open(wait=True, timeout=wait_seconds)
        except psycopg.Error as error:
            failure = reduced(error)
        if failure:
            await pool.close()
            raise failure
        return store

    async def close(self) -> None:
        await self._pool.close()

    def begin(self, principal: Principal) -> AbstractAsyncContextManager[Scope]:
        """A transaction that may write."""
        return self._scoped(_WRITE, principal)

    def read(self, principal: Principal) -> AbstractAsyncContextManager[Scope]:
        """A READ ONLY transaction that sees one moment: PostgreSQL refuses every write in it."""
        return self._scoped(_READ, principal)

    @asynccontextmanager
    async def system(self) -> AsyncIterator[SystemScope]:
        """A transaction as hango_system."""
        async with self._transaction(f"{_WRITE}; set local role hango_system") as conn:
            yield SystemScope(conn)

    async def ping(self) -> None:
        """Ask PostgreSQL for a sign of life. Raises Unavailable."""
        async with self._transaction("begin read only") as conn:
            await conn.execute("select 1")

    @asynccontextmanager
    async def _scoped(self, begin: str, principal: Principal) -> AsyncIterator[Scope]:
        async with self._transaction(f"{begin}; {_as_tenant(principal)}") as conn:
            yield Scope(conn, principal)

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Connection]:
        try:
            conn = await self._begun(begin)
            try:
                yield conn
                if conn.info.transaction_status is TransactionStatus.INERROR:
                    # PostgreSQL would answer this commit with a rollback and no error: nothing may be lost in silence.
                    raise StatementRefused("A statement failed earlier in this transaction; nothing of it was kept.")
                await conn.commit()
            except BaseException:
                await _roll_back(conn)
                raise
            finally:
                await self._pool.putconn(conn)
        except psycopg.Error as error:
            raise reduced(error) from None

    async def _begun(self, begin: str) -> Connection:
        """A connection with the transaction begun: all of `begin` is one round trip.

        After a restart of PostgreSQL every waiting connection is dead; nothing has been done on it, so the
        next one is taken.
        """
        for _ in range(self._pool.max_size):
            conn = await self._pool.getconn()
            try:
                await conn.execute(begin.encode(), prepare=False)  # several statements cannot be prepared as one
            except BaseException as error:
                await _roll_back(conn)
                await self._pool.putconn(conn)
                if not (isinstance(error, psycopg.OperationalError) and conn.closed):
                    raise
            else:
                return conn
        raise psycopg.OperationalError


def one(row: Row | None) -> Row:
    """The row of a statement that always returns one, such as an insert without a condition."""
    if row is None:
        raise StatementRefused("A statement that always returns a row returned none.")
    return row


async def _roll_back(conn: Connection) -> None:
    # A broken connection has rolled back by itself; the pool throws it away.
    with suppress(psycopg.Error):
        await conn.rollback()


async def _configure(conn: Connection) -> None:
    await conn.execute(_SETTINGS, prepare=False)


def _as_tenant(principal: Principal) -> str:
    # A setting takes no parameter. The text of a UUID is digits and dashes, whatever it was made of.
    return f"set local app.t = '{UUID(int=principal.tenant_id.int)}'"
