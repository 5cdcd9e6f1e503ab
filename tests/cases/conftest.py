"""The worlds that cases share."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from hango.config import Settings
from tests.cases.try_world import TryWorld, a_try_world
from tests.cases.world import World, a_world
from tests.conftest import Database
from tests.services import Services, clone_database, drop_database


@pytest.fixture(scope="session")
def world(settings: Settings, database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """API processes, a provider and two tenants, for all cases of a worker."""
    with a_world(settings, database, tmp_path_factory.mktemp("cases")) as made:
        yield made


@pytest.fixture(scope="session")
def world_of_tries(
    settings: Settings, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TryWorld]:
    """One for all tests of a worker, with a database of its own: its `hango worker` claims whatever waits there."""
    name = f"hango_{secrets.token_hex(8)}"
    clone_database(services, name)
    with a_try_world(settings, Database.of(services, name), tmp_path_factory.mktemp("tries")) as made:
        yield made
    drop_database(services, name)


@pytest.fixture
def try_world(world_of_tries: TryWorld) -> TryWorld:
    """It, as at its start: a worker is there, and the provider answers."""
    world_of_tries.ready()
    return world_of_tries
