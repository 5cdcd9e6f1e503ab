"""Imports through HTTP: files become agents and sessions, whose context can be looked at."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from hango.chain.digest import digest
from hango.chain.formats.transcript import Format
from hango.config import Settings
from hango.domain import KeyID, Principal, Role, TenantID, UserID
from hango.messages import read_content
from hango.store import messages
from tests.people import Api, Person, serve

SAMPLES = Path(__file__).parents[1] / "samples"
MIB = 1024 * 1024


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    async with serve(settings) as served:
        yield served


@pytest.fixture
async def admin(api: Api) -> Person:
    return await api.admin()


async def imported(person: Person, content: Any, query: str = "") -> dict[str, Any]:
    """The reply of an import that must be taken; values are written as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    reply = await person.post(f"/v1/imports{query}", content=body)
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    assert reply.headers["location"] == f"/v1/sessions/{made['session_id']}"
    return made


async def refused(person: Person, content: bytes, query: str = "") -> tuple[int, str, list[tuple[str, str | None]]]:
    """Status, code, and reason and part of every detail."""
    reply = await person.post(f"/v1/imports{query}", content=content)
    problem = reply.json()
    details = [(each["reason"], each.get("part")) for each in problem.get("errors", [])]
    return reply.status_code, problem["code"], details


@pytest.mark.parametrize("format", Format)
async def test_every_format_becomes_a_session_whose_context_is_shown(admin: Person, format: Format) -> None:
    """A file of each format is recognised, and the next request of each session can be inspected."""
    (sample,) = SAMPLES.glob(f"{format}.*")

    made = await imported(admin, sample.read_bytes())

    assert made["format"] == format
    assert made["session_id"] == made["sessions"][0]["session_id"]
    for session in made["sessions"]:
        kept = (await admin.get(f"/v1/sessions/{session['session_id']}")).json()
        assert (kept["agent_id"], kept["title"], kept["messages"]) == (
            made["agent_id"],
            session["title"],
            session["messages"],
        )
        context = await admin.get(f"/v1/sessions/{session['session_id']}/context")
        assert context.status_code == 200, context.text
        parts = [part["id"] for part in context.json()["messages"]]
        assert parts == [f"message:{seq}" for seq in range(1, session["messages"] + 1)]


async def test_the_agent_has_what_the_file_says(admin: Person) -> None:
    """An imported agent has no built-ins, and the file's model, system blocks, tools and parameters."""
    made = await imported(admin, (SAMPLES / "anthropic.json").read_bytes(), "?title=Stock%20list")

    agent = (await admin.get(f"/v1/agents/{made['agent_id']}")).json()
    assert {name: agent[name] for name in ("name", "model", "builtin", "memory", "system", "max_output_tokens")} == {
        "name": "Stock list",
        "model": "anthropic/claude-sonnet-5",
        "builtin": [],
        "memory": [],
        "system": [
            {"name": "agent", "text": "You look after the stock list of a small workshop."},
            {"name": "system-2", "text": "Answer in one sentence."},
        ],
        "max_output_tokens": 2048,
    }
    assert [tool["name"] for tool in agent["tools"]] == ["count_stock"]
    assert made["sessions"] == [{"session_id": made["session_id"], "title": "Stock list", "messages": 5, "flagged": []}]


async def test_the_model_comes_from_the_query_then_the_file_then_is_offline(admin: Person) -> None:
    """Model: `model=`, else the file's with the format's provider, else offline/extract."""
    said = [{"role": "user", "content": "Hi"}]
    named = {"model": "gpt-5", "messages": said}

    for content, query, model in (
        (named, "?model=anthropic/claude-x", "anthropic/claude-x"),
        (named, "", "openai/gpt-5"),
        (said, "", "offline/extract"),
        ({"model": "bad name", "messages": said}, "", "offline/extract"),
    ):
        made = await imported(admin, content, query)
        assert (await admin.get(f"/v1/agents/{made['agent_id']}")).json()["model"] == model


async def test_thinking_stays_with_the_model_of_the_file(admin: Person) -> None:
    """Under another model than the file's, its signed thinking is that of another model."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    body = {
        "model": "claude-x",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "Hello"}]},
        ],
    }

    made = await imported(admin, body, "?model=openai/gpt-5")

    reply = await admin.get(f"/v1/sessions/{made['session_id']}/messages")
    assert [each["model"] for each in reply.json()["data"]] == [None, "anthropic/claude-x"]


async def test_digits_and_unknown_blocks_are_stored_as_they_came(admin: Person) -> None:
    """Tool inputs and unknown blocks go from import to storage and to the context byte for byte."""
    call = b'{"type":"tool_use","id":"t1","name":"add","input":{"n":100000000000000000000000000001,"m":1.10}}'
    odd = b'{"type":"hologram","data":{"x":1.50}}'
    body = b'{"messages":[{"role":"assistant","content":[ ' + call + b" , " + odd + b"]}]}"

    made = await imported(admin, body, "?format=anthropic")

    reply = await admin.get(f"/v1/sessions/{made['session_id']}/messages")
    assert b"[" + call + b"," + odd + b"]" in reply.content
    assert made["sessions"][0]["flagged"] == [
        {"part": "message:1", "reason": "unknown_block"},
        {"part": "message:1", "reason": "unpaired_tool_use"},
    ]


async def test_what_is_odd_is_shown_and_kept_from_the_wire(admin: Person) -> None:
    """An orphan result, unsigned thinking and a fifth cache mark come in with the file and do not go out."""
    mark = {"cache_control": {"type": "ephemeral"}}
    body = {
        "model": "claude-x",
        "system": [{"type": "text", "text": "A.", **mark}, {"type": "text", "text": "B.", **mark}],
        "tools": [{"name": "ls", "input_schema": {"type": "object"}, **mark}],
        "messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": "42"}]},
            {"role": "user", "content": [{"type": "text", "text": "Add.", **mark}]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Easy."}, {"type": "text", "text": "Done."}],
            },
            {"role": "user", "content": "Sure?"},
        ],
    }

    made = await imported(admin, body)

    assert made["sessions"][0]["flagged"] == [
        {"part": "message:1", "reason": "unpaired_tool_result"},
        {"part": "message:3", "reason": "unsigned_thinking"},
    ]
    reply = await admin.get(f"/v1/sessions/{made['session_id']}/context?format=provider")
    assert reply.text.count('"cache_control"') <= 4
    assert "lost" not in reply.text
    assert "Easy." not in reply.text


async def test_a_session_on_an_agent_that_is_there(api: Api, admin: Person) -> None:
    """With agent_id the session is made on it: it keeps its own prompt and tools, what was left out is flagged."""
    agent = await admin.agent(system_prompt="Mine.")
    body = {"system": "Theirs.", "messages": [{"role": "user", "content": "Hi"}]}

    made = await imported(admin, body, f"?agent_id={agent['id']}")

    assert made["agent_id"] == agent["id"]
    assert made["sessions"][0]["flagged"] == [{"part": "system:agent", "reason": "not_in_context"}]
    member, stranger = await admin.member(), await api.admin()
    for person, agent_id in ((member, agent["id"]), (stranger, agent["id"]), (admin, uuid4()), (admin, "x")):
        assert (await refused(person, b"not even JSON", f"?agent_id={agent_id}"))[:2] == (404, "not_found")
    assert (await refused(admin, b"[]", f"?agent_id={agent['id']}&model=openai/x"))[:2] == (422, "bad_field")


async def test_names_and_models_that_cannot_be_shown_do_not_stop_an_import(admin: Person) -> None:
    """A title is cleaned and cut, a writer's model that is none is left out, a time outside the calendar too."""
    message = {"role": "assistant", "content": "Hi", "model": "m" * 300, "created_at": "0001-01-01T00:00:00+14:00"}
    body = {"title": "a\nb" + "c" * 600, "messages": [{"role": "user", "content": " \t "}, message]}

    made = await imported(admin, body)

    title = "a b" + "c" * 497
    assert made["sessions"][0]["title"] == title
    assert (await admin.get(f"/v1/agents/{made['agent_id']}")).json()["name"] == title[:200]
    stored = (await admin.get(f"/v1/sessions/{made['session_id']}/messages")).json()["data"]
    assert [each["model"] for each in stored] == [None, None]


async def test_a_compacted_session_keeps_its_summary(admin: Person) -> None:
    """The compact summary of a Claude Code session is the session's: the covered messages are not sent."""
    line = {"sessionId": "s"}
    values: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Old"}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "u1"},
        {
            "type": "user", "uuid": "c", "parentUuid": "b", "isCompactSummary": True,
            "message": {"role": "user", "content": "So far: old."},
        },
        {"type": "user", "uuid": "u2", "parentUuid": "c", "message": {"role": "user", "content": "New"}},
    ]  # fmt: skip

    made = await imported(admin, "\n".join(json.dumps(value | line) for value in values).encode())

    session = (await admin.get(f"/v1/sessions/{made['session_id']}")).json()
    assert (session["messages"], session["summary"]) == (2, {"text": "So far: old.", "through_seq": 1})


@pytest.mark.parametrize(
    ("body", "query", "answer"),
    [
        (b"", "", (400, "not_json", [])),
        (b"{", "", (400, "not_json", [])),
        (b'{"messages":[{"role":"user","content":"shown","content":"sent"}]}', "", (400, "not_json", [])),
        (b'{"messages":[{"role":"user","content":NaN}]}', "", (400, "not_json", [])),
        (b"[" * 65 + b"]" * 65, "", (400, "too_deep", [])),
        (b"{}\n{", "", (400, "not_json", [("bad_line", None)])),
        (b"{}", "", (422, "unknown_format", [("unknown_format", None)])),
        (b"{}", "?format=word", (422, "bad_field", [("bad_field", None)])),
        (b"[]", "?format=anthropic&model=x", (422, "bad_model", [("bad_model", None)])),
        (
            b'{"messages":[{"role":"user","content":"before\\u0000after"}]}',
            "?format=anthropic",
            (422, "invalid_text", [("invalid_text", "message:1")]),
        ),
        (
            b'{"messages":[{"role":"user","content":"a"},{"role":"user","content":"\\ud83d"}]}',
            "",
            (422, "invalid_text", [("invalid_text", "message:2")]),
        ),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_is_kept(
    admin: Person, body: bytes, query: str, answer: tuple[int, str, list[tuple[str, str | None]]]
) -> None:
    """400 for what is not JSON, 422 with the part for what cannot be; one transaction: no agent, no session stays."""
    assert await refused(admin, body, query) == answer

    for path in ("/v1/agents", "/v1/sessions"):
        assert (await admin.get(path)).json()["data"] == []


async def test_a_fault_in_the_last_line_leaves_nothing(admin: Person) -> None:
    """An import is one transaction: a fault met after many messages were written takes all of them back."""
    good = b'{"messages":[{"role":"user","content":"a"}]}\n' * 600
    bad = b'{"messages":[{"role":"user","content":"b"},{"role":"user","content":{"no":"content"}}]}\n'

    status, code, details = await refused(admin, good + bad, "?format=anthropic")

    assert (status, code, details) == (422, "bad_field", [("bad_field", "message:2")])
    assert (await admin.get("/v1/sessions")).json()["data"] == []


async def test_a_file_that_is_too_large_is_refused(settings: Settings) -> None:
    """JSON Lines may have HANGO_IMPORT_MAX, a document 64 MiB: 413 over it, counted while it comes."""
    line = b'{"messages":[{"role":"user","content":"' + b"x" * 1000 + b'"}]}\n'

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2000):
            yield line

    async with serve(replace(settings, import_max=MIB)) as api:
        admin = await api.admin()
        counted = await admin.post("/v1/imports", content=chunks())
        declared = await admin.post("/v1/imports", content=line * 2000)
    assert [(reply.status_code, reply.json()["code"]) for reply in (counted, declared)] == [(413, "too_large")] * 2


async def test_the_audit_log_tells_of_an_import_without_its_content(admin: Person) -> None:
    """An import has its audit rows: ids, counts and the format, never a word of the file."""
    body = {"system": "canary-system", "messages": [{"role": "user", "content": "canary-text"}]}

    made = await imported(admin, body)

    assert (await admin.audit())[-2:] == [
        ("agent.create", made["agent_id"], {"import": "anthropic"}),
        ("session.import", made["session_id"], {"messages": 1}),
    ]


async def test_digests_of_imported_messages_are_those_of_their_bodies(api: Api, admin: Person) -> None:
    """Every digest equals one recomputed from its body."""
    made = await imported(admin, (SAMPLES / "claude_code.jsonl").read_bytes())

    who = Principal(TenantID(UUID(admin.tenant_id)), UserID(UUID(admin.user_id)), KeyID(uuid4()), Role.ADMIN)
    session_id = UUID(made["session_id"])
    async with api.runtime.deps.store.read(who) as scope:
        found = await messages.digests(scope, session_id, after_seq=0, through_seq=99)
        kept = await messages.page(scope, session_id, 0, 99)
    again = [digest(each.role, read_content(each.content), each.model) for each in kept]
    assert found == [msgspec.structs.replace(each, seq=seq) for seq, each in enumerate(again, 1)]
    assert len(found) == 4


def long_session(size: int) -> Iterator[bytes]:
    """A Claude Code session of about `size` bytes, in pieces."""
    parent, written, count = "null", 0, 0
    words = "The count of the stock list goes on with shelf after shelf. " * 300
    while written < size:
        count += 1
        uuid = f'"{count:08x}-0000-4000-8000-000000000000"'
        role = "user" if count % 2 else "assistant"
        line = (
            f'{{"type":"{role}","uuid":{uuid},"parentUuid":{parent},"sessionId":"s",'
            f'"message":{{"role":"{role}","id":"m{count}","content":"{words}"}}}}\n'
        ).encode()
        parent, written = uuid, written + len(line)
        yield line


async def test_a_long_file_streams_in_in_constant_memory(admin: Person) -> None:
    """A long JSON Lines file is never held: its messages are written in stretches while it is read."""
    size = 16 * MIB

    async def pieces() -> AsyncIterator[bytes]:
        for piece in long_session(size):
            yield piece

    tracemalloc.start()
    try:
        reply = await admin.post("/v1/imports?format=claude_code", content=pieces())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert reply.status_code == 201, reply.text
    assert reply.json()["sessions"][0]["messages"] == sum(1 for _ in long_session(size))
    assert peak < size / 2
