"""Who may do what: every row of the table of routes for every kind of caller. What is not yours is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from hango.api.authz import PUBLIC
from hango.api.endpoint import Row
from hango.api.routes import ROUTES
from tests.people import KEEPS_NONE, STARTS, Api, Person, a_session
from tests.runs import see_through

OWNER, OTHER, ADMIN = "owner", "other", "admin"
EVERYONE = {OWNER, OTHER, ADMIN}

# Who gets through, of one tenant: the member who made the thing, another member, an admin. Written by hand, not
# computed: a row of the table of routes without a line here fails.
EXPECTED: dict[str, set[str]] = {
    "GET /v1/me": EVERYONE,
    "GET /v1/agents": EVERYONE,
    "POST /v1/agents": EVERYONE,
    "GET /v1/agents/{agent_id}": {OWNER, ADMIN},
    "PATCH /v1/agents/{agent_id}": {OWNER, ADMIN},
    "DELETE /v1/agents/{agent_id}": {OWNER, ADMIN},
    "GET /v1/agents/{agent_id}/files": {OWNER, ADMIN},
    "GET /v1/agents/{agent_id}/files/{path:path}": {OWNER, ADMIN},
    "PUT /v1/agents/{agent_id}/files/{path:path}": {OWNER, ADMIN},
    "DELETE /v1/agents/{agent_id}/files/{path:path}": {OWNER, ADMIN},
    "GET /v1/sessions": EVERYONE,
    "POST /v1/sessions": EVERYONE,
    "GET /v1/sessions/{session_id}": {OWNER, ADMIN},
    "DELETE /v1/sessions/{session_id}": {OWNER, ADMIN},
    "GET /v1/sessions/{session_id}/messages": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/messages": {OWNER, ADMIN},
    "POST /v1/imports": EVERYONE,
    "GET /v1/sessions/{session_id}/context": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/context/preview": {OWNER, ADMIN},
    "GET /v1/agents/{agent_id}/context-overrides": {OWNER, ADMIN},
    "PUT /v1/agents/{agent_id}/context-overrides": {OWNER, ADMIN},
    "GET /v1/sessions/{session_id}/context-overrides": {OWNER, ADMIN},
    "PUT /v1/sessions/{session_id}/context-overrides": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/runs": {OWNER, ADMIN},
    "GET /v1/sessions/{session_id}/runs": {OWNER, ADMIN},
    "GET /v1/runs/{run_id}": {OWNER, ADMIN},
    "POST /v1/runs/{run_id}/cancel": {OWNER, ADMIN},
    "GET /v1/runs/{run_id}/calls": {OWNER, ADMIN},
    "GET /v1/runs/{run_id}/calls/{n}/context": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/summary/preview": {OWNER, ADMIN},
    "GET /v1/summary-previews/{preview_id}": {OWNER, ADMIN},
    "PUT /v1/sessions/{session_id}/summary": {OWNER, ADMIN},
    "DELETE /v1/sessions/{session_id}/summary": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/context/try": {OWNER, ADMIN},
    "GET /v1/sessions/{session_id}/tries": {OWNER, ADMIN},
    "GET /v1/tries/{try_id}": {OWNER, ADMIN},
    "POST /v1/tries/{try_id}/cancel": {OWNER, ADMIN},
    "POST /v1/sessions/{session_id}/context/try-batches": {OWNER, ADMIN},
    "GET /v1/sessions/{session_id}/try-batches": {OWNER, ADMIN},
    "GET /v1/try-batches/{batch_id}": {OWNER, ADMIN},
    "POST /v1/try-batches/{batch_id}/cancel": {OWNER, ADMIN},
    "GET /v1/try-batches/{batch_id}/tries": {OWNER, ADMIN},
    "GET /v1/api-keys": EVERYONE,
    "POST /v1/api-keys": EVERYONE,
    "DELETE /v1/api-keys/{key_id}": {OWNER, ADMIN},
    "GET /v1/users": {ADMIN},
    "POST /v1/users": {ADMIN},
    "PATCH /v1/users/{user_id}": {ADMIN},
    "GET /v1/tenant": {ADMIN},
    "PATCH /v1/tenant": {ADMIN},
    "GET /v1/usage": {ADMIN},
    "GET /v1/usage/records": {ADMIN},
    "GET /v1/audit": {ADMIN},
}
# On a shared agent every member of the tenant may do this.
SHARED = {
    "GET /v1/agents/{agent_id}",
    "GET /v1/agents/{agent_id}/files",
    "GET /v1/agents/{agent_id}/files/{path:path}",
    "GET /v1/agents/{agent_id}/context-overrides",
}
PUBLIC_ROUTES = {"GET /healthz", "GET /readyz", "GET /openapi.json", "GET /docs"}

# What a session must have for a route to have something to do.
SUMMARIZED = {"DELETE /v1/sessions/{session_id}/summary": {"summary": {"text": "They said hello.", "through_seq": 1}}}

NOT_JSON = b"{"


def name(row: Row) -> str:
    return f"{row.method} {row.path}"


GUARDED = [row for row in ROUTES if row.access is not PUBLIC]
TARGETED = [row for row in GUARDED if row.access.param]
guarded = pytest.mark.parametrize("row", GUARDED, ids=name)
targeted = pytest.mark.parametrize("row", TARGETED, ids=name)


@dataclass(frozen=True)
class People:
    api: Api
    owner: Person
    other: Person
    admin: Person
    stranger: Person  # the admin of another tenant

    def of_tenant(self) -> dict[str, Person]:
        return {OWNER: self.owner, OTHER: self.other, ADMIN: self.admin}


@pytest.fixture
async def people(api: Api) -> People:
    admin = await api.admin()
    return People(api, await admin.member(), await admin.member(), admin, await api.admin())


async def make_target(row: Row, people: People, *, shared: bool = False) -> str:
    """A new thing of the owner's that the row is about; its id."""
    owner = people.owner
    if row.access.param == "key_id":
        key = await owner.make("/v1/api-keys", name="key")
        return str(key["id"])
    if row.access.param == "user_id":
        return owner.user_id
    agent = await owner.agent(shared=shared, compaction=KEEPS_NONE)
    if row.access.param in ("session_id", "try_id", "batch_id", "run_id", "preview_id"):
        session = await a_session(owner, agent["id"], **SUMMARIZED.get(name(row), {}))
        start = STARTS.get(f"{{{row.access.param}}}")
        made = await start(owner, session["id"]) if start else session
        if "{n}" in row.path:
            await see_through(people.api, owner, made["id"])
        return str(made["id"])
    written = await owner.put(f"/v1/agents/{agent['id']}/files/notes.md", json={"content": "x"})
    assert written.status_code == 201
    return str(agent["id"])


async def ask(row: Row, person: Person, target: str = "") -> httpx2.Response:
    """Ask for the row's thing. A body is sent broken: who may gets as far as a 400, and nothing is changed."""
    path = row.path.replace("{path:path}", "notes.md").replace("{n}", "1")
    if row.access.param:
        path = path.replace(f"{{{row.access.param}}}", target)
    return await person.call(row.method, path, content=NOT_JSON if row.body or row.takes else None)


def got_through(row: Row, reply: httpx2.Response) -> bool:
    if row.body or row.takes:
        return reply.status_code == 400
    return reply.status_code == row.status


def seen(reply: httpx2.Response) -> tuple[int, list[tuple[str, str]], bytes]:
    """All that a caller can see of an answer."""
    return reply.status_code, sorted(reply.headers.items()), reply.content


def test_every_route_has_an_expectation() -> None:
    """A route without a line in the authz table fails."""
    assert {name(row) for row in GUARDED} == set(EXPECTED)
    assert {name(row) for row in ROUTES if row.access is PUBLIC} == PUBLIC_ROUTES
    assert {name(row) for row in TARGETED} >= SHARED


@guarded
async def test_who_gets_through(row: Row, people: People) -> None:
    """Owner, another member and an admin get through exactly where the table says so; the rest is a 404."""
    through = set()
    for kind, person in people.of_tenant().items():
        target = await make_target(row, people) if row.access.param else ""
        reply = await ask(row, person, target)
        if got_through(row, reply):
            through.add(kind)
        else:
            assert reply.status_code == 404

    assert through == EXPECTED[name(row)]


@targeted
async def test_a_shared_agent_is_read_by_all_and_written_by_its_own(row: Row, people: People) -> None:
    """A shared agent is read by every member of the tenant; a write by one who is neither creator nor admin is 404."""
    reply = await ask(row, people.other, await make_target(row, people, shared=True))

    assert got_through(row, reply) == (name(row) in SHARED)


@guarded
async def test_without_a_good_key_there_is_one_answer(row: Row, api: Api, people: People) -> None:
    """401 for no, an unknown, a wrong and a revoked key, and for a disabled user: one body for all."""
    revoked = await people.owner.make("/v1/api-keys", name="to be revoked")
    assert (await people.owner.delete(f"/v1/api-keys/{revoked['id']}")).status_code == 204
    leaver = await people.admin.member()
    disabled = await people.admin.patch(f"/v1/users/{leaver.user_id}", json={"disabled": True})
    assert disabled.status_code == 200
    target = await make_target(row, people) if row.access.param else ""
    good = people.owner.key or ""
    keys = [
        None,
        "",
        "hango",
        "hango_aaaaaaaa_" + "A" * 43,
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good[:-1],
        good + "A",
        good.upper(),
        revoked["key"],
        leaver.key,
    ]

    answers = [seen(await ask(row, replace(api.anyone, key=key), target)) for key in keys]
    answers.append(seen(await ask(row, replace(api.anyone, client=_with_key_in_address(api, good)), target)))

    assert answers[0][0] == 401
    assert answers == [answers[0]] * len(answers)


def _with_key_in_address(api: Api, key: str) -> Any:
    client = api.client

    class Addressed:
        async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
            return await client.request(method, f"{path}?api_key={key}&access_token={key}", **options)

    return Addressed()


@targeted
async def test_not_yours_and_not_there_are_the_same_bytes(row: Row, people: People) -> None:
    """Another tenant's, another member's, a deleted, a never made and a malformed id: one status, headers, body."""
    target = await make_target(row, people)
    # A user is never deleted; a preview goes with its session, which it does not name.
    gone = str(uuid4()) if row.access.param in ("user_id", "preview_id") else await make_target(row, people)
    delete = {"agent_id": "/v1/agents/", "session_id": "/v1/sessions/", "key_id": "/v1/api-keys/"}
    made = {"try_id": "/v1/tries/", "batch_id": "/v1/try-batches/", "run_id": "/v1/runs/"}
    if row.access.param in delete:
        assert (await people.owner.delete(delete[row.access.param] + gone)).status_code == 204
    if row.access.param in made:  # it goes with its session
        session = (await people.owner.get(made[row.access.param] + gone)).json()["session_id"]
        assert (await people.owner.delete(delete["session_id"] + session)).status_code == 204
    never = str(uuid4())
    cases: list[tuple[Person, str]] = [
        (people.owner, never),
        (people.admin, never),
        (people.stranger, target),
        (people.other, target),
        (people.owner, gone),
        (people.admin, gone),
        *[(people.admin, bad) for bad in malformed(target)],
    ]

    answers = [seen(await ask(row, person, wanted)) for person, wanted in cases]

    assert answers[0][0] == 404
    assert answers == [answers[0]] * len(answers)


def malformed(good: str) -> list[str]:
    return [
        good.upper(),
        good.replace("-", ""),
        f"{{{good}}}",
        f"urn:uuid:{good}",
        good[:-1],
        good + "0",
        good[:-1] + "٥",
        "%20" + good,
        good + "%00",
        good + "%0a",
        "1",
        "..",
        "';%20select%20pg_sleep(8)--",
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/sessions", lambda target: {"agent_id": target}),
        ("/v1/api-keys", lambda target: {"name": "x", "user_id": target}),
    ],
)
async def test_an_id_in_a_body_is_guarded_alike(
    path: str, body: Callable[[str], dict[str, str]], people: People
) -> None:
    """A body that names what is not yours gets the same 404 as one that names what is not there."""
    agent = await people.owner.agent()
    target = agent["id"] if path == "/v1/sessions" else people.owner.user_id
    cases = [(people.other, target), (people.stranger, target), (people.owner, str(uuid4())), (people.owner, "x")]

    answers = [seen(await person.post(path, json=body(wanted))) for person, wanted in cases]

    assert answers[0][0] == 404
    assert answers == [answers[0]] * len(answers)


async def test_lists_show_what_one_may_see(people: People) -> None:
    """A member lists the own and the shared agents and the own sessions and keys, an admin the tenant's."""
    private = await people.owner.agent(name="private")
    shared = await people.owner.agent(name="shared", shared=True)
    session = await people.owner.session(private["id"])

    async def listed(person: Person) -> tuple[set[str], set[str]]:
        agents, sessions = [(await person.get(path)).json()["data"] for path in ("/v1/agents", "/v1/sessions")]
        return {row["id"] for row in agents}, {row["id"] for row in sessions}

    assert await listed(people.owner) == ({private["id"], shared["id"]}, {session["id"]})
    assert await listed(people.other) == ({shared["id"]}, set())
    assert await listed(people.admin) == ({private["id"], shared["id"]}, {session["id"]})
    assert await listed(people.stranger) == (set(), set())


async def test_a_revoked_key_opens_nothing_from_the_next_call_on(people: People) -> None:
    """Revocation holds from the next call; a role that changed holds from the next call too."""
    second = await people.owner.make("/v1/api-keys", name="second")
    holder = replace(people.owner, key=second["key"])
    assert (await holder.get("/v1/me")).status_code == 200
    assert (await people.owner.delete(f"/v1/api-keys/{second['id']}")).status_code == 204
    assert (await holder.get("/v1/me")).status_code == 401

    assert (await people.other.get("/v1/tenant")).status_code == 404
    assert (await people.admin.patch(f"/v1/users/{people.other.user_id}", json={"role": "admin"})).status_code == 200
    assert (await people.other.get("/v1/tenant")).status_code == 200
