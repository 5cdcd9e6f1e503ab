"""The embedded PostgreSQL and Valkey, as real processes: start, share, end, and what a kill leaves."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.process import command_line, wait_until
from hango.cli.embedded.service import EmbeddedService
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.errors import Unavailable

KINDS: list[type[EmbeddedService]] = [EmbeddedPostgres, EmbeddedValkey]
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
SECONDS = 20

# A process that starts a service, says its pid, and waits.
STARTER = """
import sys, time
from pathlib import Path
from hango.cli.embedded.{word} import {kind}
service = {kind}(Path(sys.argv[1])).start()
print(service.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Not pytest's own folder: as root nobody else may enter that."""
    folder = Path(tempfile.mkdtemp(prefix="hango-home-"))
    yield folder
    shutil.rmtree(folder)


def start_elsewhere(kind: type[EmbeddedService], home: Path) -> tuple[subprocess.Popen[str], int]:
    """A second process that runs the service; with the service's pid."""
    script = STARTER.format(word=kind.word, kind=kind.__name__)
    starter = subprocess.Popen([sys.executable, "-c", script, str(home)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    return starter, int(starter.stdout.readline())


def end(starter: subprocess.Popen[str], sign: signal.Signals = signal.SIGKILL) -> None:
    starter.send_signal(sign)
    starter.communicate()


def gone(pid: int) -> bool:
    return wait_until(lambda: not command_line(pid), SECONDS)


@EACH_KIND
def test_it_answers_after_start_and_is_gone_after_stop(kind: type[EmbeddedService], home: Path) -> None:
    """`start` returns when it answers; `stop` returns when it is gone."""
    service = kind(home, durable=False).start()
    pid = service.pid
    assert pid is not None
    assert (service.answers(), service.alive()) == (True, True)

    service.stop()

    assert (service.answers(), service.alive(), command_line(pid)) == (False, False, "")


def test_postgres_keeps_its_data_and_has_the_sort_order_of_every_machine(home: Path) -> None:
    """A second start finds what the first one was told."""
    with EmbeddedPostgres(home) as first, psycopg.connect(first.url, autocommit=True) as connection:
        connection.execute("create table kept as select 1 as one")

    with EmbeddedPostgres(home) as second, psycopg.connect(second.url) as connection:
        rows = connection.execute(
            "select one, (select datlocale from pg_database where datname = current_database()) from kept"
        ).fetchall()

    assert rows == [(1, "C.UTF-8")]


def test_valkey_keeps_its_data(home: Path) -> None:
    """A second start finds what the first one was told."""
    with EmbeddedValkey(home) as first, redis.Redis.from_url(first.url) as client:
        client.set("kept", "1")

    with EmbeddedValkey(home) as second, redis.Redis.from_url(second.url) as client:
        assert client.get("kept") == b"1"


@EACH_KIND
def test_it_runs_as_an_ordinary_account(kind: type[EmbeddedService], home: Path) -> None:
    """Under root the services run as an ordinary account; otherwise as the caller."""
    with kind(home, durable=False) as service:
        owner = Path(f"/proc/{service.pid}").stat().st_uid

    assert owner == (service.account.uid if os.geteuid() == 0 else os.geteuid())
    assert owner != 0


@EACH_KIND
def test_it_listens_on_a_private_socket_only(kind: type[EmbeddedService], home: Path) -> None:
    """No network port, and a folder that no other account may enter."""
    with kind(home, durable=False) as service:
        pid = service.pid
        inodes = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
        listening = {
            f"socket:[{line.split()[9]}]"
            for table in ("tcp", "tcp6")
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        }

        assert inodes & listening == set()
        assert service.socket_folder.stat().st_mode & 0o077 == 0


@EACH_KIND
def test_a_killed_starter_leaves_no_service(kind: type[EmbeddedService], home: Path) -> None:
    """`kill -9` of the starter ends the service too, and the next start works at once."""
    starter, pid = start_elsewhere(kind, home)

    end(starter)

    assert gone(pid)
    with kind(home) as service:
        assert service.answers()


@EACH_KIND
def test_a_killed_service_starts_again(kind: type[EmbeddedService], home: Path) -> None:
    """`kill -9` of the service itself: the next start recovers."""
    starter, pid = start_elsewhere(kind, home)
    os.kill(pid, signal.SIGKILL)
    end(starter)

    with kind(home) as service:
        assert service.answers()


@EACH_KIND
def test_an_orphan_is_ended_before_a_start(kind: type[EmbeddedService], home: Path) -> None:
    """A server that nobody holds, as a starter killed on a system without parent-death signals leaves it."""
    orphan = kind(home).start()
    orphan_pid = orphan.pid
    assert orphan_pid is not None
    forget(orphan)

    with kind(home) as service:
        assert (service.answers(), command_line(orphan_pid)) == (True, "")
    orphan.stop()


def forget(service: EmbeddedService) -> None:
    """What the death of a starter does to its lock."""
    assert service._lock is not None
    os.close(service._lock)
    service._lock = None


@EACH_KIND
def test_a_number_that_went_to_another_program_is_left_alone(kind: type[EmbeddedService], home: Path) -> None:
    """The pid file of a killed server may name somebody else's process by the next start."""
    with kind(home) as first:
        pid_file = first.folder / "data-18/postmaster.pid" if kind is EmbeddedPostgres else first.folder / "valkey.pid"
        lines = pid_file.read_text().splitlines()
    bystander = subprocess.Popen(["sleep", "600"])
    pid_file.write_text("\n".join([str(bystander.pid), *lines[1:], ""]))
    shutil.chown(pid_file, first.account.uid)

    with kind(home) as second:
        assert second.answers()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


@EACH_KIND
def test_a_running_one_is_shared(kind: type[EmbeddedService], home: Path) -> None:
    """With `share`, a service that another process runs is used, and goes on after `stop`."""
    starter, pid = start_elsewhere(kind, home)
    shared = kind(home).start(share=True)
    assert (shared.answers(), shared.pid) == (True, None)

    shared.stop()

    assert command_line(pid)
    end(starter)
    assert gone(pid)


@EACH_KIND
def test_a_home_below_a_closed_folder_gets_a_room_elsewhere(kind: type[EmbeddedService], home: Path) -> None:
    """Root may have a home where the ordinary account cannot walk, and a path longer than a socket's."""
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    deep = closed / ("a-rather-long-name-" * 5) / "home"

    with kind(deep, durable=False) as service:
        assert service.answers()
        room = service.room

    assert (room == deep) == (os.geteuid() != 0)
    if room != deep:
        shutil.rmtree(room)


def test_the_log_holds_no_content(home: Path) -> None:
    """Neither a failing statement, nor its parameters, nor the value an error quotes, reaches the log."""
    with EmbeddedPostgres(home, durable=False) as service:
        with psycopg.connect(service.url, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                connection.execute("select 'canary-statement', %s::text::int", ["canary-parameter"])
            with pytest.raises(psycopg.errors.RaiseException):
                connection.execute("do $$ begin raise exception 'canary-error' using detail = 'canary-detail'; end $$")
        log = service.log_file.read_text()

    assert "ready to accept connections" in log
    assert "canary" not in log


def test_a_start_that_cannot_be_is_one_sentence(home: Path) -> None:
    """A home that cannot be made names itself and says what to do."""
    (home / "file").write_text("")

    with pytest.raises(Unavailable) as caught:
        EmbeddedPostgres(home / "file" / "home").start()

    assert str(caught.value) == (
        f"{home / 'file' / 'home'} cannot be used (Not a directory); set HANGO_HOME to a folder of your own."
    )


def test_binaries_of_the_callers_choice(home: Path) -> None:
    """A folder of other binaries is used; one whose server cannot run is refused by name."""
    (home / "bin").mkdir()
    (home / "bin/postgres").write_text("no program")

    with pytest.raises(Unavailable) as caught:
        EmbeddedPostgres(home, bin_dir=home / "bin").start()

    assert str(caught.value) == (
        f"{home / 'bin/postgres'} cannot be run here; set HANGO_PG_BIN to your own, or HANGO_DATABASE_URL."
    )


def test_the_account_is_the_one_that_has_the_files(home: Path) -> None:
    """An account that is added to the machine later does not take over: the files stay readable."""
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    (home / "valkey").mkdir()
    os.chown(home / "valkey", owner.pw_uid, owner.pw_gid)

    with EmbeddedValkey(home, durable=False) as service:
        assert service.account.uid == owner.pw_uid
