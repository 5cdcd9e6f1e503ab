"""From a base to a state: which texts of files a request gets, and how much of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hango.chain import base as bases
from hango.chain.deps import MAX_FILE_CHARS, MAX_KEPT_CHARS, Deps
from hango.chain.middleware.memory import MAX_FILES
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import AgentID, FileVersion, Principal
from hango.store import files
from hango.store.connection import Scope, Store
from tests.rows import DEFINITION, make_agent


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
