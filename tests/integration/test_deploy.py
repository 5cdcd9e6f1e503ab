"""docker-compose.yml, the Dockerfile and deploy/, as far as they can be checked without a container engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from hango import config
from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.migrations import runner
from hango.workers import start_checks
from hango.workers.main import SETTLE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = {"migrate", "api", "worker"}


@pytest.fixture
def cluster() -> Iterator[EmbeddedPostgres]:
    """A cluster of its own: the roles of a deployment have passwords and must not meet those of the tests."""
    home = Path(tempfile.mkdtemp(prefix="hango-home-"))
    with EmbeddedPostgres(home, durable=False) as postgres:
        yield postgres
    shutil.rmtree(home)


def test_every_service_that_is_waited_for_can_say_that_it_is_ready() -> None:
    """`depends_on` names services of the file, with a health check where it waits for health."""
    services = COMPOSE["services"]
    waits = {
        (service, other): condition["condition"]
        for service, definition in services.items()
        for other, condition in definition.get("depends_on", {}).items()
    }

    assert waits == {
        ("migrate", "postgres"): "service_healthy",
        ("api", "migrate"): "service_completed_successfully",
        ("api", "postgres"): "service_healthy",
        ("api", "valkey"): "service_healthy",
        ("worker", "migrate"): "service_completed_successfully",
        ("worker", "postgres"): "service_healthy",
        ("worker", "valkey"): "service_healthy",
        ("collector", "tempo"): "service_started",
        ("collector", "prometheus"): "service_started",
        ("grafana", "tempo"): "service_started",
        ("grafana", "prometheus"): "service_started",
    }
    checks = {name: definition["healthcheck"] for name, definition in services.items() if "healthcheck" in definition}
    assert set(checks) == {"postgres", "valkey", "worker"}
    assert checks["worker"] == {"disable": True}  # the image's is the API's
    assert "HEALTHCHECK" in DOCKERFILE


def test_it_sets_settings_that_exist() -> None:
    """Every HANGO_* variable that the containers get is a setting."""
    given = {
        name for service in OURS for name in COMPOSE["services"][service]["environment"] if name.startswith("HANGO_")
    } | set(re.findall(r"\b(HANGO_\w+)=", DOCKERFILE))

    assert given <= {row.name for row in config.table()}


def test_its_worker_may_start_and_end() -> None:
    """The queue has a password, as a worker asks of a Redis on another machine; the container is ended only after the
    longest model call that is under way."""
    worker = COMPOSE["services"]["worker"]
    given = {name: value for name, value in worker["environment"].items() if name == "HANGO_REDIS_URL"}
    settings = config.Settings.from_env(given)

    start_checks.check(settings)
    assert worker["command"] == ["worker"]
    assert int(worker["stop_grace_period"].removesuffix("s")) > settings.context_try_timeout + SETTLE_SECONDS


def test_the_files_it_mounts_are_in_the_repository() -> None:
    """A bind mount of a file that is not there becomes an empty folder in the container."""
    langfuse = yaml.safe_load((ROOT / "deploy/langfuse.compose.yml").read_text())
    mounts = {
        volume.split(":")[0]
        for compose in (COMPOSE, langfuse)
        for definition in compose["services"].values()
        for volume in definition.get("volumes", [])
        if volume.startswith("./")
    }

    unmounted = {"./deploy/langfuse.compose.yml"}  # for whoever starts the containers
    assert mounts == {f"./{file.relative_to(ROOT)}" for file in (ROOT / "deploy").rglob("*.*")} - unmounted
    assert all((ROOT / mount).is_file() for mount in mounts)


def test_its_roles_can_migrate_and_use_the_database(cluster: EmbeddedPostgres) -> None:
    """What deploy/roles.sh makes is enough for `hango migrate up` as the owner and for the API as the app role."""
    environment = {
        "PATH": f"{cluster.bin_dir}:{os.environ['PATH']}",
        "PGHOST": str(cluster.socket_folder),
        "POSTGRES_USER": "postgres",
        "HANGO_OWNER_PASSWORD": "owner's",
        "HANGO_APP_PASSWORD": "app",
    }
    subprocess.run(["sh", ROOT / "deploy/roles.sh"], check=True, env=environment)

    applied = runner.up(cluster.url_of("hango_owner", "hango"))

    assert applied == [migration.name for migration in runner.load()]
    with psycopg.connect(cluster.url_of("hango_app", "hango")) as connection:
        assert connection.execute("select count(*) from tenants").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("create table mine ()")


def test_the_image_gets_all_that_the_package_needs() -> None:
    """What the Dockerfile copies is let through by .dockerignore."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert set(re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, re.MULTILINE)) == let_through
