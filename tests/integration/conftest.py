"""What tests of the store and the API ask for: a store and an application on the worker's database, and tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hango.config import SecretUrl, Settings
from hango.domain import Principal
from hango.store.connection import Store
from tests.conftest import Database
from tests.people import Api, Person, serve
from tests.picking import Asker, Work, asking, make_asker, open_deps, picking
from tests.providers_server import FakeProvider, chat, fake_provider, says
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


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    """A provider that says one sentence, until a test tells it something else."""
    async with fake_provider(says(chat("In drawer 4."))) as running:
        yield running


@pytest.fixture
def work_settings(settings: Settings, fresh_database: Database, fake: FakeProvider) -> Settings:
    """The fake as provider `openai`, and a database of this test alone: a picker claims across tenants."""
    return replace(asking(settings, fake), database_url=SecretUrl(fresh_database.app_dsn))


@pytest.fixture
async def work(work_settings: Settings) -> AsyncIterator[Work]:
    """A picker at work."""
    async with open_deps(work_settings) as deps, picking(deps) as running:
        yield running


@pytest.fixture
async def asker(work: Work) -> Asker:
    """Somebody who tries things that `work` claims."""
    return await make_asker(work.deps, await make_tenant(work.store))
