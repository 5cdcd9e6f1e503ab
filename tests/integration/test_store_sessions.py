"""Sessions, the history that is only ever added to, and what a request is made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hango.chain.digest import digest
from hango.domain import LastRun, Principal, RunStatus, Session, SessionMessage, Summary
from hango.errors import Invalid, NotFound
from hango.messages import read_content
from hango.store import agents, context_bases, files, messages, sessions
from hango.store.connection import Store
from hango.store.context_bases import MAX_SKILLS, CurrentBase
from hango.store.messages import NewMessage
from tests.rows import DEFINITION, listed, make_agent, make_member, make_run, make_session, said

# Digits, key order, escapes, white space in strings and unknown members: all of it stays.
ODD = '[{"type":"zebra","b":1.10,"a":12345678901234567890123,"e":1E400,"s":" \\u00e9\\ud83d\\ude42 "}]'


def odd(role: str = "user", model: str | None = None, created_at: datetime | None = None) -> NewMessage:
    return NewMessage(role, ODD, digest(role, read_content(ODD), model), model, created_at)


async def test_a_session_comes_back_as_it_was_made(store: Store, admin: Principal) -> None:
    """An empty session of an agent; without the agent there is none."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        made = await sessions.create(scope, agent.id, "a title")
        assert await sessions.get(scope, made.id) == made
        with pytest.raises(NotFound):
            await sessions.create(scope, made.id, "x")
        await agents.delete(scope, agent.id)
        with pytest.raises(NotFound):
            await sessions.create(scope, agent.id, "x")

    assert made == Session(made.id, agent.id, "a title", 0, 0, 0, None, None, admin.user_id, made.created_at)


async def test_a_history_is_counted_as_it_grows(store: Store, admin: Principal) -> None:
    """Seqs begin at 1 and have no gap; the session counts messages and tokens, whatever the appends."""
    new = [said(n, "word " * n) for n in range(5)]
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
        assert await messages.append(scope, session.id, new[:2]) == [1, 2]
        assert await messages.append(scope, session.id, []) == []
        assert await messages.append(scope, session.id, new[2:]) == [3, 4, 5]
        counted = await sessions.get(scope, session.id)
        tokens = [m.digest.tokens for m in new]
        for after in range(6):
            for through in range(after, 6):
                found = await messages.tokens(scope, session.id, after_seq=after, through_seq=through)
                assert found == sum(tokens[after:through])

    assert counted == replace(session, messages=5, last_seq=5, tokens=sum(tokens))


async def test_a_long_history_is_one_append(store: Store, admin: Principal) -> None:
    """An append of more than one stretch has no gap, and its sums go on from stretch to stretch."""
    new = [said(n, "word " * (n % 3)) for n in range(2 * messages.STRETCH + 1)]
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))
        seqs = await messages.append(scope, session.id, new)
        counted = await sessions.get(scope, session.id)
        tokens = [m.digest.tokens for m in new]
        for after in (0, 1, messages.STRETCH, 2 * messages.STRETCH):
            found = await messages.tokens(scope, session.id, after_seq=after, through_seq=len(new))
            assert found == sum(tokens[after:])

    assert seqs == list(range(1, len(new) + 1))
    assert counted == replace(session, messages=len(new), last_seq=len(new), tokens=sum(tokens))


async def test_messages_come_back_byte_for_byte(store: Store, admin: Principal) -> None:
    """A body is the text that was written; the digest is the one that was computed, with its seq."""
    then = datetime(2020, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
    new = [odd(), odd("assistant", "another-model", then), odd("system")]
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        session = await sessions.create(scope, agent.id, "")
        run_id = await make_run(scope, session)
        new[2] = replace(new[2], run_id=run_id)
        await messages.append(scope, session.id, new)
        page = await messages.page(scope, session.id, 0, 10)
        assert await messages.page(scope, session.id, 1, 1) == page[1:2]
        assert await messages.bodies(scope, session.id, after_seq=1, through_seq=3) == {2: ODD, 3: ODD}
        assert await messages.body(scope, session.id, 3) == ODD
        assert await messages.body(scope, session.id, 4) is None
        digests = await messages.digests(scope, session.id, after_seq=0, through_seq=3)
        assert await messages.digests(scope, session.id, after_seq=1, through_seq=2) == digests[1:2]
        assert await messages.digests(scope, session.id, after_seq=3, through_seq=3) == []
        got = await sessions.get(scope, session.id)

    now = session.created_at  # one transaction has one time
    assert page == [
        SessionMessage(1, "user", ODD, None, None, now),
        SessionMessage(2, "assistant", ODD, "another-model", None, then),
        SessionMessage(3, "system", ODD, None, run_id, now),
    ]
    assert [(d.seq, d.sha256, d.preview, d.blocks) for d in digests] == [
        (n, m.digest.sha256, m.digest.preview, m.digest.blocks) for n, m in enumerate(new, 1)
    ]
    assert got is not None
    assert got.last_run == LastRun(run_id, RunStatus.QUEUED, now)


async def test_every_digest_equals_one_recomputed_from_its_body(store: Store, admin: Principal) -> None:
    """A digest is of the body that stands beside it."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["héllo", "", "🙂" * 300, "a\tb"])
        page = await messages.page(scope, session.id, 0, 10)
        found = await messages.digests(scope, session.id, after_seq=0, through_seq=4)

    again = [digest(m.role, read_content(m.content), m.model) for m in page]
    assert [(d.tokens, d.chars, d.sha256, d.blocks) for d in found] == [
        (d.tokens, d.chars, d.sha256, d.blocks) for d in again
    ]


async def test_appends_at_once_come_one_after_another(store: Store, admin: Principal) -> None:
    """The session's row is held by an append: no seq twice, no gap, and the counts are of all."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope))

    async def add(n: int) -> list[int]:
        async with store.begin(admin) as scope:
            return await messages.append(scope, session.id, [said(0, str(n)), said(1, str(n))])

    taken = await asyncio.gather(*(add(n) for n in range(6)))
    async with store.read(admin) as scope:
        found = await sessions.get(scope, session.id)
        total = await messages.tokens(scope, session.id, after_seq=0, through_seq=99)

    assert sorted(taken) == [[n, n + 1] for n in range(1, 13, 2)]
    assert found == replace(session, messages=12, last_seq=12, tokens=total)


async def test_an_append_that_fails_takes_no_seq(store: Store, admin: Principal) -> None:
    """An append is whole or not at all."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one"])

    async def fail() -> None:
        async with store.begin(admin) as scope:
            await messages.append(scope, session.id, [said(1, "two")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with store.begin(admin) as scope:
        assert await messages.append(scope, session.id, [said(1, "two")]) == [2]


async def test_a_deleted_session_is_hidden(store: Store, admin: Principal) -> None:
    """A deleted session is in no get, no list and no base, and takes no message."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one"])
        assert await sessions.delete(scope, session.id)
        assert not await sessions.delete(scope, session.id)
        assert await sessions.get(scope, session.id) is None
        assert (await sessions.list_all(scope, viewer_is_admin=True)).data == ()
        assert await context_bases.current(scope, session.id) is None
        with pytest.raises(NotFound):
            await messages.append(scope, session.id, [said(1, "two")])
        with pytest.raises(Invalid):
            await sessions.set_summary(scope, session.id, "x", 1, 1)


async def test_a_list_shows_the_own_sessions(store: Store, admin: Principal) -> None:
    """A member's list has the own sessions, an admin's all; by agent, by a part of the title, in pages."""
    member = await make_member(store, admin)
    async with store.begin(admin) as scope:
        agent, other = await make_agent(scope, shared=True), await make_agent(scope)
        first = await sessions.create(scope, agent.id, "Where is the key?")
        second = await sessions.create(scope, other.id, "No")
    async with store.begin(member) as scope:
        own = await sessions.create(scope, agent.id, "The KEY")
        page = await sessions.list_all(scope, viewer_is_admin=True, limit=2)
        assert (await sessions.list_all(scope, viewer_is_admin=False)).data == (own,)
        assert page.data == (own, second)
        rest = await sessions.list_all(scope, viewer_is_admin=True, limit=2, cursor=page.next_cursor)
        assert (rest.data, rest.next_cursor) == ((first,), None)
        assert (await sessions.list_all(scope, viewer_is_admin=True, q="key")).data == (own, first)
        assert (await sessions.list_all(scope, viewer_is_admin=True, agent_id=other.id)).data == (second,)


async def test_a_summary_stands_for_the_history_up_to_a_message(store: Store, admin: Principal) -> None:
    """The last summary is in force; it ends with a message that is there."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one", "two", "three"])
        await sessions.set_summary(scope, session.id, "first", 1, 1)
        second = await sessions.set_summary(scope, session.id, "second", 2, 1)
        for absent in (0, -1, 4):
            with pytest.raises(Invalid, match=f"there is no message {absent}"):
                await sessions.set_summary(scope, session.id, "x", absent, 1)
        found = await sessions.get(scope, session.id)

    assert second == Summary(second.id, "second", 2)
    assert found == replace(session, summary=second)


async def test_a_base_names_all_that_a_request_is_made_of(store: Store, admin: Principal) -> None:
    """The current base has the version, the history's end, the summary, and the files that the version needs."""
    definition = replace(DEFINITION, memory=("/memories/b.md", "/memories/a.md", "/memories/none.md"))
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=definition)
        written = [
            await files.write(scope, agent.id, path, path)
            for path in ("/memories/a.md", "/memories/b.md", "/skills/x/SKILL.md")
        ]
        for path in ("/memories/other.md", "/skills/x/y/SKILL.md", "/skills/SKILL.md", "/work/skills/x/SKILL.md"):
            await files.write(scope, agent.id, path, "not of a request")
        session = await make_session(scope, agent, ["one", "two"])
        summary = await sessions.set_summary(scope, session.id, "so far", 1, 2)
        found = await context_bases.current(scope, session.id)

    assert found == CurrentBase(session.id, agent.id, agent.version_id, 2, summary, tuple(map(listed, written)))


async def test_a_base_has_no_files_of_what_is_switched_off(store: Store, admin: Principal) -> None:
    """Without `memory` or `skills` among the built-ins their files are not read."""
    async with store.begin(admin) as scope:
        definition = replace(DEFINITION, memory=("/memories/a.md",), builtin=frozenset())
        agent = await make_agent(scope, definition=definition)
        await files.write(scope, agent.id, "/memories/a.md", "x")
        await files.write(scope, agent.id, "/skills/x/SKILL.md", "x")
        session = await make_session(scope, agent)
        found = await context_bases.current(scope, session.id)

    assert found == CurrentBase(session.id, agent.id, agent.version_id, 0, None, ())


async def test_a_base_lists_one_skill_more_than_are_taken(store: Store, admin: Principal) -> None:
    """Skills end with one too many, so that the chain sees that there are more."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope)
        for n in range(MAX_SKILLS + 2):
            await files.write(scope, agent.id, f"/skills/{n:03}/SKILL.md", "x")
        session = await make_session(scope, agent)
        found = await context_bases.current(scope, session.id)

    assert found is not None
    assert [file.path for file in found.files] == [f"/skills/{n:03}/SKILL.md" for n in range(MAX_SKILLS + 1)]


async def test_a_kept_base_stays_what_it_was(store: Store, admin: Principal) -> None:
    """Whatever changes afterwards, a base that was kept gives what it gave; equal bases are one row."""
    async with store.begin(admin) as scope:
        agent = await make_agent(scope, definition=replace(DEFINITION, memory=("/memories/a.md",)))
        await files.write(scope, agent.id, "/memories/a.md", "then")
        session = await make_session(scope, agent, ["one"])
        await sessions.set_summary(scope, session.id, "so far", 1, 2)
        then = await context_bases.current(scope, session.id)
        assert then is not None
        base_id = await context_bases.find_or_create(scope, then)
    async with store.begin(admin) as scope:
        await files.write(scope, agent.id, "/memories/a.md", "now")
        await files.delete(scope, agent.id, "/memories/a.md")
        await agents.update(scope, agent.id, name="x", shared=True, definition=DEFINITION)
        await messages.append(scope, session.id, [said(1, "two")])
        await sessions.set_summary(scope, session.id, "more", 2, 2)
        now = await context_bases.current(scope, session.id)
        base = await context_bases.get(scope, base_id)
        assert base is not None
        loaded = await context_bases.load(scope, base)
        assert await context_bases.find_or_create(scope, loaded or then) == base_id

    assert loaded == then
    assert now != then


async def test_equal_bases_at_once_are_one_row(store: Store, admin: Principal) -> None:
    """Two callers that keep the same base get the same id."""
    async with store.begin(admin) as scope:
        session = await make_session(scope, await make_agent(scope), ["one"])

    async def keep() -> object:
        async with store.begin(admin) as scope:
            base = await context_bases.current(scope, session.id)
            assert base is not None
            return await context_bases.find_or_create(scope, base)

    assert len(set(await asyncio.gather(*(keep() for _ in range(4))))) == 1
