"""From a base to a state: which texts of files a request gets, how much of them, and under which overrides."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from hango.chain import base as bases
from hango.chain.deps import MAX_FILE_CHARS, MAX_KEPT_CHARS, Deps
from hango.chain.middleware.memory import MAX_FILES
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import AgentID, BaseID, FileVersion, OverrideAction, PartID, Principal, Session
from hango.store import context_bases, context_overrides, files, messages, override_sets, sessions
from hango.store.connection import Scope, Store
from hango.store.context_bases import CurrentBase
from hango.store.context_overrides import NewOverride
from tests.conftest import Database
from tests.rows import DEFINITION, make_agent, make_session, said
from tests.tries import rows_of


@pytest.fixture
def deps(settings: Settings, store: Store) -> Deps:
    models = Models.load(None)
    return Deps(settings, store, Providers(settings, models), models)


async def files_of(scope: Scope, deps: Deps, agent_id: AgentID) -> dict[str, FileVersion]:
    """The files of the state that a request of the agent starts with."""
    state = await bases.build_state(scope, deps, await bases.current_of_agent(scope, agent_id))
    return dict(state.files)


async def test_a_long_text_is_cut_and_marked(store: Store, admin: Principal, deps: Deps) -> None:
    """A part has at most 262,144 characters of a file, and the file says that there is more."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, memory=("/a.md", "/b.md")))
        short = await files.write(scope, agent.id, "/a.md", "é" * MAX_FILE_CHARS)
        long = await files.write(scope, agent.id, "/b.md", "é" * (MAX_FILE_CHARS + 1))
        found = await files_of(scope, deps, agent.id)

    assert found == {"/a.md": short, "/b.md": replace(long, content="é" * MAX_FILE_CHARS, cut=True)}


async def test_memory_beyond_the_first_files_comes_without_text(store: Store, admin: Principal, deps: Deps) -> None:
    """The first 64 in the agent's order have their text; the others are listed, so that the chain can say it."""
    paths = [f"/memories/{n:03}.md" for n in reversed(range(MAX_FILES + 2))]
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, memory=("/gone.md", *paths)))
        written = {path: await files.write(scope, agent.id, path, path) for path in paths}
        found = await files_of(scope, deps, agent.id)

    assert found == written | {path: replace(written[path], content="") for path in paths[MAX_FILES:]}


@pytest.mark.parametrize("chars", [5, MAX_KEPT_CHARS + 1])
async def test_a_changed_file_is_seen_at_once(store: Store, admin: Principal, deps: Deps, chars: int) -> None:
    """What stays in memory is a version, and a change of the file is another version."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, memory=("/a.md",)))
        before = await files.write(scope, agent.id, "/a.md", "b" * chars)
        assert await files_of(scope, deps, agent.id) == {"/a.md": before}
        assert await files_of(scope, deps, agent.id) == {"/a.md": before}
        after = await files.write(scope, agent.id, "/a.md", "a" * chars)
        found = await files_of(scope, deps, agent.id)

    assert found == {"/a.md": after}


async def save(scope: Scope, session: Session, *texts: str) -> None:
    """Replace the agent's own part by these texts, and leave the session's first message out."""
    await context_overrides.replace_for_agent(
        scope,
        session.agent_id,
        [NewOverride(PartID("system:agent"), OverrideAction.REPLACE, text, "") for text in texts],
    )
    await context_overrides.replace_for_session(
        scope, session.id, [NewOverride(PartID("message:1"), OverrideAction.EXCLUDE, None, "")]
    )


async def keep(scope: Scope, session: Session) -> tuple[CurrentBase, BaseID]:
    base = await context_bases.current(scope, session.id)
    assert base is not None
    return base, await context_bases.find_or_create(scope, base)


async def load(scope: Scope, base_id: BaseID) -> CurrentBase | None:
    base = await context_bases.get(scope, base_id)
    assert base is not None
    return await context_bases.load(scope, base)


async def test_a_kept_base_has_the_overrides_of_its_moment(store: Store, admin: Principal) -> None:
    """Whatever is saved, changed or cleared afterwards, a base that was kept gives the overrides that it was kept with,
    their texts and their key included."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one", "two"])
        bare, bare_id = await keep(scope, session)
        await save(scope, session, 'be "brief"\\\té🙂')
        then, then_id = await keep(scope, session)
        await save(scope, session, "be long")
        changed, changed_id = await keep(scope, session)
        await context_overrides.replace_for_agent(scope, session.agent_id, [])
        await context_overrides.replace_for_session(scope, session.id, [])
        _, cleared_id = await keep(scope, session)
        loaded = [await load(scope, id) for id in (bare_id, then_id, changed_id)]

    assert loaded == [bare, then, changed]
    assert [override.replacement for override in then.overrides] == ['be "brief"\\\té🙂', None]
    assert cleared_id == bare_id
    assert len({bare_id, then_id, changed_id}) == 3


async def test_equal_override_sets_are_one_row(store: Store, admin: Principal, database: Database) -> None:
    """A set is kept once in a tenant, however many bases name it, and by however many at once."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session = await make_session(scope, agent, ["one"])
        await save(scope, session, "be brief")
        _, first_id = await keep(scope, session)
        await messages.append(scope, session.id, [said(1, "two")])
        _, second_id = await keep(scope, session)
        first, second = await context_bases.get(scope, first_id), await context_bases.get(scope, second_id)

    async def one_more() -> UUID:
        async with store.begin(admin) as own:
            return await override_sets.find_or_create(own, '["another"]')

    more = await asyncio.gather(*(one_more() for _ in range(4)))
    count = "select count(*) from override_sets where tenant_id = %s"

    assert first is not None
    assert second is not None
    assert first.override_set_id == second.override_set_id is not None
    assert len(set(more)) == 1
    assert rows_of(database.superuser_dsn, count, admin.tenant_id) == [{"count": 2}]


async def test_a_base_of_a_deleted_session_gives_nothing(store: Store, admin: Principal) -> None:
    """A session that is gone can be tried no more, although its base is still there."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one"])
        _, base_id = await keep(scope, session)
        await sessions.delete(scope, session.id)

        assert await load(scope, base_id) is None
