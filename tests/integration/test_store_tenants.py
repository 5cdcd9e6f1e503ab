"""Tenants, users, keys, usage and the audit log."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import psycopg
import pytest

from hango.domain import (
    ApiKey,
    AuditAction,
    AuditEvent,
    Principal,
    Purpose,
    Role,
    Tenant,
    UsageGroup,
    UsageRecord,
    User,
)
from hango.errors import NotFound, QuotaExceeded
from hango.messages import Usage
from hango.store import api_keys, audit, system, tenants, usage, users
from hango.store.connection import Store
from tests.conftest import Database
from tests.rows import make_agent, make_member, make_run, make_session, make_tenant


async def test_a_new_tenant_has_an_admin_and_a_key(store: Store, database: Database) -> None:
    """Its key opens as its admin; only the secret's hash is stored; the audit log begins with what was made."""
    async with store.system() as scope:
        made = await system.create_tenant(scope, "a tenant", quota_tokens=5, admin_name="Ada")
    key = api_keys.parse_key(made.api_key)
    assert key is not None
    async with store.system() as scope:
        found = await system.principal_for_key(scope, key.prefix)
    assert found is not None
    principal, secret_hash = found
    async with store.read(principal) as own:
        user = await users.get(own, made.user_id)
        events = (await audit.list_all(own)).data
        tenant = await tenants.get(own)
    with psycopg.connect(database.superuser_dsn) as conn:
        stored = conn.execute("select k::text from api_keys k where id = %s", (principal.key_id,)).fetchone()

    assert user is not None
    assert principal == Principal(made.tenant_id, made.user_id, principal.key_id, Role.ADMIN)
    assert secret_hash == sha256(made.api_key[-43:].encode()).digest()
    assert user == User(made.user_id, "Ada", Role.ADMIN, False, user.created_at)
    assert [event.action for event in events] == [
        AuditAction.KEY_CREATE,
        AuditAction.USER_CREATE,
        AuditAction.TENANT_CREATE,
    ]
    today = datetime.now(UTC).date()
    assert tenant == Tenant(made.tenant_id, "a tenant", 5, 0, 0, today.replace(day=1), None, False)
    assert made.api_key[-43:] not in str(stored)
    assert made.api_key not in repr(made)


async def test_a_lost_key_is_made_anew(store: Store, admin: Principal) -> None:
    """An operator makes a key for a user of a tenant; for nobody there is none."""
    async with store.system() as scope:
        made = await system.create_key(scope, admin.tenant_id, admin.user_id, "again")
        key = api_keys.parse_key(made.api_key)
        assert key is not None
        found = await system.principal_for_key(scope, key.prefix)
    assert found is not None
    assert found[0] == replace(admin, key_id=found[0].key_id)
    async with store.begin(admin) as own:
        with pytest.raises(NotFound):
            await api_keys.create(own, admin.key_id, "x")


async def test_a_revoked_key_opens_nothing(store: Store, admin: Principal) -> None:
    """From the commit of the revocation on, and for good; the key is in no list."""
    async with store.begin(admin) as scope:
        made, text = await api_keys.create(scope, admin.user_id, "a key")
        assert await api_keys.get(scope, made.id) == made
        assert await api_keys.revoke(scope, made.id)
        assert not await api_keys.revoke(scope, made.id)
        assert await api_keys.get(scope, made.id) is None
        assert [key.id for key in (await api_keys.list_all(scope)).data] == [admin.key_id]
    key = api_keys.parse_key(text)
    assert key is not None
    async with store.system() as scope_of_all:
        assert await system.principal_for_key(scope_of_all, key.prefix) is None

    assert made == ApiKey(made.id, "a key", admin.user_id, made.created_at)


async def test_a_disabled_user_has_no_way_in(store: Store, admin: Principal) -> None:
    """The keys of a disabled user open nothing, and open again when the user is enabled."""
    member = await make_member(store, admin)
    async with store.begin(admin) as scope:
        _, text = await api_keys.create(scope, member.user_id, "a key")
    key = api_keys.parse_key(text)
    assert key is not None
    for disabled in (True, False):
        async with store.begin(admin) as scope:
            await users.update(scope, member.user_id, disabled=disabled)
        async with store.system() as scope_of_all:
            assert (await system.principal_for_key(scope_of_all, key.prefix) is None) == disabled


@pytest.mark.parametrize(
    "text",
    ["", "hango_", "hango_abcdefgh_" + "x" * 42, "hango_ABCDEFGH_" + "x" * 43, "hango_abcdefgh_" + "x" * 43 + "\n"],
)
def test_text_that_is_no_key_is_none(text: str) -> None:
    """A key has one form, to the character."""
    assert api_keys.parse_key(text) is None


def test_a_key_shows_no_secret() -> None:
    """Neither `str` nor `repr` of a key gives it away; `reveal` does, and is read back."""
    key = api_keys.make_key()

    assert key.secret not in f"{key} {key!r}"
    assert api_keys.parse_key(key.reveal()) == key


async def test_lists_of_keys_and_users_come_in_pages(store: Store, admin: Principal) -> None:
    """Keys of one user or of all, users, the newest first."""
    member = await make_member(store, admin)
    async with store.read(admin) as scope:
        first = await api_keys.list_all(scope, limit=1)
        second = await api_keys.list_all(scope, limit=1, cursor=first.next_cursor)
        own = await api_keys.list_all(scope, member.user_id)
        people = await users.list_all(scope, limit=1)
        rest = await users.list_all(scope, limit=1, cursor=people.next_cursor)

    assert [key.id for key in (*first.data, *second.data)] == [member.key_id, admin.key_id]
    assert second.next_cursor is None
    assert [key.id for key in own.data] == [member.key_id]
    assert [user.id for user in (*people.data, *rest.data)] == [member.user_id, admin.user_id]


async def test_a_user_changes_in_what_is_given(store: Store, admin: Principal) -> None:
    """What is not given stays."""
    async with store.begin(admin) as scope:
        made = await users.create(scope, "Bo", Role.MEMBER)
        assert await users.update(scope, made.id, name="Bea") == replace(made, name="Bea")
        changed = replace(made, name="Bea", role=Role.ADMIN, disabled=True)
        assert await users.update(scope, made.id, role=Role.ADMIN, disabled=True) == changed
        assert await users.get(scope, made.id) == changed


async def test_two_admins_cannot_step_down_at_once(store: Store, admin: Principal) -> None:
    """Who looks for another admin holds the admins, so that both cannot find each other and go."""
    second = await make_member(store, admin, Role.ADMIN)

    async def step_down(who: Principal) -> bool:
        async with store.begin(who) as scope:
            if await users.lock_admins(scope) == [who.user_id]:
                return False
            await users.update(scope, who.user_id, role=Role.MEMBER)
            return True

    assert sorted(await asyncio.gather(step_down(admin), step_down(second))) == [False, True]


async def test_a_tenant_changes_in_what_is_given(store: Store, admin: Principal) -> None:
    """None takes a limit away, what is not given stays."""
    async with store.begin(admin) as scope:
        before = await tenants.get(scope)
        named = await tenants.update(scope, name="renamed", quota_tokens=9, rate_per_minute=3, trace_llm_content=True)
        lifted = await tenants.update(scope, quota_tokens=None)

    expected = replace(before, name="renamed", quota_tokens=9, rate_per_minute=3, trace_llm_content=True)
    assert named == expected
    assert lifted == replace(expected, quota_tokens=None)


async def test_usage_is_recorded_summed_and_counted(store: Store) -> None:
    """Each call is a record and counts against the quota; sums come in groups, a cost of none is None."""
    admin = await make_tenant(store, quota_tokens=30)
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
        run_id = await make_run(scope, session)
        await usage.ensure_quota(scope)
        for purpose, model, cost in (
            (Purpose.RUN, "a/x", 0.1),
            (Purpose.RUN, "a/y", None),
            (Purpose.SUMMARY, "a/y", None),
        ):
            await usage.record(
                scope,
                purpose=purpose,
                run_id=run_id,
                session_id=session.id,
                model=model,
                usage=Usage(1, 2, 3, 4),
                cost_usd=cost,
                estimated=purpose is Purpose.SUMMARY,
            )
    async with store.read(admin) as scope:
        records = (await usage.records(scope)).data
        first = await usage.records(scope, limit=2)
        rest = await usage.records(scope, limit=2, cursor=first.next_cursor)
        summaries = (await usage.records(scope, purpose=Purpose.SUMMARY)).data
        by_model = await usage.summary(scope, None, None, "model")
        by_day = await usage.summary(scope, None, None, "day")
        by_user = await usage.summary(scope, None, None, "user")
        now = records[0].created_at
        late = await usage.summary(scope, now + timedelta(seconds=1), None, "purpose")
        until = await usage.summary(scope, now, now, "purpose")
        tenant = await tenants.get(scope)
        with pytest.raises(QuotaExceeded):
            await usage.ensure_quota(scope)

    newest = UsageRecord(
        records[0].id, Purpose.SUMMARY, records[0].run_id, None, session.id, "a/y", 1, 2, 3, 4, None, True, now
    )
    assert records[0] == newest
    assert records[2] == replace(
        newest, id=records[2].id, purpose=Purpose.RUN, model="a/x", cost_usd=0.1, estimated=False
    )
    assert records[0].run_id == run_id
    assert (*first.data, *rest.data) == records
    assert summaries == records[:1]
    assert by_model == [UsageGroup("a/x", 1, 1, 2, 3, 4, 0.1), UsageGroup("a/y", 2, 2, 4, 6, 8, None)]
    assert by_day == [UsageGroup(now.astimezone(UTC).date().isoformat(), 3, 3, 6, 9, 12, 0.1)]
    assert [group.group for group in by_user] == [str(admin.user_id)]
    assert (late, until) == ([], [])
    assert tenant.quota_used == 30


async def test_the_audit_log_is_read_in_pages(store: Store, admin: Principal) -> None:
    """Events come newest first, with who did what to what."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        await audit.record(scope, AuditAction.AGENT_CREATE, "agent", agent.id, {"fields": ["name"]})
        first = await audit.list_all(scope, limit=1)
        rest = await audit.list_all(scope, cursor=first.next_cursor)

    made = AuditEvent(
        first.data[0].id,
        AuditAction.AGENT_CREATE,
        "agent",
        agent.id,
        admin.user_id,
        {"fields": ["name"]},
        agent.created_at,
    )
    assert first.data == (made,)
    assert [event.action for event in rest.data][-1] is AuditAction.TENANT_CREATE
