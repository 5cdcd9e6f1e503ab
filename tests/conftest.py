"""What every test can ask for: databases, Redis, settings, a live API.

database         a migrated database of the worker; make a tenant of your own in it
fresh_database   a migrated database of this test alone, dropped after it
redis_url        a Redis database of the worker
settings         Settings that name `database` and `redis_url`
try_world        an API and a worker as processes, with a database and a Redis of their own and a scripted provider
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from hango.config import Settings
from hango.migrations import cluster
from tests.services import Run, Services, clone_database, drop_database

if TYPE_CHECKING:
    from tests.cases.try_world import TryWorld

RUN = pytest.StashKey[Run]()


@dataclass(frozen=True, slots=True)
class Database:
    """One migrated database, by the two roles that hango uses, and the cluster's superuser."""

    name: str
    owner_dsn: str
    app_dsn: str
    superuser_dsn: str

    @classmethod
    def of(cls, services: Services, name: str) -> Database:
        return cls(
            name,
            owner_dsn=services.database_url(cluster.OWNER, name),
            app_dsn=services.database_url(cluster.APP, name),
            superuser_dsn=services.database_url("postgres", name),
        )


# Other workers and the services share the processors: how long an example takes says nothing.
hypothesis.settings.register_profile("hango", deadline=None)
# Ten times the examples, for `--hypothesis-profile deep`.
hypothesis.settings.register_profile("deep", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("hango")


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)  # pytest-xdist: in a worker, what its controller handed over
    config.stash[RUN] = Run(Path(given["hango_run"])) if given else Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """In the controller of pytest-xdist, before a worker starts."""
    node.workerinput["hango_run"] = str(node.config.stash[RUN].folder)  # type: ignore[attr-defined]  # xdist has no types


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and RUN in config.stash:
        config.stash[RUN].end()


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Services:
    """The run's PostgreSQL and Valkey; started at the first use."""
    return pytestconfig.stash[RUN].services()


@pytest.fixture(scope="session")
def database(services: Services) -> Iterator[Database]:
    """A migrated database that the tests of this worker share: each makes a tenant of its own."""
    name = f"hango_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    clone_database(services, name)
    yield Database.of(services, name)
    drop_database(services, name)


@pytest.fixture
def fresh_database(services: Services) -> Iterator[Database]:
    """A migrated database that nobody else uses, for what looks across tenants or changes the schema."""
    name = f"hango_{secrets.token_hex(8)}"
    clone_database(services, name)
    yield Database.of(services, name)
    drop_database(services, name)


@pytest.fixture(scope="session")
def redis_url(services: Services) -> str:
    """The worker's own database of the run's Valkey."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"{services.redis_url}?db={int(worker) % 16}"


@pytest.fixture(scope="session")
def settings(database: Database, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The defaults on the worker's database and Redis, with a home of its own. Reads no environment."""
    return Settings.from_env(
        {
            "HANGO_HOME": str(tmp_path_factory.mktemp("home")),
            "HANGO_PORT": "0",
            "HANGO_DATABASE_URL": database.app_dsn,
            "HANGO_MIGRATE_DATABASE_URL": database.owner_dsn,
            "HANGO_REDIS_URL": redis_url,
        }
    )


@pytest.fixture(scope="session")
def world_of_tries(
    settings: Settings, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TryWorld]:
    """One for all tests of a worker: its `hango worker` claims whatever waits in its database."""
    from tests.cases.try_world import a_try_world  # it needs Database of this module

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
