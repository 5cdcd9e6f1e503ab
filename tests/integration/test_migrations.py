"""Migrations: up, down, one at a time, and what stands in the database when they are done."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from hango.domain import OverrideAction, PartID
from hango.errors import Unavailable
from hango.migrations import runner
from hango.store import context_bases, context_overrides, idempotency_keys, token_factors, try_claims
from hango.store.connection import Store
from hango.store.context_overrides import NewOverride
from tests.conftest import Database
from tests.rows import make_agent, make_session, make_tenant
from tests.schema import snapshot
from tests.services import Services, drop_database
from tests.tries import (
    ACTUAL_TOKENS,
    MODEL,
    PLAIN,
    SUCCEEDED,
    admit,
    admit_batch,
    lay_desk,
    rows_of,
    take,
)

SNAPSHOT = Path(__file__).parents[1] / "schema_snapshot.txt"
NAMES = [migration.name for migration in runner.load()]

TABLES_OF_TRIES = [
    "idempotency_keys",
    "override_sets",
    "token_factors",
    "tries",
    "try_batches",
    "try_payloads",
    "try_requests",
]

UP_AND_DOWN = "-- +goose Up\ncreate table one (id integer);\n-- +goose Down\ndrop table one;\n"


@pytest.fixture
def empty(services: Services) -> Iterator[Database]:
    """A database without a table, of an owner that is no superuser."""
    name = f"hango_{secrets.token_hex(8)}"
    with psycopg.connect(services.superuser_url, autocommit=True) as conn:
        conn.execute(f"create database {name} owner hango_owner".encode())
    yield Database.of(services, name)
    drop_database(services, name)


def question(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_up_down_one_up_all_the_way_down(empty: Database) -> None:
    """Migrations go up, down one, up, all the way down; a down leaves what was there before its up."""
    before = snapshot(empty.superuser_dsn)
    assert runner.up(empty.owner_dsn) == NAMES
    whole = snapshot(empty.superuser_dsn)

    assert runner.down(empty.owner_dsn, len(NAMES) - 1) == NAMES[-1:]
    assert runner.up(empty.owner_dsn) == NAMES[-1:]
    assert snapshot(empty.superuser_dsn) == whole

    assert runner.down(empty.owner_dsn, 0) == NAMES[::-1]
    assert snapshot(empty.superuser_dsn) == before


def test_every_down_undoes_its_up(empty: Database) -> None:
    """At each step, down gives the schema back that was there before, and up can be run again."""
    for version in range(1, len(NAMES) + 1):
        before = snapshot(empty.superuser_dsn)
        runner.up(empty.owner_dsn, version)
        runner.down(empty.owner_dsn, version - 1)
        assert snapshot(empty.superuser_dsn) == before, NAMES[version - 1]
        assert runner.up(empty.owner_dsn, version) == [NAMES[version - 1]]


def test_taking_tries_back_keeps_what_they_cost(empty: Database) -> None:
    """Down copies the usage of tries to usage_records_removed, whatever the tenant, before it deletes it; up and down
    again adds to it."""
    version = NAMES.index("00008_context_overrides") + 1
    runner.up(empty.owner_dsn, version)
    tenants = [add_usage(empty, "run", "context_try") for _ in range(2)]

    runner.down(empty.owner_dsn, version - 1)
    kept = records(empty, "usage_records_removed")
    left = records(empty, "usage_records")
    runner.up(empty.owner_dsn, version)
    tenants += [add_usage(empty, "context_try")]
    runner.down(empty.owner_dsn, version - 1)

    assert kept == sorted((tenant, "context_try", None, 11, Decimal("0.125")) for tenant in tenants[:2])
    assert left == sorted((tenant, "run", tenant, 11, Decimal("0.125")) for tenant in tenants[:2])
    assert records(empty, "usage_records_removed") == sorted([*kept, (tenants[2], "context_try", None, 11, kept[0][4])])
    assert records(empty, "usage_records") == left
    with psycopg.connect(empty.superuser_dsn) as conn:
        walled = conn.execute(
            "select relrowsecurity and relforcerowsecurity, relacl is null or relacl::text not like '%hango_app%'"
            " from pg_class where relname in ('usage_records', 'usage_records_removed') order by relname"
        ).fetchall()
    assert walled == [(True, False), (True, True)]


async def test_tries_with_all_that_they_left_go_and_come_again(fresh_database: Database) -> None:
    """A down with tries in every state keeps their bills, gives back what they hold, and takes the bases that name an
    override set with them; an up follows, and a down of everything with rows in every table."""
    store = await Store.open(fresh_database.app_dsn, max_size=1)
    tenant = await make_tenant(store)
    async with store.begin(tenant) as scope:
        session = await make_session(scope, await make_agent(scope), ["a question"])
        desk = await lay_desk(scope)
        await context_overrides.replace_for_session(
            scope, session.id, [NewOverride(PartID("message:1"), OverrideAction.EXCLUDE, None, "")]
        )
        pinned = await context_bases.current(scope, session.id)
        assert pinned is not None
        await context_bases.find_or_create(scope, pinned)
        await admit_batch(scope, desk, [PLAIN], repeats=2)
        waiting, called = await admit(scope, desk, [PLAIN] * 2)
        await idempotency_keys.take(scope, "a key", b"1" * 32, waiting)
        await token_factors.learn(scope, MODEL, ratio=1.0, first=1.0, weight=0.5, least=0.5, most=4.0)
    await take(store, tenant, called, called=True)
    async with store.begin(tenant) as scope:
        await try_claims.settle(scope, called, 1, SUCCEEDED, retention_seconds=60)
    await store.close()
    version = NAMES.index("00009_tries") + 1
    empty_ones = [table for table in TABLES_OF_TRIES if not rows_of(fresh_database.superuser_dsn, f"table {table}")]
    bills = records(fresh_database, "usage_records")

    runner.down(fresh_database.owner_dsn, version - 1)
    left = {
        "bills": records(fresh_database, "usage_records"),
        "quotas": rows_of(fresh_database.superuser_dsn, "select used, reserved from quotas"),
        "bases": rows_of(fresh_database.superuser_dsn, "select id, override_set_id from context_bases"),
    }
    runner.up(fresh_database.owner_dsn)
    runner.down(fresh_database.owner_dsn, 0)

    assert empty_ones == []
    assert bills == [(tenant.tenant_id, "context_try", None, 10, Decimal("0.25"))]
    assert left == {
        "bills": bills,
        "quotas": [{"used": ACTUAL_TOKENS, "reserved": 0}],
        "bases": [{"id": desk.base_id, "override_set_id": None}],
    }
    assert records(fresh_database, "usage_records_removed") == bills


def add_usage(database: Database, *purposes: str) -> UUID:
    """A tenant with a record a purpose; only those of a run have one. The one id is everything's."""
    id = uuid4()
    with psycopg.connect(database.superuser_dsn) as conn, conn.cursor() as cursor:
        # Without the rows that its keys need: agent, version, session, run.
        cursor.execute("set local session_replication_role = replica")
        for purpose in purposes:
            cursor.execute(
                "insert into usage_records (tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens,"
                " output_tokens, cache_read_tokens, cache_write_tokens, cost_usd)"
                " values (%s, %s, %s, %s, %s, %s, 'a/x', 11, 12, 13, 14, 0.125)",
                (id, uuid4(), purpose, id if purpose == "run" else None, id, id),
            )
    return id


def records(database: Database, table: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.superuser_dsn) as conn:
        query = sql.SQL("select tenant_id, purpose, run_id, input_tokens, cost_usd from {} order by tenant_id, purpose")
        return conn.execute(query.format(sql.Identifier(table))).fetchall()


def test_the_schema_is_the_one_in_review(database: Database) -> None:
    """A schema change shows in review: to accept one, write what this test found into the snapshot."""
    assert snapshot(database.superuser_dsn) == SNAPSHOT.read_text()


def test_eight_migrators_at_once_apply_each_file_once(empty: Database) -> None:
    """However many processes start at once, each migration is applied by one of them."""
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: runner.up(empty.owner_dsn), range(8)))

    assert sorted(name for names in done for name in names) == NAMES


def test_status_names_what_is_applied(empty: Database) -> None:
    """Status lists every migration, with the time of those that are applied."""
    assert [(row.name, row.applied_at) for row in runner.status(empty.owner_dsn)] == [(n, None) for n in NAMES]

    runner.up(empty.owner_dsn, 2)

    applied = [row.name for row in runner.status(empty.owner_dsn) if row.applied_at is not None]
    assert applied == NAMES[:2]


def test_a_changed_file_is_refused(empty: Database) -> None:
    """A released migration is never edited: the runner says which one was, and does nothing."""
    runner.up(empty.owner_dsn, 1)
    with psycopg.connect(empty.owner_dsn) as conn:
        conn.execute("update schema_migrations set checksum = 'another'")

    with pytest.raises(runner.MigrationFailed, match=f"{NAMES[0]} was changed after it was applied"):
        runner.up(empty.owner_dsn)
    assert question(empty.owner_dsn, "select count(*) from schema_migrations") == 1


def test_a_database_of_a_newer_hango_is_refused(empty: Database) -> None:
    """An older hango does not touch a database that it does not know."""
    runner.up(empty.owner_dsn, 1)
    with psycopg.connect(empty.owner_dsn) as conn:
        conn.execute("insert into schema_migrations (version, name, checksum) values (99, '00099_later', 'x')")

    with pytest.raises(runner.MigrationFailed, match="migration 99, which this hango does not know"):
        runner.up(empty.owner_dsn)


def test_a_failed_migration_keeps_nothing_and_shows_no_row(empty: Database, tmp_path: Path) -> None:
    """A file is one transaction; its failure is named by code and constraint, without the row at fault."""
    (tmp_path / "00001_one.sql").write_text(UP_AND_DOWN)
    (tmp_path / "00002_two.sql").write_text(
        "-- +goose Up\ncreate table two (word text constraint short check (length(word) < 3));\n"
        "insert into two values ('canary');\n-- +goose Down\ndrop table two;\n"
    )

    with pytest.raises(runner.MigrationFailed) as raised:
        runner.up(empty.owner_dsn, folder=tmp_path)

    assert str(raised.value) == (
        "Migration 00002_two failed (sqlstate 23514, constraint short); nothing of it was kept."
    )
    assert "canary" not in repr(raised.value.__context__)
    assert question(empty.owner_dsn, "select to_regclass('two')") is None
    assert question(empty.owner_dsn, "select max(version) from schema_migrations") == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"00001_one.sql": UP_AND_DOWN, "00003_three.sql": UP_AND_DOWN}, "have a gap or a double"),
        ({"00001_one.sql": UP_AND_DOWN, "00001_two.sql": UP_AND_DOWN}, "have a gap or a double"),
        ({"00001_one.sql": "-- +goose Up\ncreate table one (id integer);\n"}, "00001_one.sql needs"),
        ({"00001_one.sql": "create table one (id integer);\n" + UP_AND_DOWN}, "00001_one.sql needs"),
    ],
)
def test_files_out_of_order_or_form_are_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """Numbers count from one without a gap, and every file has an up and a down."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(runner.MigrationFailed, match=message):
        runner.load(tmp_path)


def test_a_database_that_is_away_is_said_in_one_sentence(tmp_path: Path) -> None:
    """A database that cannot be reached is Unavailable, in words that say what to check."""
    with pytest.raises(Unavailable, match="check the database URL and that it is up"):
        runner.up(f"postgresql://hango_owner@/hango?host={tmp_path}")


def test_the_owner_is_no_superuser_and_the_app_owns_nothing(database: Database) -> None:
    """Migrations ran as an ordinary owner; neither role of the app owns a thing or may pass by a policy."""
    with psycopg.connect(database.superuser_dsn) as conn:
        owners = conn.execute(
            "select distinct pg_get_userbyid(relowner) from pg_class where relnamespace = 'public'::regnamespace"
        ).fetchall()
        roles = conn.execute(
            "select rolname, rolcanlogin, rolinherit, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles"
            " where rolname like 'hango\\_%' order by rolname"
        ).fetchall()

    assert owners == [("hango_owner",)]
    assert roles == [
        ("hango_app", True, False, False, False, False, False),
        ("hango_owner", True, True, False, False, False, False),
        ("hango_system", False, False, False, False, False, False),
    ]


def test_every_tenant_owned_table_is_walled(database: Database) -> None:
    """Row level security is enabled and forced on every table, and its policy reads the setting once a statement."""
    with psycopg.connect(database.superuser_dsn) as conn:
        tables = conn.execute(
            """
            select c.relname, c.relrowsecurity and c.relforcerowsecurity, p.qual, p.cmd, p.roles::text
            from pg_class c
            left join pg_policies p on p.tablename = c.relname and p.policyname = 'tenant_only'
            where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'schema_migrations'
            order by c.relname
            """
        ).fetchall()
        system = conn.execute(
            "select tablename from pg_policies where roles = '{hango_system}' order by tablename"
        ).fetchall()

    own = "( SELECT (NULLIF(current_setting('app.t'::text, true), ''::text))::uuid AS \"nullif\")"
    for table, walled, policy, command, roles in tables:
        column = "id" if table == "tenants" else "tenant_id"
        assert (table, walled, policy, command, roles) == (table, True, f"({column} = {own})", "ALL", "{public}")
    assert [name for (name,) in system] == [
        "api_keys", "quotas", "runs", "tenants", "tries", "try_batches", "usage_records", "users"
    ]  # fmt: skip


def test_every_key_between_tenants_tables_is_composite(database: Database) -> None:
    """A foreign key begins with tenant_id: a plain one would accept another tenant's row."""
    with psycopg.connect(database.superuser_dsn) as conn:
        keys = conn.execute(
            "select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'f' order by conname"
        ).fetchall()

    to_tenants = re.compile(r"FOREIGN KEY \(tenant_id\) REFERENCES tenants\(id\)")
    composite = re.compile(r"FOREIGN KEY \(tenant_id, .*\) REFERENCES \w+\(tenant_id, .*\)")
    assert [name for name, text in keys if not (to_tenants.match(text) or composite.match(text))] == []
    assert len(keys) > 20
