"""Bodies that nobody expects: valid ones with a strange value in one place, strange values whole, bytes flipped."""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from hypothesis import strategies as st

from hango.api.endpoint import Row
from hango.api.routes import ROUTES
from hango.config import Settings
from tests.people import is_problem, path_of, serve

# Bodies of one test run; a deeper search is a number away.
BODIES = int(os.environ.get("HANGO_TEST_BODIES", "10000"))

ROWS = {f"{row.method} {row.path}": row for row in ROUTES if row.body}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Hello.", "model": "anthropic/x", "created_at": "2026-11-30T09:00:00Z"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1.10}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}]},
    {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "a/b", "data": "eA=="}}]},
]
# A valid body of each route, with every field that a body can have; rate_per_minute would end the test itself.
VALID: dict[str, dict[str, Any]] = {
    "POST /v1/agents": {
        "name": "desk",
        "model": "anthropic/x",
        "shared": True,
        "system": [{"name": "agent", "text": "Be brief."}],
        "tools": [{"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {"a": {}}}}],
        "builtin": ["todo", "memory"],
        "memory": ["/memories/AGENTS.md"],
        "allowed_tools": ["look"],
        "max_output_tokens": 10,
        "params": {"temperature": 1, "stop": ["a"], "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"}},
        "compaction": {"trigger_tokens": 10, "keep_messages": 1},
        "cache": {"enabled": True, "ttl": "1h"},
    },
    "PATCH /v1/agents/{agent_id}": {"name": "desk", "system_prompt": "x", "memory": ["/a"], "builtin": ["skills"]},
    "PUT /v1/agents/{agent_id}/files/{path:path}": {"content": "text"},
    "POST /v1/sessions": {"title": "t", "messages": MESSAGES, "summary": {"text": "s", "through_seq": 1}},
    "POST /v1/sessions/{session_id}/messages": {"messages": MESSAGES},
    "POST /v1/sessions/{session_id}/context/preview": {
        "exclude": ["tool:ls"],
        "replace": {"system:agent": "x"},
        "include": [],
        "message": "What?",
    },
    "POST /v1/sessions/{session_id}/runs": {"message": MESSAGES[3]["content"]},
    "PUT /v1/sessions/{session_id}/summary": {"text": "s", "through_seq": 1},
    "POST /v1/sessions/{session_id}/context/try": {
        "exclude": ["tool:ls"],
        "replace": {"system:agent": "x"},
        "include": ["summary"],
        "message": "What?",
        "until": 1,
        "model": "offline/extract",
        "label": "x",
    },
    "POST /v1/sessions/{session_id}/context/try-batches": {
        "variants": [
            {"label": "a", "exclude": ["tool:ls"], "replace": {}, "include": ["*"], "message": "What?", "until": 1},
            {"model": "offline/extract"},
        ],
        "repeats": 2,
        "label": "b",
    },
    "PUT /v1/agents/{agent_id}/context-overrides": {
        "overrides": [
            {"part": "system:agent", "action": "replace", "replacement": "x"},
            {"part": "tool:ls", "action": "exclude"},
        ]
    },
    "PUT /v1/sessions/{session_id}/context-overrides": {
        "overrides": [
            {"part": "message:1", "action": "replace", "replacement": "x"},
            {"part": "summary", "action": "exclude"},
        ]
    },
    "POST /v1/api-keys": {"name": "key", "user_id": "x"},
    "POST /v1/users": {"name": "user", "role": "member"},
    "PATCH /v1/users/{user_id}": {"name": "user", "role": "admin", "disabled": False},
    "PATCH /v1/tenant": {"name": "tenant", "quota_tokens": 10, "trace_llm_content": False},
}
EXPECTED = {200, 201, 202, 400, 402, 404, 409, 422, 429}
PER_EXAMPLE = len(VALID) + 1

WORDS = ["user", "assistant", "system", "text", "tool_use", "auto", "5m", "offline/x", "/a", "*", "message:1",
         "message:99999999999999999999", "system:agent", "system:memory:/a", "tool:ls", "summary", "extra", "", " ",
         "\x00", "\ud800", "\u202e", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+23:59", "1" * 400, "9" * 5000,
         2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, float("inf"), float("nan"), -0.0, True, None, [], {},
         [[]], [{}], {"": None}, {"type": "text"}, {"type": None}, {"$ref": "#"}, {"type": "object"}]  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
values = st.sampled_from(WORDS) | scalars | st.lists(scalars, max_size=3) | st.dictionaries(
    st.text(max_size=6), scalars, max_size=3
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a body: the whole, each member, each item."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


PLACES = {name: list(places(body)) for name, body in VALID.items()}


def with_value(name: str, place: int, value: Any) -> bytes:
    """The valid body of a route with the value in one of its places."""
    path = PLACES[name][place % len(PLACES[name])]
    if not path:
        return json.dumps(value).encode()
    body = copy.deepcopy(VALID[name])
    at: Any = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(body).encode()


def with_bytes(name: str, place: int, put: bytes) -> bytes:
    """The text of the valid body with some bytes written over it."""
    text = json.dumps(VALID[name]).encode()
    at = place % len(text)
    return text[:at] + put + text[at + len(put) :]


def test_every_route_with_a_body_has_a_valid_one() -> None:
    """A route that takes a body is in the population of hostile ones."""
    assert set(VALID) == set(ROWS)


# 10,000 requests, some of which start tries: half a minute alone, minutes beside everything else.
@pytest.mark.timeout(1200)
def test_no_body_is_a_fault_of_ours(settings: Settings) -> None:
    """Bad input: 10,000 hypothesis bodies; every answer is an acceptance or a problem document, no 5xx."""
    statuses: set[int] = set()
    with asyncio.Runner() as runner:
        running = serve(settings)
        api = runner.run(running.__aenter__())
        person = runner.run(api.admin())

        async def paths_of_all() -> dict[str, str]:
            return {name: await path_of(row, person) for name, row in ROWS.items()}

        paths = runner.run(paths_of_all())
        # Somebody else: who is disabled or demoted on the way can send no more.
        paths["PATCH /v1/users/{user_id}"] = f"/v1/users/{runner.run(person.member()).user_id}"
        agent_id = paths["PATCH /v1/agents/{agent_id}"].rpartition("/")[2]
        VALID["POST /v1/sessions"]["agent_id"] = agent_id
        PLACES["POST /v1/sessions"] = list(places(VALID["POST /v1/sessions"]))

        async def send(row: Row, path: str, body: bytes) -> None:
            reply = await person.call(row.method, path, content=body)
            statuses.add(reply.status_code)
            assert reply.status_code in EXPECTED, reply.text
            assert reply.status_code < 400 or is_problem(reply)

        async def send_all(place: int, value: Any, put: bytes) -> None:
            for name, row in ROWS.items():
                await send(row, paths[name], with_value(name, place, value))
            torn = list(ROWS)[place % len(ROWS)]
            await send(ROWS[torn], paths[torn], with_bytes(torn, place, put))

        @runs(
            max_examples=max(1, BODIES // PER_EXAMPLE),
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(st.integers(0, 1000), values, st.binary(min_size=1, max_size=4))
        def any_body(place: int, value: Any, put: bytes) -> None:
            runner.run(send_all(place, value, put))

        try:
            any_body()
        finally:
            runner.run(running.__aexit__(None, None, None))

    assert {200, 201, 400, 422} <= statuses
