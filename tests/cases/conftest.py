"""The world that cases share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hango.config import Settings
from tests.cases.world import World, a_world
from tests.conftest import Database


@pytest.fixture(scope="session")
def world(settings: Settings, database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """API processes, a provider and two tenants, for all cases of a worker."""
    with a_world(settings, database, tmp_path_factory.mktemp("cases")) as made:
        yield made
