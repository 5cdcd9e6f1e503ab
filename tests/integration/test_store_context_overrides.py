"""Saved override sets: replaced whole, one after another, and read with all that a request is made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psycopg
import pytest

from hango.domain import OverrideAction, OverrideScope, PartID, Principal, Purpose, SavedOverride, UsageRecord
from hango.errors import NotFound
from hango.messages import Usage
from hango.store import agents, context_bases, context_overrides, files, messages, sessions, tenants, usage
from hango.store.connection import Store
from hango.store.context_bases import AgentBase
from hango.store.context_overrides import NewOverride
from hango.store.failures import StatementRefused
from tests.conftest import Database
from tests.rows import DEFINITION, listed, make_agent, make_member, make_session, said

HASH = "a hash"


def exclude(part: str, against: str = HASH) -> NewOverride:
    return NewOverride(PartID(part), OverrideAction.EXCLUDE, None, against)


def swap(part: str, text: str, against: str = HASH) -> NewOverride:
    return NewOverride(PartID(part), OverrideAction.REPLACE, text, against)


def saved(new: NewOverride, like: SavedOverride) -> SavedOverride:
    """What a new override is once it is saved, by the one who saved `like`, then."""
    return replace(like, part=new.part, action=new.action, replacement=new.replacement, against=new.against)


async def test_a_set_comes_back_in_the_order_it_was_given(store: Store, admin: Principal) -> None:
    """GET on both paths returns the current set: as it was given, with who saved it and when."""
    for_agent = [exclude("tool:z"), swap("system:agent", "é🙂\n'%s'", ""), exclude("system:memory:/memories/a.md")]
    for_session = [exclude("message:10"), exclude("summary"), swap("message:2", "two"), exclude("message:1")]
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session = await make_session(scope, agent)
        assert await context_overrides.list_for_agent(scope, agent.id) == []
        assert await context_overrides.list_for_session(scope, session.id) == []
        made = await context_overrides.replace_for_agent(scope, agent.id, for_agent)
        own = await context_overrides.replace_for_session(scope, session.id, for_session)
        assert await context_overrides.list_for_agent(scope, agent.id) == made
        assert await context_overrides.list_for_session(scope, session.id) == own

    then = agent.created_at  # one transaction has one time
    assert made == [
        SavedOverride(n.part, n.action, n.replacement, n.against, OverrideScope.AGENT, admin.user_id, then)
        for n in for_agent
    ]
    assert own == [
        SavedOverride(n.part, n.action, n.replacement, n.against, OverrideScope.SESSION, admin.user_id, then)
        for n in for_session
    ]


async def test_a_set_replaces_the_one_before(store: Store, admin: Principal) -> None:
    """A PUT deletes the target's rows and inserts the new set; an empty list clears; other targets keep theirs."""
    member = await make_member(store, admin)
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session, other = await make_session(scope, agent), await make_session(scope, agent)
        of_agent = await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:a")])
        of_other = await context_overrides.replace_for_session(scope, other.id, [exclude("message:1")])
        first = await context_overrides.replace_for_session(
            scope, session.id, [exclude("message:1"), exclude("message:2")]
        )
    async with store.begin(member) as scope:
        second = await context_overrides.replace_for_session(scope, session.id, [swap("message:2", "x")])
    async with store.begin(admin) as scope:
        assert await context_overrides.replace_for_session(scope, session.id, []) == []
        assert await context_overrides.list_for_session(scope, session.id) == []
        assert await context_overrides.list_for_session(scope, other.id) == of_other
        assert await context_overrides.list_for_agent(scope, agent.id) == of_agent

    by_member = replace(first[0], created_by=member.user_id, created_at=second[0].created_at)
    assert second == [saved(swap("message:2", "x"), by_member)]
    assert second[0].created_at > first[0].created_at


async def test_a_failure_keeps_the_old_set(store: Store, admin: Principal) -> None:
    """A PUT is one transaction: a failure in the middle keeps the old set."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        old = await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:a"), exclude("tool:b")])

    async def fail() -> None:
        async with store.begin(admin) as scope:
            await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:c")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    with pytest.raises(StatementRefused, match="context_overrides_agent_part_idx"):
        async with store.begin(admin) as scope:
            await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:c"), exclude("tool:c")])
    async with store.read(admin) as scope:
        assert await context_overrides.list_for_agent(scope, agent.id) == old


@pytest.mark.parametrize(
    ("column", "values", "constraint"),
    [
        ("agent", ("tool:a", "forget", None), "action_check"),
        ("agent", ("tool:a", "replace", None), "replacement_check"),
        ("agent", ("tool:a", "exclude", "x"), "replacement_check"),
        ("agent", ("message:1", "exclude", None), "agent_part_check"),
        ("agent", ("summary", "exclude", None), "agent_part_check"),
        ("session", ("system:agent", "exclude", None), "session_part_check"),
        ("session", ("tool:a", "exclude", None), "session_part_check"),
        ("session", ("summary:1", "exclude", None), "session_part_check"),
        ("both", ("tool:a", "exclude", None), "session_part_check"),
        ("none", ("tool:a", "exclude", None), "target_check"),
    ],
)
async def test_the_database_refuses_what_no_set_may_hold(
    store: Store, admin: Principal, column: str, values: tuple[str, str, str | None], constraint: str
) -> None:
    """The table's checks: one target, a replacement exactly where it replaces, parts of the target's own kind."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
    targets = (
        session.agent_id if column in ("agent", "both") else None,
        session.id if column in ("session", "both") else None,
    )

    with pytest.raises(StatementRefused, match=f"sqlstate 23514, constraint context_overrides_{constraint}"):
        async with store.begin(admin) as scope:
            await scope.conn.execute(
                "insert into context_overrides (tenant_id, created_by, id, agent_id, session_id, position, against,"
                " part, action, replacement) values (%s, %s, gen_random_uuid(), %s, %s, 0, '', %s, %s, %s)",
                (scope.tenant_id, scope.user_id, *targets, *values),
            )


async def test_a_saved_override_is_never_changed(store: Store, admin: Principal) -> None:
    """The app role may add, read and delete; PostgreSQL refuses an update."""
    with pytest.raises(StatementRefused, match="sqlstate 42501"):
        async with store.begin(admin) as scope:
            await scope.conn.execute("update context_overrides set against = ''")


async def test_a_set_goes_with_its_target(store: Store, admin: Principal, database: Database) -> None:
    """When the row of a session or an agent goes, so do its overrides."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session = await sessions.create(scope, agent.id, "")
        await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:a")])
        await context_overrides.replace_for_session(scope, session.id, [exclude("summary")])

    left = []
    with psycopg.connect(database.superuser_dsn) as conn:
        for statement in (
            "delete from sessions where id = %s",
            "with v as (delete from agent_versions where agent_id = %s) delete from agents where id = %s",
        ):
            ids = (session.id,) if "sessions" in statement else (agent.id, agent.id)
            conn.execute(statement.encode(), ids)
            query = "select part from context_overrides where tenant_id = %s"
            left.append([part for (part,) in conn.execute(query, (admin.tenant_id,)).fetchall()])

    assert left == [["tool:a"], []]


async def test_what_is_deleted_has_no_set_to_replace(store: Store, admin: Principal) -> None:
    """A hidden agent or session is held by nobody and takes no set."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
        await sessions.delete(scope, session.id)
        await agents.delete(scope, session.agent_id)
        for attempt in (
            context_overrides.hold_agent(scope, session.agent_id),
            context_overrides.hold_session(scope, session.id),
            context_overrides.replace_for_agent(scope, session.agent_id, []),
            context_overrides.replace_for_session(scope, session.id, [exclude("summary")]),
        ):
            with pytest.raises(NotFound):
                await attempt


@pytest.mark.parametrize("of", list(OverrideScope))
async def test_two_sets_at_once_come_one_after_another(store: Store, admin: Principal, of: OverrideScope) -> None:
    """Who holds first and reads afterwards sees what the one before saved: nothing is lost, nothing is doubled."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
    hold, listed, put, target, kind = (
        (
            context_overrides.hold_agent,
            context_overrides.list_for_agent,
            context_overrides.replace_for_agent,
            session.agent_id,
            "tool",
        )
        if of is OverrideScope.AGENT
        else (
            context_overrides.hold_session,
            context_overrides.list_for_session,
            context_overrides.replace_for_session,
            session.id,
            "message",
        )
    )

    async def add(n: int) -> None:
        async with store.begin(admin) as scope:
            await hold(scope, target)
            there = await listed(scope, target)
            kept = [NewOverride(o.part, o.action, o.replacement, o.against) for o in there]
            await put(scope, target, [*kept, exclude(f"{kind}:{n}")])

    await asyncio.gather(*(add(n) for n in range(1, 9)))
    async with store.read(admin) as scope:
        found = await listed(scope, target)

    assert sorted(o.part for o in found) == [f"{kind}:{n}" for n in range(1, 9)]


async def test_a_history_does_not_grow_while_its_session_is_held(store: Store, admin: Principal) -> None:
    """An append waits until the set that is checked against the history is saved."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one"])

    async def add() -> list[int]:
        async with store.begin(admin) as scope:
            return await messages.append(scope, session.id, [said(1, "two")])

    async with store.begin(admin) as scope:
        await context_overrides.hold_session(scope, session.id)
        appending = asyncio.create_task(add())
        async with asyncio.timeout(10):
            await someone_waits(store, admin)
        assert not appending.done()
        found = await context_bases.current(scope, session.id)
    assert await appending == [2]

    assert found is not None
    assert found.through_seq == 1


async def someone_waits(store: Store, who: Principal) -> None:
    """Returns when a connection to this worker's database waits for a lock."""
    found = 0
    while not found:
        # A transaction each: within one, PostgreSQL shows the activity of its first look.
        async with store.read(who) as scope:
            cursor = await scope.conn.execute(
                "select count(*) from pg_locks l join pg_stat_activity a using (pid)"
                " where not l.granted and a.datname = current_database()"
            )
            row = await cursor.fetchone()
            assert row is not None
            found = row[0]


async def test_a_base_has_the_saved_overrides(store: Store, admin: Principal) -> None:
    """The current base has the agent's set, then the session's, in the order they were given, and their key."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session, other = await make_session(scope, agent, ["one"]), await make_session(scope, agent)
        bare = await context_bases.current(scope, session.id)
        of_agent = await context_overrides.replace_for_agent(
            scope, agent.id, [swap("system:agent", 'q"\\\té🙂'), exclude("tool:a")]
        )
        of_session = await context_overrides.replace_for_session(
            scope, session.id, [exclude("message:9"), exclude("message:1", "")]
        )
        found = await context_bases.current(scope, session.id)
        again = await context_bases.current(scope, session.id)
        of_other = await context_bases.current(scope, other.id)
        await context_overrides.replace_for_session(scope, session.id, [exclude("message:9"), exclude("message:1")])
        changed = await context_bases.current(scope, session.id)
        await context_overrides.replace_for_session(scope, session.id, [])
        await context_overrides.replace_for_agent(scope, agent.id, [])
        cleared = await context_bases.current(scope, session.id)

    assert bare is not None
    assert found is not None
    assert of_other is not None
    assert changed is not None
    assert (bare.overrides, bare.override_key) == ((), "")
    assert found == again
    assert found == replace(
        bare,
        overrides=(*of_agent, *of_session),
        override_key=found.override_key,
        override_text=found.override_text,
    )
    assert of_other.overrides == tuple(of_agent)
    assert len({"", found.override_key, of_other.override_key, changed.override_key}) == 4
    assert cleared == bare


async def test_an_agents_base_is_what_a_session_has_from_it(store: Store, admin: Principal) -> None:
    """Without a session: the agent's version, the files that it needs, its own set; a deleted agent has none."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, memory=("/memories/a.md",)))
        memory = await files.write(scope, agent.id, "/memories/a.md", "a memory")
        skill = await files.write(scope, agent.id, "/skills/x/SKILL.md", "a skill")
        await files.write(scope, agent.id, "/notes.md", "not of a request")
        session = await make_session(scope, agent, ["one"])
        await context_overrides.replace_for_session(scope, session.id, [exclude("message:1")])
        bare = await context_bases.current_agent(scope, agent.id)
        own = await context_overrides.replace_for_agent(scope, agent.id, [exclude("tool:a"), exclude("system:todo")])
        found = await context_bases.current_agent(scope, agent.id)
        assert await context_bases.current_agent(scope, session.id) is None
        assert await context_bases.current(scope, agent.id) is None
        await agents.delete(scope, agent.id)
        assert await context_bases.current_agent(scope, agent.id) is None

    assert bare == AgentBase(agent.id, agent.version_id, (listed(memory), listed(skill)))
    assert found is not None
    assert found.override_key
    assert found == replace(bare, overrides=tuple(own), override_key=found.override_key)


async def test_active_overrides_are_those_of_what_is_there(store: Store, admin: Principal, stranger: Principal) -> None:
    """The gauge counts a tenant's saved overrides, without those of deleted agents and sessions."""
    counts = []
    async with store.begin(admin) as scope:
        counts.append(await context_overrides.count_active(scope))
        session = await make_session(scope, await make_agent(scope))
        await context_overrides.replace_for_agent(scope, session.agent_id, [exclude("tool:a"), exclude("tool:b")])
        await context_overrides.replace_for_session(scope, session.id, [exclude("summary")])
        counts.append(await context_overrides.count_active(scope))
        await sessions.delete(scope, session.id)
        counts.append(await context_overrides.count_active(scope))
        await agents.delete(scope, session.agent_id)
        counts.append(await context_overrides.count_active(scope))
    async with store.read(stranger) as scope:
        counts.append(await context_overrides.count_active(scope))

    assert counts == [0, 3, 2, 0, 0]


async def test_a_call_without_a_run_is_recorded(store: Store, admin: Principal) -> None:
    """usage_records takes purpose context_try and no run, and the call counts against the quota like any other."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
        record_id = await usage.record(
            scope,
            purpose=Purpose.CONTEXT_TRY,
            run_id=None,
            session_id=session.id,
            model="offline/extract",
            usage=Usage(5, 7),
            cost_usd=None,
        )
        found = (await usage.records(scope, purpose=Purpose.CONTEXT_TRY)).data
        tenant = await tenants.get(scope)

    now = session.created_at  # one transaction has one time
    assert found == (
        UsageRecord(
            record_id, Purpose.CONTEXT_TRY, None, None, session.id, "offline/extract", 5, 7, 0, 0, None, False, now
        ),
    )
    assert tenant.quota_used == 12
