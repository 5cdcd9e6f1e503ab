"""Sessions and their messages through HTTP: made with a history, read as they came, appended to, deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.people import Person

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "What is in stock?", "created_at": "2026-11-01T08:00:00+01:00"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "A7"}}],
        "model": "anthropic/claude-sonnet-5",
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "12 boxes"}]},
    {"role": "system", "content": "The day ends."},
]


@pytest.fixture
async def agent_id(caller: Person) -> str:
    made: str = (await caller.agent())["id"]
    return made


async def all_messages(person: Person, session_id: str) -> list[dict[str, Any]]:
    reply = await person.get(f"/v1/sessions/{session_id}/messages?limit=500")
    data: list[dict[str, Any]] = reply.json()["data"]
    return data


async def test_a_session_counts_its_history(caller: Person, agent_id: str) -> None:
    """POST answers 201 with Location and the Session; GET answers the same."""
    summary = {"text": "They asked for the stock.", "through_seq": 3}
    body = {"agent_id": agent_id, "title": "stock", "messages": HISTORY, "summary": summary}
    reply = await caller.post("/v1/sessions", json=body)
    made = reply.json()

    assert (reply.status_code, reply.headers["location"]) == (201, f"/v1/sessions/{made['id']}")
    assert made == {
        "id": made["id"],
        "agent_id": agent_id,
        "title": "stock",
        "messages": 4,
        "tokens": made["tokens"],
        "summary": summary,
        "last_run": None,
        "created_by": caller.user_id,
        "created_at": made["created_at"],
    }
    assert 10 < made["tokens"] < 60
    assert (await caller.get(reply.headers["location"])).json() == made


async def test_messages_are_as_they_came(caller: Person, agent_id: str) -> None:
    """Persisted messages: text becomes a text block, everything else stays; no `model` means the agent's."""
    session = await caller.session(agent_id, messages=HISTORY)
    found = await all_messages(caller, session["id"])

    assert found == [
        {
            "seq": 1,
            "role": "user",
            "content": [{"type": "text", "text": "What is in stock?"}],
            "run_id": None,
            "model": None,
            "created_at": "2026-11-01T07:00:00Z",
        },
        *[
            {
                "seq": seq,
                "role": message["role"],
                "content": message["content"]
                if isinstance(message["content"], list)
                else [{"type": "text", "text": message["content"]}],
                "run_id": None,
                "model": message.get("model"),
                "created_at": found[seq - 1]["created_at"],
            }
            for seq, message in enumerate(HISTORY[1:], start=2)
        ],
    ]


async def test_unknown_blocks_and_digits_survive(caller: Person, agent_id: str) -> None:
    """An unknown block and a tool's input are kept byte for byte, white space outside strings apart."""
    unknown = '{"type":"hologram","n":123456789012345678901234567890,"f":1.10,"e":"caf\\u00e9","deep":{"b":1,"a":[]}}'
    call = '{"type":"tool_use","id":"c","name":"n","input":{"big":9007199254740993,"x":1e2}}'
    body = f'{{"agent_id":"{agent_id}","messages":[{{"role":"assistant","content":[{unknown} , {call}]}}]}}'

    session = (await caller.post("/v1/sessions", content=body)).json()
    shown = await caller.get(f"/v1/sessions/{session['id']}/messages")

    assert f'"content":[{unknown},{call}]' in shown.text


async def test_append_gives_the_next_numbers(caller: Person, agent_id: str) -> None:
    """POST .../messages appends in order and answers the seqs; Location leads to them."""
    session = await caller.session(agent_id, messages=HISTORY[:2])
    path = f"/v1/sessions/{session['id']}/messages"

    reply = await caller.post(path, json={"messages": HISTORY[2:]})

    assert (reply.status_code, reply.json()) == (201, {"data": [{"seq": 3}, {"seq": 4}]})
    assert (await caller.get(reply.headers["location"])).json()["data"] == (await all_messages(caller, session["id"]))[
        2:
    ]
    after = (await caller.get(f"/v1/sessions/{session['id']}")).json()
    assert (after["messages"], after["tokens"] > session["tokens"]) == (4, True)


async def test_appends_at_once_leave_no_gap(caller: Person, agent_id: str) -> None:
    """Twenty appends at once: every number once, in stretches that belong together."""
    session = await caller.session(agent_id)
    path = f"/v1/sessions/{session['id']}/messages"
    pair = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

    replies = await asyncio.gather(*[caller.post(path, json={"messages": pair}) for _ in range(20)])

    stretches = sorted([row["seq"] for row in reply.json()["data"]] for reply in replies)
    assert stretches == [[n, n + 1] for n in range(1, 41, 2)]
    assert [message["role"] for message in await all_messages(caller, session["id"])] == ["user", "assistant"] * 20


async def test_a_page_of_the_context_names_the_same_next_page_in_both_ways(caller: Person, agent_id: str) -> None:
    """GET of a page and a preview without changes are one answer, also where the summary is the whole page."""
    said = [{"role": "user", "content": str(n)} for n in range(1, 5)]
    session = await caller.session(agent_id, messages=said, summary={"text": "Before.", "through_seq": 2})
    path = f"/v1/sessions/{session['id']}/context"

    for query in ("limit=1", "limit=2", "limit=3", "limit=1&after=0", "limit=1&after=2", "limit=1&after=9"):
        page = (await caller.get(f"{path}?group=messages&{query}")).json()
        assert page == (await caller.post(f"{path}/preview?group=messages&{query}", json={})).json()


async def test_messages_go_page_by_page(caller: Person, agent_id: str) -> None:
    """`?after=&limit=` pages the history; next_after is null at its end."""
    session = await caller.session(agent_id, messages=[{"role": "user", "content": str(n)} for n in range(1, 6)])
    path = f"/v1/sessions/{session['id']}/messages"

    pages = [(await caller.get(f"{path}?after={after}&limit=2")).json() for after in (0, 2, 4, 5, 2**31 - 1)]

    assert [[message["seq"] for message in page["data"]] for page in pages] == [[1, 2], [3, 4], [5], [], []]
    assert [page["next_after"] for page in pages] == [2, 4, None, None, None]


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"role": "tool", "content": "x"}, "/messages/0/role"),
        ({"role": "user"}, "/messages/0/content"),
        ({"role": "user", "content": None}, "/messages/0/content"),
        ({"role": "user", "content": 5}, "/messages/0/content"),
        ({"role": "user", "content": {"type": "text", "text": "x"}}, "/messages/0/content"),
        ({"role": "user", "content": ["x"]}, "/messages/0/content"),
        ({"role": "user", "content": [{"text": "x"}]}, "/messages/0/content"),
        ({"role": "user", "content": [{"type": 5}]}, "/messages/0/content"),
        ({"role": "user", "content": "x", "model": ""}, "/messages/0/model"),
        ({"role": "user", "content": "x", "created_at": "2026-11-01"}, "/messages/0/created_at"),
        ({"role": "user", "content": "x", "seq": 4}, "/messages/0/seq"),
    ],
)
async def test_a_bad_message_is_422_and_stores_nothing(
    message: dict[str, Any], pointer: str, caller: Person, agent_id: str
) -> None:
    """Roles are user, assistant, system; a block is an object with a text `type`; all messages or none."""
    session = await caller.session(agent_id)
    good = {"role": "user", "content": "Hello."}

    appended = await caller.post(f"/v1/sessions/{session['id']}/messages", json={"messages": [message, good]})
    created = await caller.post("/v1/sessions", json={"agent_id": agent_id, "messages": [message, good]})

    for reply in (appended, created):
        assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, pointer)
    assert await all_messages(caller, session["id"]) == []
    assert [one["id"] for one in (await caller.get("/v1/sessions")).json()["data"]] == [session["id"]]


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ({"text": "x", "through_seq": 0}, "bad_field"),
        ({"text": "x", "through_seq": 5}, "bad_field"),
        ({"text": "x", "through_seq": 2**63}, "bad_field"),
        ({"text": "", "through_seq": 1}, "bad_field"),
        ({"text": " \u00a0\n", "through_seq": 1}, "empty_text"),
        ({"text": "x"}, "missing_field"),
    ],
)
async def test_a_bad_summary_is_422(summary: dict[str, Any], code: str, caller: Person, agent_id: str) -> None:
    """A summary says something and goes through a message that comes with it."""
    body = {"agent_id": agent_id, "messages": HISTORY, "summary": summary}
    reply = await caller.post("/v1/sessions", json=body)

    assert (reply.status_code, reply.json()["code"]) == (422, code)
    assert reply.json()["errors"][0]["pointer"].startswith("/summary")


async def test_an_empty_append_is_422(caller: Person, agent_id: str) -> None:
    """An append without a message says nothing."""
    session = await caller.session(agent_id)
    reply = await caller.post(f"/v1/sessions/{session['id']}/messages", json={"messages": []})

    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/messages")


async def test_blank_texts_and_empty_messages_are_kept(caller: Person, agent_id: str) -> None:
    """What a session holds may be blank or empty; it is listed, and not sent."""
    blank = [{"role": "assistant", "content": " \n"}, {"role": "user", "content": []}, {"role": "user", "content": ""}]
    session = await caller.session(agent_id, messages=blank)

    assert [message["content"] for message in await all_messages(caller, session["id"])] == [
        [{"type": "text", "text": " \n"}],
        [],
        [{"type": "text", "text": ""}],
    ]


async def test_a_deleted_session_is_hidden(caller: Person, agent_id: str) -> None:
    """Deleting a session hides it everywhere and keeps its audit."""
    session = await caller.session(agent_id, messages=HISTORY)
    path = f"/v1/sessions/{session['id']}"

    assert (await caller.delete(path)).status_code == 204
    gone = [
        await caller.get(path),
        await caller.delete(path),
        await caller.get(f"{path}/messages"),
        await caller.post(f"{path}/messages", json={"messages": HISTORY}),
        await caller.get(f"{path}/context"),
        await caller.post(f"{path}/context/preview", json={}),
    ]

    assert {(reply.status_code, reply.content) for reply in gone} == {(404, gone[0].content)}
    assert (await caller.get("/v1/sessions")).json()["data"] == []
    assert [row for row in await caller.audit() if row[0].startswith("session.")] == [
        ("session.create", session["id"], {"messages": 4}),
        ("session.delete", session["id"], {}),
    ]


async def test_a_list_takes_a_text_and_an_agent(caller: Person, agent_id: str) -> None:
    """Sessions take q (the title) and agent_id, the newest first, page by page."""
    other = (await caller.agent())["id"]
    made = [await caller.session(one, title=f"Lager {n}") for n, one in enumerate([agent_id, other, agent_id])]

    async def listed(**params: Any) -> list[str]:
        return [row["id"] for row in (await caller.get("/v1/sessions", params=params)).json()["data"]]

    ids = [session["id"] for session in made]
    assert await listed() == ids[::-1]
    assert await listed(agent_id=agent_id) == [ids[2], ids[0]]
    assert await listed(q="lager 1") == [ids[1]]
    assert await listed(limit=1) == [ids[2]]
    assert (await caller.get("/v1/sessions?agent_id=none")).status_code == 404


async def test_a_member_may_open_a_session_on_a_shared_agent(caller: Person) -> None:
    """A session of a shared agent belongs to who made it."""
    shared = await caller.agent(shared=True)
    member = await caller.member()

    session = await member.session(shared["id"])

    assert session["created_by"] == member.user_id
    assert (await member.get(f"/v1/sessions/{session['id']}")).status_code == 200
