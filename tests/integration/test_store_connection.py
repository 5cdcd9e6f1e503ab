"""Transactions: what commits, what is rolled back, what is said when PostgreSQL fails."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import psycopg
import pytest

from hango.domain import AuditAction, Principal
from hango.errors import HangoError, Unavailable
from hango.store import agents, audit, users
from hango.store.connection import Scope, Store
from hango.store.failures import StatementRefused
from tests.conftest import Database
from tests.rows import make_agent


async def names(store: Store, principal: Principal) -> list[str]:
    async with store.read(principal) as scope:
        return [agent.name for agent in (await agents.list_all(scope, viewer_is_admin=True)).data]


async def test_a_block_that_ends_commits(store: Store, admin: Principal) -> None:
    """One `async with` block is one transaction: it commits when it ends."""
    async with store.begin(admin) as scope:
        await make_agent(scope)

    assert await names(store, admin) == ["an agent"]


async def test_a_block_that_raises_keeps_nothing(store: Store, admin: Principal) -> None:
    """It rolls back when it raises, and the error comes out as it is."""

    async def fail() -> None:
        async with store.begin(admin) as scope:
            await make_agent(scope)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()

    assert await names(store, admin) == []


async def test_a_cancelled_block_keeps_nothing(store: Store, admin: Principal) -> None:
    """A caller that goes away in the middle leaves nothing behind, and its connection works on."""
    inside = asyncio.Event()

    async def work() -> None:
        async with store.begin(admin) as scope:
            await make_agent(scope)
            inside.set()
            await scope.conn.execute("select pg_sleep(60)")

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await names(store, admin) == []


async def test_a_swallowed_failure_does_not_pass_for_a_commit(store: Store, admin: Principal) -> None:
    """After a failed statement PostgreSQL answers a commit with a rollback: that is an error, not a success."""

    async def swallow() -> None:
        async with store.begin(admin) as scope:
            await make_agent(scope)
            with pytest.raises(psycopg.Error):
                await scope.conn.execute("select 1 / 0")

    with pytest.raises(StatementRefused, match="failed earlier in this transaction"):
        await swallow()

    assert await names(store, admin) == []


async def test_a_read_only_transaction_refuses_every_write(store: Store, admin: Principal) -> None:
    """That an inspect writes no row is PostgreSQL's promise."""
    with pytest.raises(StatementRefused, match="sqlstate 25006"):
        async with store.read(admin) as scope:
            await make_agent(scope)


async def test_a_read_sees_one_moment(store: Store, admin: Principal) -> None:
    """What others commit meanwhile does not show in a read that has begun."""
    async with store.read(admin) as scope:
        assert len((await users.list_all(scope)).data) == 1
        async with store.begin(admin) as other:
            await make_agent(other)
        assert (await agents.list_all(scope, viewer_is_admin=True)).data == ()

    assert await names(store, admin) == ["an agent"]


async def refuse_check(scope: Scope) -> None:
    await scope.conn.execute("update users set name = '' where tenant_id = %s", (scope.tenant_id,))


async def refuse_null(scope: Scope) -> None:
    query = "insert into audit_events (tenant_id, id, action, target_kind) values (%s, %s, 'a.canary', 'canary')"
    await scope.conn.execute(query, (scope.tenant_id, scope.user_id))


async def refuse_unique(scope: Scope) -> None:
    query = "insert into users (tenant_id, id, name, role) values (%s, %s, 'canary', 'admin')"
    await scope.conn.execute(query, (scope.tenant_id, scope.user_id))


async def refuse_json(scope: Scope) -> None:
    query = "insert into audit_events (tenant_id, id, action, target_kind, detail) values (%s, %s, 'a.b', 'c', %s)"
    await scope.conn.execute(query, (scope.tenant_id, scope.user_id, "canary"))


async def refuse_value(scope: Scope) -> None:
    await scope.conn.execute("select %s", ("canary\0",))


@pytest.mark.parametrize("refused", [refuse_check, refuse_null, refuse_unique, refuse_json, refuse_value])
async def test_an_error_of_postgres_leaves_without_content(store: Store, admin: Principal, refused: object) -> None:
    """PostgreSQL's errors carry rows; what leaves the store carries the code and the constraint."""
    assert callable(refused)
    with pytest.raises(HangoError) as raised:
        async with store.begin(admin) as scope:
            await refused(scope)

    whole = "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value, StatementRefused)
    assert "canary" not in whole.replace('"canary"', "").replace("'canary'", "")
    assert "an admin" not in repr(raised.value.__context__)
    assert "canary" not in repr(raised.value.__context__)


async def test_the_constraint_is_named(store: Store, admin: Principal) -> None:
    """The code and the constraint are enough to find the fault."""
    with pytest.raises(StatementRefused) as raised:
        async with store.begin(admin) as scope:
            await refuse_check(scope)

    assert str(raised.value) == ("The database refused a statement (sqlstate 23514, constraint users_name_check).")


async def test_a_deferred_constraint_fails_the_commit(store: Store, admin: Principal) -> None:
    """An agent without its version does not pass the commit."""

    async def mislead() -> None:
        async with store.begin(admin) as scope:
            agent = await make_agent(scope)
            await scope.conn.execute(
                "update agents set current_version_id = %s where tenant_id = %s and id = %s",
                (agent.id, scope.tenant_id, agent.id),
            )

    with pytest.raises(StatementRefused, match="agents_current_version_fk"):
        await mislead()


async def test_dead_connections_are_replaced(store: Store, admin: Principal, database: Database) -> None:
    """After a restart of PostgreSQL the next request is served, though every waiting connection is dead."""
    async with store.begin(admin), store.begin(admin), store.begin(admin):
        pass
    with psycopg.connect(database.superuser_dsn) as conn:
        conn.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where datname = current_database() and application_name = 'hango'"
        )

    assert await names(store, admin) == []


async def test_a_connection_that_dies_in_a_transaction_is_unavailable(
    store: Store, admin: Principal, database: Database
) -> None:
    """What breaks in the middle is said to be worth another try, and the pool works on."""

    async def lose() -> None:
        async with store.begin(admin) as scope:
            with psycopg.connect(database.superuser_dsn) as conn:
                conn.execute("select pg_terminate_backend(%s, 10000)", (scope.conn.info.backend_pid,))
            await make_agent(scope)

    with pytest.raises(Unavailable):
        await lose()

    assert await names(store, admin) == []


async def test_a_statement_that_waits_too_long_is_unavailable(store: Store, admin: Principal) -> None:
    """A time limit that runs out may well hold another time."""

    async def wait() -> None:
        async with store.begin(admin) as scope:
            await scope.conn.execute("set local statement_timeout = '10ms'")
            await scope.conn.execute("select pg_sleep(10)")

    with pytest.raises(Unavailable, match="sqlstate 57014"):
        await wait()


async def test_a_database_that_is_away_is_unavailable(tmp_path: Path) -> None:
    """A store cannot be opened without its database; the error is one that a client may retry."""
    with pytest.raises(Unavailable):
        await Store.open(f"postgresql://hango_app@/hango?host={tmp_path}", wait_seconds=0.2)


async def test_an_exhausted_pool_is_unavailable(database: Database, admin: Principal) -> None:
    """Who gets no connection in time is told so."""
    small = await Store.open(database.app_dsn, max_size=1, wait_seconds=0.2)
    try:
        async with small.begin(admin):
            with pytest.raises(Unavailable, match="no free connection"):
                await small.ping()
        await small.ping()
    finally:
        await small.close()


async def test_what_is_done_unscoped_and_scoped_commits_together(store: Store, admin: Principal) -> None:
    """`act_as` works in the system's transaction, and gives the system role back after it."""
    async with store.system() as system:
        async with system.act_as(admin) as scope:
            await audit.record(scope, AuditAction.AGENT_UPDATE, "agent", None, {})
        cursor = await system.conn.execute("select current_user, current_setting('app.t')")
        assert await cursor.fetchone() == ("hango_system", "")

    async with store.read(admin) as scope:
        cursor = await scope.conn.execute("select current_user, current_setting('app.t')")
        assert await cursor.fetchone() == ("hango_app", str(admin.tenant_id))
        assert (await audit.list_all(scope, limit=1)).data[0].action is AuditAction.AGENT_UPDATE
