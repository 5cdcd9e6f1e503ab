"""Agents, their versions, and their files."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec
import pytest

from hango.agent_definition import AgentDefinition, Builtin, Cache, Compaction, SystemBlock
from hango.domain import Agent, FileEntry, FileVersion, Principal
from hango.errors import Invalid, NotFound
from hango.messages import ToolSpec
from hango.store import agents, definitions, files
from hango.store.connection import Scope, Store
from tests.rows import DEFINITION, make_agent, make_member

WHOLE = AgentDefinition(
    model="anthropic/claude",
    system=(SystemBlock("agent", "Be “kind”.\n"), SystemBlock("rules", "none")),
    tools=(
        ToolSpec(
            "look", "Looks.", '{"type":"object","properties":{"n":{"const":1.10,"maximum":12345678901234567890123}}}'
        ),
        ToolSpec("web", definition='{"type":"web_search_1","max_uses":1e2}'),
    ),
    builtin=frozenset({Builtin.SKILLS, Builtin.MEMORY}),
    memory=("/memories/b.md", "/memories/a.md"),
    allowed_tools=("look",),
    max_output_tokens=99,
    params={"temperature": 0.5, "tool_choice": {"type": "tool", "name": "look"}},
    compaction=Compaction(trigger_tokens=1000, keep_messages=3),
    cache=Cache(enabled=False, ttl="1h"),
)


async def versions(scope: Scope, agent: Agent) -> list[int]:
    cursor = await scope.conn.execute(
        "select number from agent_versions where tenant_id = %s and agent_id = %s order by number",
        (scope.tenant_id, agent.id),
    )
    return [number for (number,) in await cursor.fetchall()]


def test_a_definition_comes_back_as_it_was() -> None:
    """A definition keeps its digits, its key order and its order of files; equal ones have equal text."""
    text = definitions.to_text(WHOLE)

    assert definitions.from_text(text) == WHOLE
    assert definitions.to_text(definitions.from_text(text)) == text
    assert msgspec.json.decode(text)["builtin"] == ["memory", "skills"]


async def test_an_agent_comes_back_as_it_was_made(store: Store, admin: Principal) -> None:
    """What was created is what is read."""
    async with store.begin(admin) as scope:
        made = await agents.create(scope, "an agent", True, WHOLE)
    async with store.read(admin) as scope:
        assert await agents.get(scope, made.id) == made
        assert await agents.definition(scope, made.version_id) == WHOLE

    assert (made.name, made.shared, made.created_by, made.definition) == ("an agent", True, admin.user_id, WHOLE)


async def test_a_change_of_the_definition_makes_a_version(store: Store, admin: Principal) -> None:
    """The old version stays as it was; a request that was made of it can be made again."""
    async with store.begin(admin) as scope:
        made = await make_agent(scope)
    async with store.begin(admin) as scope:
        changed = await agents.update(scope, made.id, name="another", shared=True, definition=WHOLE)
        assert await versions(scope, made) == [1, 2]
        assert await agents.definition(scope, made.version_id) == DEFINITION

    expected = replace(
        made,
        name="another",
        shared=True,
        definition=WHOLE,
        version_id=changed.version_id,
        updated_at=changed.updated_at,
    )
    assert changed == expected
    assert changed.updated_at > made.updated_at


@pytest.mark.parametrize("name", ["an agent", "another"])
async def test_what_leaves_the_definition_alone_makes_no_version(store: Store, admin: Principal, name: str) -> None:
    """A PATCH that changes nothing of the definition makes no version."""
    async with store.begin(admin) as scope:
        made = await make_agent(scope)
        changed = await agents.update(scope, made.id, name=name, shared=False, definition=DEFINITION)
        assert await versions(scope, made) == [1]

    assert changed == replace(made, name=name)


async def test_changes_at_once_are_numbered_in_turn(store: Store, admin: Principal) -> None:
    """Two changes of one agent come one after the other."""
    async with store.begin(admin) as scope:
        made = await make_agent(scope)

    async def change(model: str) -> None:
        async with store.begin(admin) as scope:
            await agents.update(
                scope, made.id, name="x", shared=False, definition=replace(DEFINITION, model=f"offline/{model}")
            )

    await asyncio.gather(*(change(model) for model in "abc"))
    async with store.read(admin) as scope:
        assert await versions(scope, made) == [1, 2, 3, 4]


async def test_a_deleted_agent_is_hidden(store: Store, admin: Principal) -> None:
    """A deleted agent is in no get and no list and takes no change; its versions stay."""
    async with store.begin(admin) as scope:
        made = await make_agent(scope)
        assert await agents.delete(scope, made.id)
        assert not await agents.delete(scope, made.id)
        assert await agents.get(scope, made.id) is None
        assert (await agents.list_all(scope, viewer_is_admin=True)).data == ()
        assert await agents.definition(scope, made.version_id) == DEFINITION
        with pytest.raises(NotFound):
            await agents.update(scope, made.id, name="x", shared=True, definition=DEFINITION)
        with pytest.raises(NotFound):
            await files.write(scope, made.id, "/a", "x")


async def test_a_list_shows_the_own_and_the_shared(store: Store, admin: Principal) -> None:
    """A member's list has the own and the shared agents, an admin's all; `q` is a part of the name in any case."""
    member = await make_member(store, admin)
    async with store.begin(admin) as scope:
        hidden = await agents.create(scope, "100% Hidden", False, DEFINITION)
        shared = await agents.create(scope, "Shared", True, DEFINITION)
    async with store.begin(member) as scope:
        own = await agents.create(scope, "Own", False, DEFINITION)
        assert (await agents.list_all(scope, viewer_is_admin=False)).data == (own, shared)
        assert (await agents.list_all(scope, viewer_is_admin=True)).data == (own, shared, hidden)
        assert (await agents.list_all(scope, viewer_is_admin=True, q="0% hid")).data == (hidden,)
        assert (await agents.list_all(scope, viewer_is_admin=False, q="0% hid")).data == ()


async def test_pages_follow_each_other(store: Store, admin: Principal) -> None:
    """Every item is on one page, and the last page has no cursor."""
    async with store.begin(admin) as scope:
        made = [await make_agent(scope) for _ in range(5)]
        found: list[Agent] = []
        cursor = None
        sizes = []
        while True:
            page = await agents.list_all(scope, viewer_is_admin=True, limit=2, cursor=cursor)
            found.extend(page.data)
            sizes.append(len(page.data))
            cursor = page.next_cursor
            if cursor is None:
                break

    assert found == made[::-1]
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", "bm8", "A" * 1000, "AA=="])
async def test_a_cursor_that_no_list_gave_is_refused(store: Store, admin: Principal, cursor: str) -> None:
    """Garbage in a cursor is the caller's fault, with `bad_field`."""
    async with store.read(admin) as scope:
        with pytest.raises(Invalid) as raised:
            await agents.list_all(scope, viewer_is_admin=True, cursor=cursor)

    assert raised.value.closed_code == "bad_field"


async def test_a_file_is_written_in_versions(store: Store, admin: Principal) -> None:
    """A write makes a version, the same text again makes none; a deleted file is gone, and comes back numbered on."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        first = await files.write(scope, agent.id, "/memories/ü.md", "One 🙂")
        assert await files.write(scope, agent.id, "/memories/ü.md", "One 🙂") == first
        second = await files.write(scope, agent.id, "/memories/ü.md", "Two")
        assert await files.read(scope, agent.id, "/memories/ü.md") == second
        assert await files.delete(scope, agent.id, "/memories/ü.md")
        assert not await files.delete(scope, agent.id, "/memories/ü.md")
        assert await files.read(scope, agent.id, "/memories/ü.md") is None
        third = await files.write(scope, agent.id, "/memories/ü.md", "Two")

    expected = FileVersion(first.version_id, "/memories/ü.md", "One 🙂", 1, 5, first.updated_at)
    assert first == expected
    assert second == replace(expected, version_id=second.version_id, content="Two", version=2, chars=3)
    assert third == replace(second, version_id=third.version_id, version=3)


async def test_texts_of_versions_are_read_by_id(store: Store, admin: Principal) -> None:
    """Every version's text can be read, also of one that is not the current one, and each is cut where it is asked."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        first = await files.write(scope, agent.id, "/a.md", "Ünes")
        second = await files.write(scope, agent.id, "/a.md", "Two")
        await files.delete(scope, agent.id, "/a.md")
        found = await files.texts(scope, [first.version_id, second.version_id], most_chars=3)

    assert found == {first.version_id: "Üne", second.version_id: "Two"}


async def test_files_are_listed_by_path_under_a_prefix(store: Store, admin: Principal) -> None:
    """Paths sort by code point; a prefix is text, not a pattern; the list has no text in it."""
    paths = ["/B", "/a", "/a%b/x", "/a_", "/é"]
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        made = {path: await files.write(scope, agent.id, path, "x") for path in reversed(paths)}
        await files.write(scope, agent.id, "/gone", "x")
        await files.delete(scope, agent.id, "/gone")
        first = await files.list_under(scope, agent.id, "/", limit=3)
        rest = await files.list_under(scope, agent.id, "/", limit=3, cursor=first.next_cursor)
        pattern = await files.list_under(scope, agent.id, "/a%")

    entries = [FileEntry(path, 1, 1, made[path].updated_at) for path in paths]
    assert [*first.data, *rest.data] == entries
    assert rest.next_cursor is None
    assert pattern.data == (entries[2],)


async def test_writes_at_once_are_numbered_in_turn(store: Store, admin: Principal) -> None:
    """Two first writes of one path make two versions of one file."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)

    async def write(text: str) -> int:
        async with store.begin(admin) as scope:
            return (await files.write(scope, agent.id, "/a", text)).version

    assert sorted(await asyncio.gather(*(write(text) for text in "abc"))) == [1, 2, 3]
