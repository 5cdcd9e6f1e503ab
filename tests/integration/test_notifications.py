"""LISTEN: heard with the commit, back by itself after every kind of loss, gone when closed."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
import structlog
from psycopg import AsyncConnection, conninfo

from hango import logs
from hango.config import LogFormat, Settings
from hango.errors import Unavailable
from hango.store.notifications import Channel, Notifications
from tests.conftest import Database
from tests.faults.proxy import Proxy, proxying

BOTH = (Channel.DONE, Channel.CANCEL)
NAME = "hango_notifications"
QUICK = 0.2  # seconds of silence in these tests
STEP_SECONDS = 20  # none of these states is long in coming


@dataclass
class Ear:
    """What was heard, in order; None stands for a reconnection."""

    heard: asyncio.Queue[tuple[Channel, UUID] | None] = field(default_factory=asyncio.Queue)

    def hear(self, channel: Channel, id: UUID) -> None:
        self.heard.put_nowait((channel, id))

    def reconnected(self) -> None:
        self.heard.put_nowait(None)

    async def next(self) -> tuple[Channel, UUID] | None:
        async with asyncio.timeout(STEP_SECONDS):
            return await self.heard.get()


@asynccontextmanager
async def listening(
    url: str, channels: tuple[Channel, ...] = BOTH, *, check_seconds: float = QUICK, answer_seconds: float = 2.0
) -> AsyncIterator[Ear]:
    ear = Ear()
    opened = await Notifications.open(
        url,
        channels,
        heard=ear.hear,
        reconnected=ear.reconnected,
        check_seconds=check_seconds,
        answer_seconds=answer_seconds,
    )
    try:
        yield ear
    finally:
        await opened.close()


@asynccontextmanager
async def speaking(database: Database) -> AsyncIterator[AsyncConnection]:
    conn = await AsyncConnection.connect(database.app_dsn)
    try:
        yield conn
    finally:
        await conn.close()


async def tell(conn: AsyncConnection, channel: str, payload: str) -> None:
    await conn.execute("select pg_notify(%s, %s)", (channel, payload))


@asynccontextmanager
async def proxied(database: Database) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the database's socket, and the address that leads through it."""
    folder = conninfo.conninfo_to_dict(database.app_dsn)["host"]
    async with proxying(f"{folder}/.s.PGSQL.5432") as proxy:
        yield proxy, conninfo.make_conninfo(database.app_dsn, host="127.0.0.1", port=proxy.port)


def terminate(database: Database) -> int:
    """End the listening connections of this database; how many there were."""
    with psycopg.connect(database.superuser_dsn) as conn:
        ended = conn.execute(
            "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity"
            " where datname = current_database() and application_name = %s",
            (NAME,),
        ).fetchone()
    return ended[0] if ended else 0


async def test_it_is_heard_with_the_commit_and_not_before(database: Database) -> None:
    """A notification comes with the commit of its transaction: what is rolled back or still open is not heard."""
    early, late, lost = uuid4(), uuid4(), uuid4()
    async with listening(database.app_dsn) as ear, speaking(database) as slow, speaking(database) as quick:
        await tell(slow, "done", str(late))
        await tell(quick, "done", str(lost))
        await quick.rollback()
        await tell(quick, "cancel", str(early))
        await quick.commit()
        first = await ear.next()
        await slow.commit()
        second = await ear.next()

    assert [first, second] == [(Channel.CANCEL, early), (Channel.DONE, late)]
    assert ear.heard.empty()


async def test_what_is_no_id_and_other_channels_are_passed_over(database: Database) -> None:
    """Whoever may connect may notify; a payload that is no id is nobody's, and harms nobody."""
    mine = uuid4()
    async with listening(database.app_dsn, (Channel.DONE,)) as ear, speaking(database) as conn:
        for channel, payload in (("done", ""), ("done", "drop table"), ("cancel", str(uuid4())), ("done", str(mine))):
            await tell(conn, channel, payload)
        await conn.commit()

        assert await ear.next() == (Channel.DONE, mine)
    assert ear.heard.empty()


async def test_it_hears_while_it_asks_for_signs_of_life(database: Database) -> None:
    """Nothing is lost to the check of the connection: a notification that comes during it is heard."""
    sent = [uuid4() for _ in range(300)]
    async with listening(database.app_dsn, check_seconds=0) as ear, speaking(database) as conn:
        for one in sent:
            await tell(conn, "done", str(one))
            await conn.commit()
        heard = [await ear.next() for _ in sent]

    assert heard == [(Channel.DONE, one) for one in sent]


async def test_it_listens_again_after_its_backend_was_ended(fresh_database: Database) -> None:
    """It reconnects by itself, says so once it listens, and hears what is told from then on."""
    after = uuid4()
    async with listening(fresh_database.app_dsn) as ear, speaking(fresh_database) as conn:
        assert terminate(fresh_database) == 1
        assert await ear.next() is None
        await tell(conn, "done", str(after))
        await conn.commit()

        assert await ear.next() == (Channel.DONE, after)


async def test_it_comes_back_when_postgres_comes_back(database: Database) -> None:
    """While connections are refused it goes on trying; afterwards it says once that it listens again."""
    after = uuid4()
    async with proxied(database) as (proxy, url), listening(url) as ear, speaking(database) as conn:
        await proxy.refuse()
        await tell(conn, "done", str(uuid4()))
        await conn.commit()
        await proxy.accept()
        assert await ear.next() is None
        await tell(conn, "done", str(after))
        await conn.commit()

        assert await ear.next() == (Channel.DONE, after)


async def test_a_silent_connection_is_replaced(database: Database) -> None:
    """A connection that neither answers nor ends is noticed, and so is an attempt that meets silence."""
    after = uuid4()
    async with proxied(database) as (proxy, url), listening(url, answer_seconds=1) as ear, speaking(database) as conn:
        proxy.blackhole()
        async with asyncio.timeout(STEP_SECONDS):
            await proxy.until(lambda proxy: proxy.taken == 3)  # the silent one, one that met silence, one more
        proxy.pass_all()
        assert await ear.next() is None
        await tell(conn, "done", str(after))
        await conn.commit()
        assert await ear.next() == (Channel.DONE, after)


@pytest.mark.parametrize("state", ["listening", "silent", "refused"])
async def test_closing_ends_at_once_and_leaves_nothing(fresh_database: Database, state: str) -> None:
    """It ends with its process: no connection, no task and no wait is left, whatever PostgreSQL does."""
    tasks = asyncio.all_tasks()
    async with proxied(fresh_database) as (proxy, url):
        opened = await Notifications.open(url, BOTH, heard=Ear().hear, reconnected=Ear().reconnected, check_seconds=30)
        if state == "silent":
            proxy.blackhole()
        if state == "refused":
            await proxy.refuse()
        async with asyncio.timeout(1):
            await opened.close()
        await opened.close()

    assert asyncio.all_tasks() == tasks
    assert terminate(fresh_database) == 0


async def test_closing_while_it_waits_for_a_sign_of_life(database: Database) -> None:
    """The end does not wait for an answer that will not come."""
    async with proxied(database) as (proxy, url):
        opened = await Notifications.open(
            url, BOTH, heard=Ear().hear, reconnected=Ear().reconnected, check_seconds=QUICK, answer_seconds=30
        )
        proxy.blackhole()
        async with asyncio.timeout(STEP_SECONDS):
            await proxy.until(lambda proxy: proxy.kept == 1)  # the question is on its way
        async with asyncio.timeout(1):
            await opened.close()


async def test_without_postgres_it_does_not_open(tmp_path: Path) -> None:
    """A process that cannot listen says so at its start, with an error that may pass."""
    ear = Ear()
    with pytest.raises(Unavailable):
        await Notifications.open(
            f"postgresql://hango_app@/hango?host={tmp_path}", BOTH, heard=ear.hear, reconnected=ear.reconnected
        )


async def test_a_silent_postgres_does_not_open(database: Database) -> None:
    """A server that takes the connection and says nothing is unavailable too, in bounded time."""
    async with proxied(database) as (proxy, url):
        proxy.blackhole()
        with pytest.raises(Unavailable):
            async with asyncio.timeout(STEP_SECONDS), listening(url, answer_seconds=0.1):
                pass


async def test_one_outage_is_one_line(database: Database, settings: Settings) -> None:
    """An operator reads once that notifications are away, with the class of the cause and nothing of its text."""
    written = io.StringIO()
    logs.setup(replace(settings, log_format=LogFormat.JSON), written)
    try:
        async with proxied(database) as (proxy, url), listening(url) as ear:
            await proxy.refuse()
            await proxy.accept()
            await ear.next()
    finally:
        structlog.reset_defaults()

    (line,) = [json.loads(line) for line in written.getvalue().splitlines()]
    assert (line["event"], line["level"], line["error"]) == (
        "notifications_away",
        "warning",
        "psycopg.OperationalError",
    )
    assert "127.0.0.1" not in written.getvalue()
