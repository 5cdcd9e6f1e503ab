"""Live and ready; the rate limit; and what happens while a service is away."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import structlog

from hango import logs
from hango.api.places import LONGEST_WAIT_SECONDS, MOST_AT_WORK
from hango.config import SecretUrl, Settings
from tests.conftest import Database
from tests.people import Api, Person, is_problem, serve
from tests.working import eventually


async def test_live_and_ready(api: Api) -> None:
    """A load balancer asks without a key."""
    live, ready = await api.anyone.get("/healthz"), await api.anyone.get("/readyz")

    assert (live.status_code, live.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "database": "ok", "redis": "ok"})


async def test_a_key_has_a_rate_limit_of_its_own(caller: Person) -> None:
    """429 with Retry-After and RateLimit when a key's requests of a minute are used up; another key goes on."""
    member = await caller.member()
    assert (await caller.patch("/v1/tenant", json={"rate_per_minute": 5})).status_code == 200

    taken = [await caller.get("/v1/me") for _ in range(5)]
    over = await caller.get("/v1/me")
    other = await member.get("/v1/me")

    assert [reply.status_code for reply in taken] == [200] * 5
    assert [reply.headers["ratelimit"].split(";")[1] for reply in taken] == ["r=4", "r=3", "r=2", "r=1", "r=0"]
    assert {reply.headers["ratelimit-policy"] for reply in taken} == {'"key";q=5;w=60'}
    assert (over.status_code, over.json()["code"], is_problem(over)) == (429, "rate_limited", True)
    # One request is free every 12 seconds.
    assert 1 <= int(over.headers["retry-after"]) <= 12
    assert over.headers["ratelimit"].startswith('"key";r=0;t=')
    assert other.status_code == 200


async def test_the_limit_is_judged_after_the_key_and_before_the_thing(caller: Person) -> None:
    """The order is 401, 429, 404: an unknown key is not limited, and nobody learns by a 429 what is there."""
    await caller.patch("/v1/tenant", json={"rate_per_minute": 1})
    await caller.get("/v1/me")

    missing = await caller.get("/v1/agents/none")
    unknown = await replace(caller, key="hango_aaaaaaaa_" + "A" * 43).get("/v1/me")

    assert (missing.status_code, unknown.status_code) == (429, 401)


async def test_a_higher_limit_holds_at_once(caller: Person) -> None:
    """A limit that is raised or taken away lets the next request through."""
    second = replace(caller, key=(await caller.make("/v1/api-keys", name="second"))["key"])
    await caller.patch("/v1/tenant", json={"rate_per_minute": 2})
    assert [(await second.get("/v1/me")).status_code for _ in range(3)] == [200, 200, 429]

    assert (await caller.patch("/v1/tenant", json={"rate_per_minute": None})).status_code == 200
    assert (await second.get("/v1/me")).status_code == 200


async def test_while_redis_is_away_nobody_is_limited(settings: Settings) -> None:
    """The limiter fails open, and readiness says so."""
    async with serve(replace(settings, redis_url=SecretUrl("redis://127.0.0.1:1/0"))) as api:
        caller = await api.admin()
        await caller.patch("/v1/tenant", json={"rate_per_minute": 1})
        replies = [await caller.get("/v1/me") for _ in range(3)]
        ready = await api.anyone.get("/readyz")

    assert [(reply.status_code, "ratelimit" in reply.headers) for reply in replies] == [(200, False)] * 3
    assert ready.json() == {"status": "ready", "database": "ok", "redis": "away"}


@pytest.fixture
async def cut_off(fresh_database: Database, settings: Settings) -> AsyncIterator[tuple[Api, Person]]:
    """An application whose database takes no connection any more."""
    url = SecretUrl(fresh_database.app_dsn)
    async with serve(replace(settings, database_url=url)) as api:
        caller = await api.admin()
        with psycopg.connect(fresh_database.superuser_dsn, autocommit=True, dbname="postgres") as connection:
            connection.execute(f"alter database {fresh_database.name} allow_connections false")
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                               [fresh_database.name])  # fmt: skip
        yield api, caller
        with psycopg.connect(fresh_database.superuser_dsn, autocommit=True, dbname="postgres") as connection:
            connection.execute(f"alter database {fresh_database.name} allow_connections true")


async def test_while_postgres_is_away_callers_are_told_when_to_return(cut_off: tuple[Api, Person]) -> None:
    """503 with Retry-After, never a 500 with text; the process stays live."""
    api, caller = cut_off
    asked = await caller.get("/v1/me")
    ready = await api.anyone.get("/readyz")

    for reply in (asked, ready):
        assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (503, "unavailable", True)
        assert int(reply.headers["retry-after"]) > 0
    assert (await api.anyone.get("/healthz")).status_code == 200


CANARY = "canary-5d20"


async def test_who_waits_too_long_in_a_crowd_is_told_to_come_later(
    fresh_database: Database, settings: Settings
) -> None:
    """503 with Retry-After for a request that has waited for a second for its turn when another comes."""
    async with serve(replace(settings, database_url=SecretUrl(fresh_database.app_dsn))) as api:
        caller = await api.admin()
        session = await caller.session((await caller.agent())["id"])
        path = f"/v1/sessions/{session['id']}"
        with psycopg.connect(fresh_database.owner_dsn) as other:
            other.execute("lock table sessions in access exclusive mode")
            *at_work, waiting = [asyncio.create_task(caller.get(path)) for _ in range(MOST_AT_WORK + 1)]
            assert await eventually(lambda: api.runtime.places.waited() > LONGEST_WAIT_SECONDS)
            newcomer = asyncio.create_task(caller.get("/v1/me"))
            refused = await waiting
        answered = [(await one).status_code for one in (*at_work, newcomer)]

    assert (refused.status_code, refused.json()["code"], is_problem(refused)) == (503, "unavailable", True)
    assert refused.headers["retry-after"] == "2"
    assert answered == [200] * (MOST_AT_WORK + 1)


async def test_a_request_leaves_one_line_without_what_was_sent(settings: Settings) -> None:
    """One line a request: method, route's template, status, time. No key, no address, no query, no content."""
    stream = io.StringIO()
    async with serve(settings) as api:
        caller = await api.admin()
        agent = await caller.agent(name=CANARY)
        logs.setup(settings, stream)
        try:
            for path in (f"/v1/me?api_key={caller.key}", f"/v1/agents?q={CANARY}", f"/{CANARY}%0a%1b[2J"):
                await caller.get(path)
            await caller.put(f"/v1/agents/{agent['id']}/files/{CANARY}", json={"content": CANARY})
            await caller.post("/v1/agents", json={"name": CANARY, "model": CANARY})
            await replace(caller, key=f"{caller.key}x").get(f"/v1/me?token={CANARY}")
        finally:
            structlog.reset_defaults()
    lines: list[dict[str, Any]] = [json.loads(line) for line in stream.getvalue().splitlines()]

    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("GET", "/v1/me", 200),
        ("GET", "/v1/agents", 200),
        ("GET", "-", 404),
        ("PUT", "/v1/agents/{agent_id}/files/{path:path}", 201),
        ("POST", "/v1/agents", 422),
        ("GET", "/v1/me", 401),
    ]
    assert CANARY not in stream.getvalue()
    assert (caller.key or "")[-43:] not in stream.getvalue()
