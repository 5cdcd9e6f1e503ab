"""`hango serve`, `hango migrate` and `hango tenant create`, as processes against a real database."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hango.cli.embedded.process import wait_until
from hango.cli.serve import GRACE_SECONDS
from hango.config import Settings
from hango.migrations import runner
from tests.conftest import Database
from tests.live import client, serving
from tests.upping import LAUNCHER, SECONDS, answers, environment, hango

NAMES = [migration.name for migration in runner.load()]


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hango-home-"))
    yield folder
    shutil.rmtree(folder)


def urls(database: Database, redis_url: str = "") -> dict[str, str]:
    return {
        "HANGO_DATABASE_URL": database.app_dsn,
        "HANGO_MIGRATE_DATABASE_URL": database.owner_dsn,
        "HANGO_REDIS_URL": redis_url,
    }


def test_a_tenant_is_made_without_an_api(home: Path, database: Database, settings: Settings) -> None:
    """`hango tenant create --name N --quota TOKENS` prints {tenant_id, user_id, api_key} of its first admin as JSON."""
    done = hango(home, "tenant", "create", "--name", "work shop", "--quota", "5000", **urls(database))

    made = json.loads(done.stdout)
    assert (done.returncode, done.stderr, set(made)) == (0, "", {"tenant_id", "user_id", "api_key"})
    with serving(settings) as url, client(url, made["api_key"]) as api:
        me = api.get("/v1/me").json()
    assert (me["tenant"]["id"], me["tenant"]["name"], me["tenant"]["quota_tokens"]) == (
        made["tenant_id"],
        "work shop",
        5000,
    )
    assert (me["user"]["id"], me["user"]["role"]) == (made["user_id"], "admin")


def test_migrations_go_down_and_up(home: Path, fresh_database: Database) -> None:
    """`hango migrate up|down|status` on the owner's address; what needs the tables says so while they are away."""
    given = {"HANGO_MIGRATE_DATABASE_URL": fresh_database.owner_dsn}
    one = hango(home, "migrate", "down", **given)
    down = hango(home, "migrate", "down", "--to", "0", **given)
    missing = hango(home, "migrate", "status", **given)
    refused = hango(home, "tenant", "create", "--name", "early", **urls(fresh_database))
    half = hango(home, "tenant", "create", "--name", "early", **given)
    up = hango(home, "migrate", "up", **given)
    again = hango(home, "migrate", "up", **given)
    present = hango(home, "migrate", "status", **given)

    assert one.stdout.splitlines() == [f"reverted {NAMES[-1]}"]
    assert down.stdout.splitlines() == [f"reverted {name}" for name in reversed(NAMES[:-1])]
    assert [line.split() for line in missing.stdout.splitlines()] == [[name, "missing"] for name in NAMES]
    assert (refused.returncode, refused.stdout, refused.stderr) == (
        1,
        "",
        f"hango: The database lacks {len(NAMES)} migrations; run `hango migrate up` first.\n",
    )
    assert (half.returncode, half.stderr) == (
        1,
        "hango: HANGO_MIGRATE_DATABASE_URL is set and HANGO_DATABASE_URL is not: set both, or neither.\n",
    )
    assert up.stdout.splitlines() == [f"applied {name}" for name in NAMES]
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "hango: nothing to be applied.\n")
    rows = [line.split() for line in present.stdout.splitlines()]
    assert [name for name, _ in rows] == NAMES
    assert all(datetime.fromisoformat(when).utcoffset() is not None for _, when in rows)


def test_serve_answers_until_it_is_told_to_end(home: Path, database: Database, redis_url: str) -> None:
    """One API process at HANGO_HOST and HANGO_PORT; SIGTERM ends it in order; a taken port is refused by name."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        refused = hango(home, "serve", **urls(database, redis_url), HANGO_PORT=str(port))
    given = environment(home, {**urls(database, redis_url), "HANGO_PORT": str(port)})
    process = subprocess.Popen(
        [*LAUNCHER, "serve"],
        cwd="/",
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert wait_until(lambda: answers(f"http://127.0.0.1:{port}") or process.poll() is not None, SECONDS)
        assert answers(f"http://127.0.0.1:{port}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)

    assert process.returncode == 0
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"hango: hango cannot listen on 127.0.0.1 port {port} (")
    assert refused.stderr.endswith("); set HANGO_HOST and HANGO_PORT.\n")


def test_those_who_wait_are_answered_when_serve_ends(home: Path, fresh_database: Database, redis_url: str) -> None:
    """SIGTERM: a request that waits for a try gets what there is at once, and does not hold up the end."""
    given = urls(fresh_database, redis_url)
    made = json.loads(hango(home, "tenant", "create", "--name", "patient", **given).stdout)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [*LAUNCHER, "serve"],
        cwd="/",
        env=environment(home, {**given, "HANGO_PORT": str(port)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert wait_until(lambda: answers(url) or process.poll() is not None, SECONDS)
        with client(url, made["api_key"]) as api:
            agent = api.post("/v1/agents", json={"name": "a", "model": "offline/extract"}).json()
            session = api.post(
                "/v1/sessions", json={"agent_id": agent["id"], "messages": [{"role": "user", "content": "Hi."}]}
            ).json()
            place = api.post(f"/v1/sessions/{session['id']}/context/try", json={}).headers["location"]
        waiting = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        waiting.request("GET", f"{place}?wait=60", headers={"Authorization": f"Bearer {made['api_key']}"})
        assert answers(url)  # asked later, on another connection
        process.send_signal(signal.SIGTERM)
        reply = waiting.getresponse()
        found = (reply.status, json.load(reply)["status"])
        waiting.close()
        process.wait(timeout=GRACE_SECONDS - 1)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)

    assert (*found, process.returncode) == (200, "queued", 0)


def test_a_table_of_models_that_is_none_ends_serve(home: Path, database: Database, redis_url: str) -> None:
    """A wrong file of HANGO_MODELS stops the process and names itself."""
    table = home / "models.toml"
    table.write_text("root:x:0:0\n")
    done = hango(home, "serve", HANGO_PORT="0", HANGO_MODELS=str(table), **urls(database, redis_url))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"hango: HANGO_MODELS: {table} cannot be read as TOML (")
    assert done.stderr.count("\n") == 1


def test_a_tenant_of_an_embedded_database(home: Path) -> None:
    """Without an address the embedded database is started for the command and ended with it."""
    migrated = hango(home, "migrate", "up")
    made = hango(home, "tenant", "create", "--name", "alone")

    assert migrated.stdout.splitlines() == [f"applied {name}" for name in NAMES]
    assert (made.returncode, set(json.loads(made.stdout))) == (0, {"tenant_id", "user_id", "api_key"})
    assert not list(home.glob("**/postmaster.pid"))
