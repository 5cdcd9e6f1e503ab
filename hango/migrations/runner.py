"""Runs the migrations: up, down, status. One migrator at a time, a file a transaction, changed files
refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import psycopg

from hango.errors import HangoError, Unavailable
from hango.migrations import roles

FOLDER = Path(__file__).parent

# Any constant that nothing else in the database uses: 'hango' in ASCII.
_ADVISORY_LOCK = 0x68616E676F
# Long enough for another migrator to finish, short enough that a stuck one is noticed in a deploy.
_WAIT_FOR_OTHERS = "10min"
# A migration that waits longer for a table's lock holds up every query behind it: better to fail, and run
# again.
_LOCK_TIMEOUT = "5s"
_STATEMENT_TIMEOUT = "10min"

_UP, _DOWN = "-- +goose Up\n", "-- +goose Down\n"


class MigrationFailed(HangoError):
    """A migration could not be run; nothing of it was kept."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file. `name` is its stem: `00001_tenants_users_api_keys`."""

    version: int
    name: str
    up: str
    down: str
    checksum: str


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """`applied_at` is None for a migration that is still to be run."""

    version: int
    name: str
    applied_at: datetime | None


def load(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """All migrations, in order. Raises MigrationFailed when a number is missing or doubled, or half a file
    is."""
    found = tuple(_read(path) for path in sorted(folder.glob("[0-9]*_*.sql")))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationFailed(f"The migration numbers in {folder} have a gap or a double: count from 00001 on.")
    return found


def up(dsn: str, target: int | None = None, *, folder: Path = FOLDER) -> list[str]:
    """Apply what is missing, up to and with `target` (all by default). Returns the names applied, in order.

    The connected role becomes the owner of the tables. Roles that are missing are made first.
    """
    migrations = load(folder)
    last = len(migrations) if target is None else target
    done: list[str] = []
    with _locked(dsn) as conn:
        applied = _applied(conn)
        _check_unchanged(migrations, applied)
        for migration in migrations:
            if migration.version <= last and migration.version not in applied:
                _run(conn, migration, migration.up)
                done.append(migration.name)
    return done


def down(dsn: str, target: int, *, folder: Path = FOLDER) -> list[str]:
    """Revert every applied migration above `target`, the last one first. Returns the names reverted."""
    migrations = load(folder)
    done: list[str] = []
    with _locked(dsn) as conn:
        applied = _applied(conn)
        _check_unchanged(migrations, applied)
        for migration in reversed(migrations):
            if migration.version > target and migration.version in applied:
                _run(conn, migration, migration.down, reverting=True)
                done.append(migration.name)
    return done


def status(dsn: str) -> list[MigrationStatus]:
    """Every migration that is known here, with the time it was applied."""
    with _connected(dsn) as conn:
        applied = _applied(conn) if _has_table(conn) else {}
    return [MigrationStatus(m.version, m.name, applied[m.version].at if m.version in applied else None) for m in load()]


@dataclass(frozen=True, slots=True)
class _Applied:
    checksum: str
    at: datetime


def _read(path: Path) -> Migration:
    text = path.read_text(encoding="utf-8")
    head, _, down = text.partition(_DOWN)
    before, _, up = head.partition(_UP)
    if before.strip() or not up.strip() or not down.strip():
        raise MigrationFailed(f"The migration {path.name} needs '-- +goose Up' at its head and '-- +goose Down'.")
    return Migration(int(path.name.split("_")[0]), path.stem, up, down, sha256(text.encode()).hexdigest())


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection in autocommit. Errors of the database leave as one sentence, without a row's content."""
    failure: HangoError
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="hango migrate") as conn:
            yield conn
            return
    except psycopg.OperationalError as error:
        if error.sqlstate == psycopg.errors.LockNotAvailable.sqlstate:
            failure = MigrationFailed("Another migration has been running for 10 minutes: look what holds it up.")
        else:
            failure = Unavailable("The database cannot be reached: check the database URL and that it is up.")
    except psycopg.Error as error:
        failure = MigrationFailed(f"The database refused a statement (sqlstate {error.sqlstate}).")
    # Raised outside the handler: the original error may carry a row and must not hang on as its context.
    raise failure


@contextmanager
def _locked(dsn: str) -> Iterator[psycopg.Connection]:
    """The only migrator of this database, with the table of applied migrations made."""
    with _connected(dsn) as conn:
        conn.execute("select set_config('lock_timeout', %s, false)", (_WAIT_FOR_OTHERS,))
        conn.execute("select pg_advisory_lock(%s)", (_ADVISORY_LOCK,))
        conn.execute("select set_config('lock_timeout', %s, false)", (_LOCK_TIMEOUT,))
        conn.execute("select set_config('statement_timeout', %s, false)", (_STATEMENT_TIMEOUT,))
        roles.ensure(conn)
        if not _has_table(conn):
            conn.execute(
                "create table schema_migrations ("
                " version integer not null constraint schema_migrations_pk primary key,"
                " name text not null,"
                " checksum text not null,"
                " applied_at timestamptz not null default now())"
            )
            # So that a server can say at its start that migrations are missing.
            conn.execute(f"grant select on schema_migrations to {roles.APP}")
        yield conn


def _has_table(conn: psycopg.Connection) -> bool:
    row = conn.execute("select to_regclass('schema_migrations') is not null").fetchone()
    return row is not None and bool(row[0])


def _applied(conn: psycopg.Connection) -> dict[int, _Applied]:
    rows = conn.execute("select version, checksum, applied_at from schema_migrations").fetchall()
    return {version: _Applied(checksum, at) for version, checksum, at in rows}


def _check_unchanged(migrations: Sequence[Migration], applied: dict[int, _Applied]) -> None:
    known = {migration.version: migration for migration in migrations}
    for version, row in applied.items():
        migration = known.get(version)
        if migration is None:
            raise MigrationFailed(
                f"The database has migration {version}, which this hango does not know: use a newer hango."
            )
        if migration.checksum != row.checksum:
            raise MigrationFailed(
                f"The file of migration {migration.name} was changed after it was applied:"
                " take the change back and write a new migration."
            )


def _run(conn: psycopg.Connection, migration: Migration, sql: str, *, reverting: bool = False) -> None:
    failure: MigrationFailed
    try:
        with conn.transaction():
            # Without parameters psycopg sends the text as it stands, all statements in one message.
            conn.execute(sql.encode())
            if reverting:
                conn.execute("delete from schema_migrations where version = %s", (migration.version,))
            else:
                conn.execute(
                    "insert into schema_migrations (version, name, checksum) values (%s, %s, %s)",
                    (migration.version, migration.name, migration.checksum),
                )
        return
    except psycopg.Error as error:
        # Not the message itself: an error about a row carries the row.
        where = f", constraint {error.diag.constraint_name}" if error.diag.constraint_name else ""
        failure = MigrationFailed(
            f"Migration {migration.name} failed (sqlstate {error.sqlstate}{where}); nothing of it was kept."
        )
    raise failure
