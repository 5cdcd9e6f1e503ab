"""Bad input: the list of 400, 413 and 422, bodies that nobody expects, and headers on every answer. Never a 5xx."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hango.api.authz import PUBLIC
from hango.api.bodies import BODY_MOST
from hango.api.endpoint import Row
from hango.api.routes import ROUTES
from hango.config import Settings
from tests.people import Api, Person, is_problem, path_of, serve

CANARY = "canary-91c2"
MIB = 1024 * 1024


def name(row: Row) -> str:
    return f"{row.method} {row.path}"


WITH_BODY = [row for row in ROUTES if row.body]
with_body = pytest.mark.parametrize("row", WITH_BODY, ids=name)


NOT_JSON = {
    "nothing": b"",
    "half a body": b'{"name":',
    "not UTF-8": b'{"name":"\xff"}',
    "UTF-16": '{"name":"x"}'.encode("utf-16"),
    "NaN": b'{"name":NaN}',
    "Infinity": b'{"name":-Infinity}',
    "doubled keys": b'{"name":"shown","name":"sent"}',
    "doubled keys inside": b'{"messages":[{"role":"user","content":"shown","content":"sent"}]}',
    "two values": b"{}{}",
    "a form": b"name=x&model=y",
}


@with_body
async def test_what_is_not_json_is_400(row: Row, caller: Person) -> None:
    """400 not_json: not JSON, bad UTF-8, NaN or Infinity, duplicate keys; nesting over 64 is too_deep."""
    path = await path_of(row, caller)
    for body in NOT_JSON.values():
        reply = await caller.call(row.method, path, content=body)
        assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (400, "not_json", True)
    for body in (b"[" * 65 + b"]" * 65, b'{"a":' * 100_000):
        reply = await caller.call(row.method, path, content=body)
        assert (reply.status_code, reply.json()["code"]) == (400, "too_deep")


@with_body
async def test_a_body_over_8_mib_is_413(row: Row, caller: Person) -> None:
    """413 body over 8 MiB, declared or in chunks without a length; it is counted while it is read."""
    path = await path_of(row, caller)
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += MIB
            yield b" " * MIB

    declared = await caller.call(row.method, path, content=b" " * (BODY_MOST + 1))
    chunked = await caller.call(row.method, path, content=chunks())

    assert (declared.status_code, declared.json()["code"]) == (413, "too_large")
    assert (chunked.status_code, chunked.json()["code"]) == (413, "too_large")
    assert sent <= BODY_MOST + 2 * MIB


@with_body
async def test_a_broken_rule_is_422_and_says_where(row: Row, caller: Person) -> None:
    """422 with reason and pointer: an unknown field, a body that is no object, NUL or half of a surrogate pair."""
    path = await path_of(row, caller)

    async def first(body: bytes) -> tuple[int, str, str, str]:
        reply = await caller.call(row.method, path, content=body)
        assert is_problem(reply)
        one = next(error for error in reply.json()["errors"] if error["reason"] != "missing_field")
        return reply.status_code, reply.json()["code"], one["reason"], one["pointer"]

    status, _, reason, pointer = await first(b'{"no_such_field":1}')
    assert (status, reason, pointer) == (422, "unknown_field", "/no_such_field")
    assert await first(b"[]") == (422, "bad_field", "bad_field", "")
    assert await first(b'{"no_such_field":"a\\u0000b"}') == (422, "invalid_text", "invalid_text", "/no_such_field")
    assert await first(b'{"deep":[{"a":"\\ud83d"}]}') == (422, "invalid_text", "invalid_text", "/deep/0/a")
    assert await first(b'{"a\\u0000b":1}') == (422, "invalid_text", "invalid_text", "")


async def test_a_bad_body_on_anothers_session_is_404(caller: Person) -> None:
    """Ownership is checked before the body: a bad body on somebody else's session is a 404."""
    path = await path_of(next(row for row in WITH_BODY if row.path.endswith("/messages")), caller)
    member = await caller.member()
    for body in (b"{", b" " * (BODY_MOST + 1), b'{"messages":[]}'):
        assert (await member.post(path, content=body)).status_code == 404


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/v1/agents?limit=0", "limit"),
        ("/v1/agents?limit=501", "limit"),
        ("/v1/agents?limit=%2050", "limit"),
        ("/v1/agents?limit=5_0", "limit"),
        ("/v1/agents?limit=%D9%A5", "limit"),
        ("/v1/agents?limit=1&limit=2", "limit"),
        ("/v1/sessions?cursor=!!", "cursor"),
        ("/v1/sessions?cursor=bm90IGFuIGlk", "cursor"),
        ("/v1/audit?cursor=x", "cursor"),
        ("/v1/usage?group_by=colour", "group_by"),
        ("/v1/usage?from=yesterday", "from"),
        ("/v1/usage?to=2026-02-30", "to"),
        ("/v1/usage/records?purpose=fun", "purpose"),
    ],
)
async def test_a_bad_query_is_422(path: str, parameter: str, caller: Person) -> None:
    """422 `bad_field`: a query parameter that cannot be read, named in the sentence."""
    reply = await caller.get(path)

    assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (422, "bad_field", True)
    assert parameter in reply.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/agents?q=a%00b", "/v1/sessions?q=%00", "/v1/audit?cursor=a%00"])
async def test_a_nul_in_a_query_is_422(path: str, caller: Person) -> None:
    """422 `invalid_text`: NUL reaches no database."""
    reply = await caller.get(path)

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_text")


async def test_an_unknown_path_and_method_are_problems_too(caller: Person) -> None:
    """404 and 405 of the router are problem documents; HEAD is GET without a body, OPTIONS tells the methods."""
    missing = await caller.get("/v1/nothing/here")
    slash = await caller.get("/v1/agents/")
    wrong = await caller.delete("/v1/agents")
    trace = await caller.call("TRACE", "/v1/agents")
    head, got = await caller.call("HEAD", "/v1/me"), await caller.get("/v1/me")
    options = await caller.call("OPTIONS", "/v1/agents")

    assert [(one.status_code, is_problem(one)) for one in (missing, slash)] == [(404, True)] * 2
    assert missing.content == slash.content
    assert [(one.status_code, one.headers["allow"], is_problem(one)) for one in (wrong, trace)] == [
        (405, "GET, HEAD, OPTIONS, POST", True)
    ] * 2
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(got.content)))
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")


WANTED_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}


async def test_every_answer_has_the_security_headers(api: Api, caller: Person) -> None:
    """Security headers on every response, errors included: all routes and all error codes."""
    answers = [await person.call(row.method, row.path) for row in ROUTES for person in (api.anyone, caller)]
    path = await path_of(next(row for row in WITH_BODY if row.path.endswith("/messages")), caller)
    answers += [
        await caller.get("/v1/me"),
        await caller.call("OPTIONS", "/v1/me"),
        await caller.call("HEAD", "/healthz"),
        await caller.get("/nothing"),
        await caller.delete("/v1/me"),
        await caller.post(path, content=b"{"),
        await caller.post(path, content=b"{}"),
        await caller.post(path, content=b" " * (BODY_MOST + 1)),
        await caller.post(path, json={"messages": [{"role": "user", "content": "x"}]}),
        await caller.delete(path.removesuffix("/messages")),
    ]

    assert {200, 201, 204, 400, 401, 404, 405, 413, 422} <= {one.status_code for one in answers}
    for one in answers:
        assert {header: one.headers.get(header) for header in WANTED_HEADERS} == WANTED_HEADERS
        policy = one.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy


async def test_a_fault_of_ours_tells_nothing(settings: Settings) -> None:
    """An unhandled exception is a 500 problem without its text, with the headers of every answer."""
    async with serve(settings) as api:
        api.app.state.runtime = None
        reply = await api.anyone.get("/readyz")

    assert (reply.status_code, reply.json()) == (
        500,
        {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": "Something failed inside hango. It was logged; the request may be sent again.",
            "code": "internal",
        },
    )
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "bomb",
    [b"[" * 8_000_000, b"[" * 65 + b'"' + b'\\"' * 3_900_000, b'"' * 8_000_000, b"9" * 8_000_000,
     b'{"name":"' + b"\\u0041" * 1_300_000 + b'"}', b'{"a":[' + b"[]," * 2_000_000 + b"[]]}"],
    ids=["brackets", "a string without end", "quotes", "digits", "escapes", "empty lists"],
)  # fmt: skip
async def test_a_bomb_holds_up_nobody(bomb: bytes, caller: Person) -> None:
    """A hostile body is refused, and other requests are answered meanwhile."""
    bombing = asyncio.create_task(caller.post("/v1/agents", content=bomb))
    started = time.perf_counter()
    alive = await caller.get("/healthz")
    waited = time.perf_counter() - started

    assert (await bombing).status_code in (400, 413, 422)
    assert alive.status_code == 200
    # Ten times what the worst of them takes on a slow machine: it tells seconds from minutes, no more.
    assert waited < 10


async def test_a_refusal_repeats_nothing_of_the_body(caller: Person) -> None:
    """Content of a request is never in an error."""
    for row in WITH_BODY:
        path = await path_of(row, caller)
        for body in hostile_bodies():
            reply = await caller.call(row.method, path, json=body)
            assert CANARY not in reply.text or reply.status_code < 400


def hostile_bodies() -> list[Any]:
    return [
        CANARY,
        [CANARY],
        {"name": {"x": CANARY}, "model": CANARY, "content": [CANARY], "messages": CANARY, "role": CANARY},
        {"name": "x", "model": CANARY, "system": [{"name": CANARY.upper(), "text": CANARY}]},
        {"name": "x", "model": "offline/x", "tools": [{"name": "t", "input_schema": {"type": CANARY}}]},
        {"name": "x", "model": "offline/x", "tools": [{"name": f"{CANARY} {CANARY}"}], "memory": [CANARY]},
        {"messages": [{"role": "user", "content": [{"type": 5, "text": CANARY}]}]},
        {"messages": [{"role": CANARY, "content": CANARY, "created_at": CANARY}]},
        {"exclude": CANARY, "replace": {"message:1": [CANARY]}, "message": {"a": CANARY}},
    ]


def test_public_routes_take_no_body() -> None:
    """Nothing is read from a caller without a key."""
    assert [name(row) for row in ROUTES if row.access is PUBLIC and (row.body or row.takes or row.query)] == []


CLIMBS = [
    "../",
    "..%2f",
    "%2e%2e/",
    "..%5c",
    "....//",
    "%252e%252e%252f",
    "//",
    "/./",
    "\\\\server\\",
    "%00",
    "\n",
    "file:///",
]
ENDS = ["etc/passwd", "proc/self/environ", "memories/AGENTS.md", "", "C:\\x", "a" * 1100, "\u202e", "\ud800".encode(
    "utf-8", "surrogatepass").decode("utf-8", "replace")]  # fmt: skip
KINDS = ["system:memory:/", "tool:"]


async def test_a_part_id_is_a_key_and_never_a_path(caller: Person) -> None:
    """Path traversal in `?full=`: 192 strings, each a 404 or a 422, never a file."""
    agent = await caller.agent(builtin=[])  # little to assemble: the part ids are what is asked about
    session = await caller.session(agent["id"], messages=[{"role": "user", "content": "Hello."}])
    tried = [kind + climb + end for kind in KINDS for climb in CLIMBS for end in ENDS]

    statuses = {
        (await caller.get(f"/v1/sessions/{session['id']}/context", params={"full": part})).status_code for part in tried
    }

    assert len(tried) == 192
    assert statuses <= {404, 422}


@pytest.mark.parametrize(
    "part", ["message:٥", "message:1\n", "message:+1", "message:01", "message:1e0", "message:" + "9" * 30]
)
async def test_a_message_is_named_by_plain_digits(part: str, caller: Person) -> None:
    """`message:` takes only [1-9][0-9]*, and never with Python's leniency."""
    agent = await caller.agent()
    session = await caller.session(agent["id"], messages=[{"role": "user", "content": "Hello."}])

    reply = await caller.get(f"/v1/sessions/{session['id']}/context", params={"full": part})

    assert reply.status_code in (404, 422)


SLEEP = "'; select pg_sleep(8)--"


async def test_sql_in_any_field_is_text(caller: Person) -> None:
    """SQL only through bind parameters: `'; select pg_sleep(8)--` in every header and field, and nothing sleeps."""
    agent = await caller.agent(name=SLEEP, system_prompt=SLEEP)
    session = await caller.session(agent["id"], title=SLEEP, messages=[{"role": "user", "content": SLEEP}])
    names = ("q", "cursor", "limit", "prefix", "agent_id", "full", "after", "from", "to", "group_by", "purpose")
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", row.path, {"params": {name: SLEEP}}) for row in ROUTES if row.query for name in names
    ]
    requests += [("GET", "/v1/me", {"headers": {"Authorization": f"Bearer {SLEEP}"}})]
    requests += [
        ("GET", "/v1/me", {"headers": {name: SLEEP}}) for name in ("traceparent", "If-Match", "Prefer", "Host")
    ]
    requests += [("PUT", f"/v1/agents/{agent['id']}/files/{SLEEP}", {"json": {"content": SLEEP}})]
    requests += [("POST", "/v1/api-keys", {"json": {"name": SLEEP, "user_id": SLEEP}})]
    ids = {"{agent_id}": agent["id"], "{session_id}": session["id"]}

    for method, path, options in requests:
        for name, id in ids.items():
            path = path.replace(name, id)
        started = time.perf_counter()
        reply = await caller.call(method, path, **options)
        assert (reply.status_code < 500, time.perf_counter() - started < 8) == (True, True)
    assert (await caller.get(f"/v1/agents/{agent['id']}")).json()["name"] == SLEEP
