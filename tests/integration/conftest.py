"""What tests of the store and the API ask for: a store and an application on the worker's database, and tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hango.config import Settings
from hango.domain import Principal
from hango.store.connection import Store
from tests.conftest import Database
from tests.people import Api, Person, serve
from tests.rows import make_tenant


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """A store that connects as the app role."""
    opened = await Store.open(database.app_dsn, max_size=4)
    yield opened
    await opened.close()


@pytest.fixture
async def admin(store: Store) -> Principal:
    """The admin of a tenant of this test alone."""
    return await make_tenant(store)


@pytest.fixture
async def stranger(store: Store) -> Principal:
    """The admin of another tenant."""
    return await make_tenant(store)


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    """The application in this process, called without a socket."""
    async with serve(settings) as running:
        yield running


@pytest.fixture
async def caller(api: Api) -> Person:
    """Who calls the API: the admin of a tenant of this test alone."""
    return await api.admin()
