"""One tenant never sees or changes another's rows: by every store function, and by PostgreSQL itself."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

import hango.store
from hango.domain import (
    AuditAction,
    BaseID,
    BatchID,
    Principal,
    Role,
    RunID,
    RunStatus,
    SessionID,
    TryID,
)
from hango.errors import HangoError, Invalid, NotFound
from hango.runs import CallEnd, NewRun
from hango.store import (
    agents,
    api_keys,
    audit,
    context_bases,
    context_overrides,
    files,
    idempotency_keys,
    messages,
    override_sets,
    quotas,
    retention,
    run_calls,
    run_claims,
    runs,
    sessions,
    tenants,
    token_factors,
    tries,
    try_batches,
    try_claims,
    usage,
    users,
)
from hango.store.connection import Scope, Store
from hango.store.failures import StatementRefused
from hango.store.ids import new_id
from hango.tries import TryError, TryStatus
from tests.all_rows import everything, tenant_tables
from tests.conftest import Database
from tests.rows import DEFINITION, said
from tests.services import Services, clone_database, drop_database
from tests.theirs import KEY, NO_TOOL, PATH, Theirs, make_theirs, record_usage, run_call
from tests.tries import ACTUAL, PLAIN, SUCCEEDED

Attempt = Callable[[Scope, Theirs], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Case:
    """What a stranger tries with another tenant's ids, and what comes of it: a value, or an error's class.

    A case without another tenant's id in it (a list, a creation) shows that only the own rows come back.
    """

    attempt: Attempt
    outcome: object


def ids(page: Any) -> list[object]:
    return [item.id for item in page.data]


async def own_tenant(scope: Scope, theirs: Theirs) -> bool:
    return (await tenants.get(scope)).id == scope.tenant_id


async def update_own_tenant(scope: Scope, theirs: Theirs) -> bool:
    return (await tenants.update(scope, name="mine")).id == scope.tenant_id


async def create_own_user(scope: Scope, theirs: Theirs) -> bool:
    made = await users.create(scope, "mine", Role.MEMBER)
    return ids(await users.list_all(scope)) == [made.id, scope.user_id]


async def record_event(scope: Scope, theirs: Theirs) -> list[object]:
    await audit.record(scope, AuditAction.AGENT_UPDATE, "agent", theirs.agent.id, {})
    return [event.target_id == theirs.agent.id for event in (await audit.list_all(scope, limit=1)).data]


async def create_own_agent(scope: Scope, theirs: Theirs) -> bool:
    made = await agents.create(scope, "mine", True, DEFINITION)
    return ids(await agents.list_all(scope, viewer_is_admin=True)) == [made.id]


async def create_tries(scope: Scope, theirs: Theirs) -> object:
    return await tries.create(scope, theirs.session.id, theirs.base.id, [PLAIN], theirs.admission)


async def create_batch(scope: Scope, theirs: Theirs) -> None:
    await try_batches.create(scope, BatchID(new_id()), theirs.session.id, theirs.base.id, label="x", tries=1)


async def take_key(scope: Scope, theirs: Theirs) -> bool:
    return await idempotency_keys.take(scope, KEY, b"1" * 32, theirs.called) == theirs.called


async def keep_override_set(scope: Scope, theirs: Theirs) -> bool:
    return await override_sets.find_or_create(scope, theirs.current.override_text) != theirs.base.override_set_id


async def reserve_quota(scope: Scope, theirs: Theirs) -> bool:
    return await quotas.reserve(scope, 1_000_000) == theirs.admission.quota_period


async def settle(scope: Scope, theirs: Theirs) -> bool:
    return await try_claims.settle(scope, theirs.called, 1, SUCCEEDED, retention_seconds=1)


async def settle_all(scope: Scope, theirs: Theirs) -> frozenset[tuple[TryID, int]]:
    return await try_claims.settle_all(scope, {(theirs.called, 1): SUCCEEDED}, retention_seconds=1)


async def create_run(scope: Scope, theirs: Theirs) -> None:
    new = NewRun(base_id=theirs.base.id, model="m", first_seq=0, overrides=0, ttl_seconds=1.0, timeout_seconds=1.0)
    await runs.create(scope, RunID(new_id()), theirs.session.id, new)


async def learn_factor(scope: Scope, theirs: Theirs) -> None:
    await token_factors.learn(scope, PLAIN.model, ratio=2.0, first=2.0, weight=0.5, least=0.5, most=4.0)


CASES: dict[str, Case] = {
    "agents.create": Case(create_own_agent, True),
    "agents.definition": Case(lambda s, t: agents.definition(s, t.agent.version_id), NotFound),
    "agents.delete": Case(lambda s, t: agents.delete(s, t.agent.id), False),
    "agents.get": Case(lambda s, t: agents.get(s, t.agent.id), None),
    "agents.hold": Case(lambda s, t: agents.hold(s, t.agent.id), None),
    "agents.list_all": Case(lambda s, t: mapped(agents.list_all(s, viewer_is_admin=True), ids), []),
    "agents.update": Case(
        lambda s, t: agents.update(s, t.agent.id, name="x", shared=True, definition=DEFINITION), NotFound
    ),
    "api_keys.create": Case(lambda s, t: api_keys.create(s, t.tenant.user_id, "x"), NotFound),
    "api_keys.get": Case(lambda s, t: api_keys.get(s, t.tenant.key_id), None),
    "api_keys.list_all": Case(lambda s, t: mapped(api_keys.list_all(s, t.tenant.user_id), ids), []),
    "api_keys.revoke": Case(lambda s, t: api_keys.revoke(s, t.tenant.key_id), False),
    "audit.list_all": Case(lambda s, t: mapped(audit.list_all(s), lambda page: len(page.data)), 3),
    "audit.record": Case(record_event, [True]),  # a name alone: an event has no key to its target
    "context_bases.current": Case(lambda s, t: context_bases.current(s, t.session.id), None),
    "context_bases.current_agent": Case(lambda s, t: context_bases.current_agent(s, t.agent.id), None),
    "context_bases.find_or_create": Case(lambda s, t: context_bases.find_or_create(s, t.current), StatementRefused),
    "context_bases.get": Case(lambda s, t: context_bases.get(s, t.base.id), None),
    "context_bases.load": Case(lambda s, t: context_bases.load(s, t.base), None),
    "context_overrides.count_active": Case(lambda s, t: context_overrides.count_active(s), 0),
    "context_overrides.hold_agent": Case(lambda s, t: context_overrides.hold_agent(s, t.agent.id), NotFound),
    "context_overrides.hold_session": Case(lambda s, t: context_overrides.hold_session(s, t.session.id), NotFound),
    "context_overrides.list_for_agent": Case(lambda s, t: context_overrides.list_for_agent(s, t.agent.id), []),
    "context_overrides.list_for_session": Case(lambda s, t: context_overrides.list_for_session(s, t.session.id), []),
    "context_overrides.replace_for_agent": Case(
        lambda s, t: context_overrides.replace_for_agent(s, t.agent.id, [NO_TOOL]), NotFound
    ),
    "context_overrides.replace_for_session": Case(
        lambda s, t: context_overrides.replace_for_session(s, t.session.id, []), NotFound
    ),
    "files.delete": Case(lambda s, t: files.delete(s, t.agent.id, PATH), False),
    "files.hold": Case(lambda s, t: files.hold(s, t.agent.id), None),
    "files.holding": Case(lambda s, t: files.holding(s, t.agent.id, [PATH], "memory"), {}),
    "files.list_under": Case(lambda s, t: mapped(files.list_under(s, t.agent.id, "/"), lambda page: page.data), ()),
    "files.read": Case(lambda s, t: files.read(s, t.agent.id, PATH), None),
    "files.texts": Case(lambda s, t: files.texts(s, [file.version_id for file in t.current.files], most_chars=9), {}),
    "files.write": Case(lambda s, t: files.write(s, t.agent.id, PATH, "x"), NotFound),
    "idempotency_keys.find": Case(lambda s, t: idempotency_keys.find(s, KEY, b"1" * 32), None),
    "idempotency_keys.take": Case(take_key, True),
    "messages.append": Case(lambda s, t: messages.append(s, t.session.id, [said(0, "x")]), NotFound),
    "messages.bodies": Case(lambda s, t: messages.bodies(s, t.session.id, after_seq=0, through_seq=9), {}),
    "messages.body": Case(lambda s, t: messages.body(s, t.session.id, 1), None),
    "messages.digests": Case(lambda s, t: messages.digests(s, t.session.id, after_seq=0, through_seq=9), []),
    "messages.page": Case(lambda s, t: messages.page(s, t.session.id, 0, 9), []),
    "messages.tokens": Case(lambda s, t: messages.tokens(s, t.session.id, after_seq=0, through_seq=9), 0),
    "override_sets.find_or_create": Case(keep_override_set, True),
    "quotas.reserve": Case(reserve_quota, True),  # theirs is used up
    "retention.purge": Case(lambda s, t: retention.purge(s), 0),
    "sessions.create": Case(lambda s, t: sessions.create(s, t.agent.id, "x"), NotFound),
    "sessions.delete": Case(lambda s, t: sessions.delete(s, t.session.id), False),
    "sessions.get": Case(lambda s, t: sessions.get(s, t.session.id), None),
    "sessions.list_all": Case(lambda s, t: mapped(sessions.list_all(s, viewer_is_admin=True), ids), []),
    "sessions.set_summary": Case(lambda s, t: sessions.set_summary(s, t.session.id, "x", 1, 1), Invalid),
    "tenants.get": Case(own_tenant, True),
    "tenants.update": Case(update_own_tenant, True),
    "token_factors.learn": Case(learn_factor, None),
    "tries.cancel": Case(lambda s, t: tries.cancel(s, session_id=t.session.id), Counter()),
    "tries.count_outstanding": Case(lambda s, t: tries.count_outstanding(s), 0),
    "tries.create": Case(create_tries, StatementRefused),
    "tries.end_waiting": Case(
        lambda s, t: tries.end_waiting(s, [t.waiting], TryStatus.EXPIRED, TryError.QUEUE_EXPIRED), Counter()
    ),
    "tries.expire": Case(lambda s, t: tries.expire(s, 9), Counter()),
    "tries.get": Case(lambda s, t: tries.get(s, t.called), None),
    "tries.get_preview": Case(lambda s, t: tries.get_preview(s, t.waiting), None),
    "tries.hold_session": Case(lambda s, t: tries.hold_session(s, t.session.id), NotFound),
    "tries.list_all": Case(lambda s, t: mapped(tries.list_all(s, t.session.id), ids), []),
    "try_batches.all_variants": Case(
        lambda s, t: mapped(try_batches.all_variants(s, [t.batch_id]), lambda found: found[t.batch_id]), []
    ),
    "try_batches.create": Case(create_batch, StatementRefused),
    "try_batches.get": Case(lambda s, t: try_batches.get(s, t.batch_id), None),
    "try_batches.list_all": Case(lambda s, t: mapped(try_batches.list_all(s, t.session.id), ids), []),
    "try_batches.variants": Case(lambda s, t: try_batches.variants(s, t.batch_id), []),
    "try_claims.correct_lost": Case(lambda s, t: try_claims.correct_lost(s, t.lost, 1, ACTUAL), False),
    "try_claims.defer": Case(lambda s, t: try_claims.defer(s, t.called, 1, 0.0), False),
    "try_claims.end_uncalled": Case(
        lambda s, t: try_claims.end_uncalled(s, t.running, 1, TryStatus.FAILED, TryError.INTERNAL), None
    ),
    "try_claims.is_cancelled": Case(lambda s, t: try_claims.is_cancelled(s, t.called, 1), None),
    "try_claims.mark_all_called": Case(lambda s, t: try_claims.mark_all_called(s, [(t.running, 1)]), frozenset()),
    "try_claims.request": Case(lambda s, t: try_claims.request(s, t.request_id), None),
    "try_claims.requests": Case(lambda s, t: try_claims.requests(s, [t.request_id]), {}),
    "try_claims.rescue": Case(lambda s, t: try_claims.rescue(s, t.running, 1), False),
    "try_claims.settle": Case(settle, False),
    "try_claims.settle_all": Case(settle_all, frozenset()),
    "usage.ensure_quota": Case(lambda s, t: usage.ensure_quota(s), None),  # theirs is used up
    "usage.record": Case(record_usage, StatementRefused),
    "usage.records": Case(lambda s, t: mapped(usage.records(s, session_id=t.session.id), ids), []),
    "usage.summary": Case(lambda s, t: usage.summary(s, None, None, "session"), []),
    "users.create": Case(create_own_user, True),
    "users.get": Case(lambda s, t: users.get(s, t.tenant.user_id), None),
    "users.list_all": Case(lambda s, t: mapped(users.list_all(s), lambda page: ids(page) == [s.user_id]), True),
    "users.lock_admins": Case(lambda s, t: mapped(users.lock_admins(s), lambda found: found == [s.user_id]), True),
    "users.update": Case(lambda s, t: users.update(s, t.tenant.user_id, name="x"), NotFound),
    "messages.last": Case(lambda s, t: messages.last(s, t.session.id), None),
    "run_calls.begin": Case(lambda s, t: run_calls.begin(s, t.run_id, run_call(t)), StatementRefused),
    "run_calls.count_of": Case(lambda s, t: run_calls.count_of(s, t.claimed_run, t.session.id), 0),
    "run_calls.find_open": Case(lambda s, t: run_calls.find_open(s, t.claimed_run), None),
    "run_calls.get": Case(lambda s, t: run_calls.get(s, t.claimed_run, 1), None),
    "run_calls.last_stop_reason": Case(lambda s, t: run_calls.last_stop_reason(s, t.claimed_run, t.session.id), None),
    "run_calls.list_all": Case(lambda s, t: run_calls.list_all(s, t.claimed_run), []),
    "run_calls.settle": Case(lambda s, t: run_calls.settle(s, t.call_id, CallEnd(ACTUAL)), False),
    "run_calls.tokens_of": Case(lambda s, t: run_calls.tokens_of(s, t.run_id), 0),
    "run_claims.child_session": Case(
        lambda s, t: run_claims.child_session(s, t.claimed_run, t.agent.id, "1:a"), StatementRefused
    ),
    "run_claims.count_turn": Case(lambda s, t: run_claims.count_turn(s, t.claimed_run), None),
    "run_claims.give_back": Case(lambda s, t: run_claims.give_back(s, t.claimed_run, 1), False),
    "run_claims.hold": Case(lambda s, t: run_claims.hold(s, t.claimed_run, 1), None),
    "run_claims.rescue": Case(lambda s, t: run_claims.rescue(s, t.claimed_run, 1), False),
    "run_claims.state": Case(lambda s, t: run_claims.state(s, t.claimed_run), None),
    "run_claims.use_skill": Case(
        lambda s, t: run_claims.use_skill(s, t.claimed_run, t.current.files[0].version_id), None
    ),
    "runs.cancel": Case(lambda s, t: runs.cancel(s, session_id=t.session.id), 0),
    "runs.create": Case(create_run, StatementRefused),
    "runs.end": Case(lambda s, t: runs.end(s, t.claimed_run, 1, RunStatus.SUCCEEDED), False),
    "runs.get": Case(lambda s, t: runs.get(s, t.run_id), None),
    "runs.list_all": Case(lambda s, t: mapped(runs.list_all(s, t.session.id), ids), []),
    "runs.refuse_active": Case(lambda s, t: runs.refuse_active(s, t.session.id), None),
    "sessions.end_of": Case(lambda s, t: sessions.end_of(s, t.session.id), NotFound),
    "sessions.undo_summary": Case(lambda s, t: sessions.undo_summary(s, t.session.id), False),
}


async def mapped(value: Awaitable[Any], change: Callable[[Any], object]) -> object:
    return change(await value)


def scoped_functions() -> Iterator[str]:
    """Every public coroutine of hango.store whose first parameter is a Scope."""
    for module in pkgutil.iter_modules(hango.store.__path__):
        found = importlib.import_module(f"hango.store.{module.name}")
        for name, function in inspect.getmembers(found, inspect.iscoroutinefunction):
            parameters = list(inspect.signature(function).parameters.values())
            if function.__module__ != found.__name__ or name.startswith("_") or not parameters:
                continue
            if parameters[0].annotation in ("Scope", Scope):
                yield f"{module.name}.{name}"


@pytest.fixture(scope="module")
def database(services: Services) -> Iterator[Database]:
    """Of this module alone: the reconciler of an API that another test serves would end tries whose time is over."""
    name = f"hango_isolation_{secrets.token_hex(8)}"
    clone_database(services, name)
    yield Database.of(services, name)
    drop_database(services, name)


@pytest.fixture
async def theirs(store: Store) -> Theirs:
    return await make_theirs(store)


def test_every_scoped_function_has_a_case() -> None:
    """A store function that takes a Scope cannot exist without saying what a stranger gets from it."""
    assert sorted(CASES) == sorted(scoped_functions())


@pytest.fixture(params=["both walls", "the queries alone"])
async def walls(request: pytest.FixtureRequest, database: Database, store: Store) -> AsyncIterator[Store]:
    """A store behind both walls, and one of a superuser, whom row level security does not bind."""
    if request.param == "both walls":
        yield store
        return
    opened = await Store.open(database.superuser_dsn, max_size=1)
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", sorted(CASES))
async def test_a_stranger_gets_nothing_and_changes_nothing(
    walls: Store, stranger: Principal, theirs: Theirs, database: Database, name: str
) -> None:
    """With another tenant's ids every function answers as if there were no such thing, and their rows stay."""
    case = CASES[name]
    before = everything(database, theirs.tenant.tenant_id)

    outcome: object
    try:
        async with walls.begin(stranger) as scope:
            outcome = await case.attempt(scope, theirs)
    except HangoError as error:
        outcome = type(error)

    assert outcome == case.outcome
    assert everything(database, theirs.tenant.tenant_id) == before


@pytest.mark.parametrize(
    "name", ["context_bases.find_or_create", "runs.create", "tries.create", "try_batches.create", "usage.record"]
)
async def test_a_foreign_row_and_an_absent_one_fail_alike(
    store: Store, stranger: Principal, theirs: Theirs, name: str
) -> None:
    """A key to another tenant's row fails as one to a row that does not exist: no oracle of what there is."""
    absent = SessionID(UUID("01900000-0000-7000-8000-000000000000"))
    nothing = replace(
        theirs,
        run_id=RunID(absent),
        session=replace(theirs.session, id=absent),
        current=replace(theirs.current, session_id=absent),
        base=replace(theirs.base, id=BaseID(absent)),
    )
    said_of = []
    for things in (theirs, nothing):
        with pytest.raises(StatementRefused) as raised:
            async with store.begin(stranger) as scope:
                await CASES[name].attempt(scope, things)
        said_of.append(str(raised.value))

    assert said_of[0] == said_of[1]


async def test_sql_without_a_tenant_sees_only_the_own_rows(
    store: Store, stranger: Principal, theirs: Theirs, database: Database
) -> None:
    """The second wall: a statement that forgets its tenant finds the caller's rows alone."""
    own = everything(database, stranger.tenant_id)
    async with store.read(stranger) as scope:
        for table, rows in own.items():
            query = sql.SQL("select t::text from {} t order by 1").format(sql.Identifier(table))
            cursor = await scope.conn.execute(query)
            assert [row for (row,) in await cursor.fetchall()] == rows


def test_the_app_role_without_a_tenant_sees_nothing(database: Database, theirs: Theirs) -> None:
    """hango_app without app.t sees no row of any table, also after a transaction that had one set."""
    with psycopg.connect(database.app_dsn, autocommit=True) as conn:
        for _ in range(2):
            for table in tenant_tables(conn):
                assert conn.execute(f"select from {table} limit 1".encode()).fetchall() == []
            with conn.transaction():
                conn.execute("select set_config('app.t', %s, true)", (str(theirs.tenant.tenant_id),))
                assert conn.execute("select count(*) from agents").fetchone() == (1,)


def test_the_system_role_sees_no_content(database: Database, theirs: Theirs) -> None:
    """hango_system reads users, keys, tenants, quotas, runs and tries of all; nothing that holds content, nothing by
    inheritance."""
    readable = []
    with psycopg.connect(database.app_dsn, autocommit=True) as conn:
        for table in tenant_tables(conn):
            try:
                with conn.transaction():
                    conn.execute("set local role hango_system")
                    if conn.execute(f"select from {table} limit 1".encode()).fetchall():
                        readable.append(table)
            except psycopg.errors.InsufficientPrivilege:
                pass
    assert readable == ["api_keys", "quotas", "runs", "tenants", "tries", "users"]


@pytest.mark.parametrize(
    "table",
    [
        "agent_versions",
        "audit_events",
        "context_bases",
        "file_versions",
        "message_bodies",
        "messages",
        "override_sets",
        "summaries",
    ],
)
@pytest.mark.parametrize("change", ["update {} set tenant_id = tenant_id", "delete from {}", "truncate {}"])
async def test_what_is_append_only_cannot_be_changed(store: Store, theirs: Theirs, table: str, change: str) -> None:
    """The app role may add to these tables and read them; PostgreSQL refuses the rest."""
    with pytest.raises(StatementRefused, match="sqlstate 42501"):
        async with store.begin(theirs.tenant) as scope:
            await scope.conn.execute(change.format(table).encode())


async def test_a_row_cannot_be_written_for_another_tenant(store: Store, stranger: Principal, theirs: Theirs) -> None:
    """A row that names another tenant is refused by its policy, whatever the statement says."""
    with pytest.raises(StatementRefused, match="sqlstate 42501"):
        async with store.begin(stranger) as scope:
            await scope.conn.execute(
                "insert into quotas (tenant_id, period) values (%s, '2030-01-01')", (theirs.tenant.tenant_id,)
            )


def test_times_are_of_one_clock(database: Database) -> None:
    """Times come from PostgreSQL: a default stands on every created_at."""
    with psycopg.connect(database.superuser_dsn) as conn:
        rows = conn.execute(
            "select table_name, column_default from information_schema.columns"
            " where table_schema = 'public' and column_name = 'created_at'"
            " and coalesce(column_default, '') not in ('now()', 'clock_timestamp()')"
        ).fetchall()
        (clock,) = conn.execute("select now()").fetchone() or (None,)

    assert rows == []
    assert isinstance(clock, datetime)
