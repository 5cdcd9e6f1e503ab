"""K1 for tries: words that stand in content and keys alone, through every end a try may have, are nowhere else."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from aiohttp import web
from psycopg import sql

from hango.cli.embedded.process import wait_until
from hango.config import Settings
from tests.cases.try_steps import LEASE_OVER, put_message
from tests.cases.try_world import SECONDS, TryWorld, a_try_world, echoing_the_request, in_its_words
from tests.cases.world import Person, hango, two_tenants
from tests.conftest import RUN, Database
from tests.faults.canaries import Search
from tests.faults.leaks import secret_of
from tests.providers_server import Answer, chat, floods, message, never, says
from tests.services import Services, clone_database, drop_database

WORDS = {
    "message": "canary-message-PQ71",
    "system": "canary-system-PQ72",
    "memory": "canary-memory-PQ73",
    "saved": "canary-saved-PQ74",
    "replacement": "canary-replacement-PQ75",
    "extra": "canary-extra-PQ76",
    "answer": "canary-answer-PQ77",
    "provider key": "sk-canary-provider-PQ78",
}
MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-4o")
# Where content belongs; no other table may hold any.
CONTENT = {
    "agent_versions",
    "context_overrides",
    "file_versions",
    "message_bodies",
    "messages",
    "override_sets",
    "summaries",
    "try_payloads",
    "try_requests",
}
# The words that a try keeps for its owner, by where they stand.
OF_A_TRY = {"try_payloads": {"answer"}, "try_requests": {"extra", "replacement"}, "message_bodies": {"message"}}
CHANGES = {"exclude": ["message:2"], "replace": {"message:1": WORDS["replacement"]}, "message": WORDS["extra"]}
LEAST_PLACES = 12


async def echoes_headers(request: web.Request) -> web.StreamResponse:
    """A 401 that repeats the key that it refuses, and the whole request."""
    said = json.dumps([dict(request.headers), (await request.read()).decode()])
    return web.json_response({"error": {"type": "authentication_error", "message": f"Wrong key: {said}"}}, status=401)


async def cut_in_the_answer(request: web.Request) -> web.StreamResponse:
    """Some of the answer, then nothing more."""
    response = web.StreamResponse(headers={"content-length": "100000"})
    await response.prepare(request)
    await response.write(json.dumps(message(WORDS["answer"])).encode()[:-5])
    assert request.transport is not None
    request.transport.close()
    return response


ANSWER = WORDS["answer"]
SAYS: Mapping[str, Answer] = {
    "an answer": in_its_words(ANSWER),
    "a call": in_its_words({"type": "tool_use", "id": ANSWER, "name": ANSWER, "input": {ANSWER: ANSWER}}),
    "no JSON": says(ANSWER.encode()),
    "half a JSON": says(json.dumps(message(ANSWER)).encode()[:-5]),
    "another shape": says({ANSWER: ANSWER, "content": ANSWER, "choices": [{"message": ANSWER}]}),
    "odd figures": says({**message(ANSWER, input_tokens=ANSWER), **chat(ANSWER, usage={"prompt_tokens": ANSWER})}),
    "an echo of 400": echoing_the_request(400),
    "an echo of 500": echoing_the_request(500),
    "an echo of the key": echoes_headers,
    "a redirect": says({}, status=307, headers={"location": f"http://127.0.0.1:1/{ANSWER}"}),
    "a cut": cut_in_the_answer,
    "a flood": floods,
    "nothing": never,
}
BAD_BODIES = (
    b'{"message": "%s"',
    b'{"message": "%s\\u0000"}',
    b'{"message": "%s", "message": "%s"}',
    b'{"replace": {"tool:none": "%s"}}',
    b'{"replace": {"message:99": "%s"}, "message": "%s"}',
    b'{"replace": {"message:1": "%s"}, "exclude": ["message:1"]}',
    b'{"replace": {"message:1": ["%s"]}}',
    b'{"message": "%s", "until": 99}',
    b'{"message": "%s", "exclude": ["message:1"]}',
    b'"%s"',
    b"\xff%s",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the world said in other places than tables, once its processes have ended."""

    owner: Person
    places: dict[str, bytes]


@pytest.fixture(scope="module")
def own_database(services: Services) -> Iterator[Database]:
    """A database whose every row comes from this test."""
    name = f"hango_{secrets.token_hex(8)}"
    clone_database(services, name)
    yield Database.of(services, name)
    drop_database(services, name)


@pytest.fixture(scope="module")
def told(
    settings: Settings, own_database: Database, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Told:
    """Every end of a try on both wires, refusals, poison, a batch, a cancel, a crash, a row that PostgreSQL refuses."""
    keys = dict.fromkeys(("HANGO_ANTHROPIC_API_KEY", "HANGO_OPENAI_API_KEY"), WORDS["provider key"])
    folder = tmp_path_factory.mktemp("leaks")
    more = {**keys, "HANGO_CONTEXT_TRY_TIMEOUT": "1s"}
    with a_try_world(settings, own_database, folder, **more) as world:
        owner = asyncio.run(two_tenants(own_database))[0]
        errors: list[bytes] = []
        for model in MODELS:
            session_id = a_session(world, owner, model)
            for answer in SAYS.values():
                world.answers(answer)
                try_once(world, owner, session_id)
            world.answers(in_its_words(ANSWER))
            refuse(world, owner, session_id, errors)
            batch_and_cancel(world, owner, session_id)
            crash(world, owner, session_id)
            row_refused(world, owner, session_id)
        poison(world)
        said = command_line(world, owner, session_id)
        dump = world.of_redis()
    postgres = [path for path in pytestconfig.stash[RUN].folder.rglob("*.log") if "postgres" in path.name]
    assert postgres
    logs = [*folder.rglob("*.log"), *postgres]
    spans = b"\n".join(world.receiver.raw)
    assert b"context_try" in spans
    return Told(
        owner,
        {
            "Redis": dump,
            "the exporter": spans,
            "the command line": said,
            "settings": repr(world.settings).encode() + repr(Settings.from_env(world.environment)).encode(),
            **{f"log {path.name} of {path.parent.name}": path.read_bytes() for path in logs},
            **{f"error {number}": body for number, body in enumerate(errors)},
        },
    )


def a_session(world: TryWorld, owner: Person, model: str) -> str:
    agent = {
        "name": "stock",
        "model": model,
        "builtin": ["memory"],
        "memory": ["/memories/AGENTS.md"],
        "system": [{"name": "agent", "text": WORDS["system"]}],
        "max_output_tokens": 50,
    }
    agent_id = owner.make(world.server, "/v1/agents", agent)["id"]
    path = f"/v1/agents/{agent_id}/files/memories/AGENTS.md"
    owner.send(world.server, "PUT", path, {"content": WORDS["memory"]}).raise_for_status()
    texts = (WORDS["message"], f"No {WORDS['message']}.", f"And {WORDS['message']}?")
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    session = owner.make(world.server, "/v1/sessions", {"agent_id": agent_id, "messages": messages})
    saved = [{"part": "message:3", "action": "replace", "replacement": WORDS["saved"]}]
    path = f"/v1/sessions/{session['id']}/context-overrides"
    owner.send(world.server, "PUT", path, {"overrides": saved}).raise_for_status()
    return str(session["id"])


def try_once(world: TryWorld, owner: Person, session_id: str) -> dict[str, Any]:
    return world.until(owner, start(world, owner, session_id))


def start(world: TryWorld, owner: Person, session_id: str) -> str:
    made = owner.send(world.server, "POST", f"/v1/sessions/{session_id}/context/try", CHANGES)
    assert made.status_code == 202, made.text
    return str(made.json()["id"])


def refuse(world: TryWorld, owner: Person, session_id: str, errors: list[bytes]) -> None:
    """Bodies that nobody takes: what is wrong is named, what it says is not."""
    for path in ("context/try", "context/preview", "context/try-batches"):
        for body in BAD_BODIES:
            raw = body.replace(b"%s", WORDS["extra"].encode())
            raw = b'{"variants": [' + raw + b"]}" if "batches" in path else raw
            reply = owner.send(world.server, "POST", f"/v1/sessions/{session_id}/{path}", raw=raw)
            assert reply.status_code in (400, 422), (path, body, reply.text)
            errors.append(reply.content)
    stranger = owner.member(world.server)
    for key in (stranger.key, "hango_nonsense", f"{owner.key}x"):
        reply = Person(key).send(world.server, "POST", f"/v1/sessions/{session_id}/context/try", CHANGES)
        assert reply.status_code in (401, 404), reply.text
        errors.append(reply.content)


def batch_and_cancel(world: TryWorld, owner: Person, session_id: str) -> None:
    body = {"variants": [CHANGES, {"message": WORDS["extra"]}], "repeats": 2}
    batch = owner.make(world.server, f"/v1/sessions/{session_id}/context/try-batches", body)
    owner.send(world.server, "GET", f"/v1/try-batches/{batch['id']}?wait=30").raise_for_status()
    asked = len(world.calls())
    world.answers(never)
    try_id = start(world, owner, session_id)
    world.until_called(asked + 1)
    owner.send(world.server, "POST", f"/v1/tries/{try_id}/cancel").raise_for_status()
    assert world.until(owner, try_id)["status"] == "cancelled"


def crash(world: TryWorld, owner: Person, session_id: str) -> None:
    """The worker dies in the middle of a call."""
    asked = len(world.calls())
    try_id = start(world, owner, session_id)
    world.until_called(asked + 1)
    world.worker.kill()
    world.worker.start()
    world.change(LEASE_OVER, try_id)
    assert world.until(owner, try_id)["status"] == "lost"


def row_refused(world: TryWorld, owner: Person, session_id: str) -> None:
    """PostgreSQL's words for a broken rule hold the whole row: the answer, in this case."""
    world.answers(in_its_words(ANSWER))
    world.change("alter table try_payloads add constraint forced check (answer is null) not valid")
    try_id, log = start(world, owner, session_id), world.worker.log_file
    assert wait_until(lambda: any(try_id in line and "error" in line for line in log.read_text().splitlines()), SECONDS)
    world.change(LEASE_OVER, try_id)
    assert world.until(owner, try_id)["status"] == "lost"
    world.change("alter table try_payloads drop constraint forced")


def poison(world: TryWorld) -> None:
    """Words of others in the queue are counted and dropped."""
    for number, word in enumerate((ANSWER, json.dumps({"args": [ANSWER]}), json.dumps({"actor_name": ANSWER}))):
        put_message(world, word.encode(), f"poison {number}")
    log = world.worker.log_file
    assert wait_until(lambda: log.read_text().count('"poison_message"') == 3, SECONDS)
    assert wait_until(lambda: not world.redis.hlen("hango:tries.msgs"), SECONDS)


def command_line(world: TryWorld, owner: Person, session_id: str) -> bytes:
    """What it says beside the answer: refusals, ends, what is not there."""
    extra, replaced = ("--message", WORDS["extra"]), ("--replace", f"tool:none={WORDS['replacement']}")
    words = [
        ("try", "--session", session_id, *extra),
        ("try", "--session", session_id, *extra, *replaced),
        ("try", "--session", session_id, *extra, "--until", "99"),
        ("try", "--session", "01890000-0000-7000-8000-000000000000", *extra),
        ("try", "--session", session_id, *extra, "--no-wait"),
        ("compare", "--session", session_id, "--without", "message:2", "--yes"),
    ]
    return "".join(hango(world.server, owner, "context", *one)[2] for one in words).encode()


def test_content_and_keys_are_nowhere_else(told: Told) -> None:
    """0 hits in logs at DEBUG, PostgreSQL's log, spans and metrics, Redis, errors, stderr and the settings' repr."""
    search = Search({**WORDS, "API key": secret(told.owner)})
    assert len(told.places) > LEAST_PLACES
    assert [(place, search.found(text)) for place, text in told.places.items() if search.found(text)] == []


def test_no_other_table_holds_content(told: Told, own_database: Database) -> None:
    """0 hits in tries, bills, audit and every other table that is not for content; no key is in any table."""
    content, keys = Search(WORDS), Search({"API key": secret(told.owner), "provider key": WORDS["provider key"]})
    tables = rows_by_table(own_database)

    found = {name: set(content.found(rows)) for name, rows in tables.items()}
    assert {name: words for name, words in found.items() if words and name not in CONTENT} == {}
    assert {name for name, rows in tables.items() if keys.found(rows)} == set()
    # The control: the same search finds what is kept where it belongs.
    assert {name: words for name, words in OF_A_TRY.items() if not words <= found[name]} == {}
    assert {name for name in ("audit_events", "usage_records", "tries", "try_batches") if not tables[name]} == set()


def secret(person: Person) -> str:
    return secret_of(person.key or "")


def rows_by_table(database: Database) -> dict[str, bytes]:
    with psycopg.connect(database.superuser_dsn) as connection:
        names = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        found = {}
        for (name,) in names:
            statement = sql.SQL("select coalesce(string_agg(t::text, chr(10)), '') from {} t").format(
                sql.Identifier(name)
            )
            row = connection.execute(statement).fetchone()
            assert row is not None
            found[name] = row[0].encode()
    return found
