"""The roles of the app on a server that has none yet: a cluster of this test's own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.domain import Principal
from hango.migrations import runner
from hango.migrations.roles import RolesMissing
from hango.store import users
from hango.store.connection import Store
from tests.rows import make_tenant

DATABASES = ["one", "two", "three", "four"]


@pytest.fixture
def cluster() -> Iterator[EmbeddedPostgres]:
    """A server without a role of hango, with four databases of an ordinary owner."""
    # Not pytest's own folder: as root nobody else may enter that.
    home = Path(tempfile.mkdtemp(prefix="hango-roles-"))
    with EmbeddedPostgres(home, durable=False) as service:
        with psycopg.connect(service.url, autocommit=True) as conn:
            conn.execute("create role ordinary login")
            for name in DATABASES:
                conn.execute(f"create database {name} owner ordinary".encode())
        yield service
    shutil.rmtree(home)


def change_owner(cluster: EmbeddedPostgres, power: str) -> None:
    with psycopg.connect(cluster.url, autocommit=True) as conn:
        conn.execute(f"alter role ordinary {power}".encode())


async def use(url: str) -> Principal:
    """Make a tenant as the app: needs every role and grant."""
    store = await Store.open(url, max_size=1)
    try:
        admin = await make_tenant(store)
        async with store.read(admin) as scope:
            assert [user.id for user in (await users.list_all(scope)).data] == [admin.user_id]
    finally:
        await store.close()
    return admin


async def test_roles_are_made_when_missing_and_allowed(cluster: EmbeddedPostgres) -> None:
    """An owner that may not make roles is told what to have done; one that may makes them, once for all databases."""
    urls = [cluster.url_of("ordinary", name) for name in DATABASES]
    with pytest.raises(RolesMissing) as raised:
        runner.up(urls[0])
    assert str(raised.value) == (
        "The database role that migrates may not create role hango_app: have an administrator of the server do it."
    )

    change_owner(cluster, "createrole")
    with ThreadPoolExecutor(len(urls)) as pool:
        done = list(pool.map(runner.up, urls))
    assert done == [[migration.name for migration in runner.load()]] * len(urls)
    for name in DATABASES:
        await use(cluster.url_of("hango_app", name))

    change_owner(cluster, "nocreaterole")
    assert runner.down(urls[0], 0) != []
    assert runner.up(urls[0]) != []


async def test_an_app_that_connects_as_the_owner_keeps_its_walls(cluster: EmbeddedPostgres) -> None:
    """With one role for all, row level security still binds: it is forced, and the owner is no superuser."""
    change_owner(cluster, "createrole")
    url = cluster.url_of("ordinary", DATABASES[0])
    runner.up(url)

    await use(url)

    with psycopg.connect(url) as conn:
        assert conn.execute("select count(*) from users").fetchone() == (0,)
