"""Runs asked for through HTTP, and seen through as a worker does: nobody works in the tests of the API by itself."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx2

from hango.domain import RunID
from hango.runs import ClaimedRun
from hango.workers import runs
from hango.workers.held import Held
from tests.asked import principal_of
from tests.desks import as_json
from tests.people import Api, Person, a_run


async def start(person: Person, session_id: str, path: str = "", **options: Any) -> httpx2.Response:
    """POST a run; `path` is what follows, such as `?wait=1`; options are its fields, and `headers`."""
    headers = options.pop("headers", {})
    return await person.post(f"/v1/sessions/{session_id}/runs{path}", json=options, headers=headers)


async def take(api: Api, person: Person, run_id: str) -> ClaimedRun:
    """Claim this run and no other: a picker claims across tenants."""
    principal = await principal_of(person)
    async with api.runtime.deps.store.begin(principal) as scope:
        cursor = await scope.conn.execute(
            "update runs set status = 'running', attempt = attempt + 1, lease_owner = %s,"
            " lease_until = clock_timestamp() + interval '60 s', started_at = coalesce(started_at, clock_timestamp())"
            " where id = %s and status = 'queued' returning attempt, timeout_ms, started_at, traceparent",
            (uuid4(), run_id),
        )
        ((attempt, timeout_ms, started_at, traceparent),) = await cursor.fetchall()
    return ClaimedRun(principal, RunID(UUID(run_id)), attempt, timeout_ms / 1000, started_at, traceparent)


async def see_through(api: Api, person: Person, run_id: str) -> dict[str, Any]:
    """A worker takes the run and sees it to its end; the run as it is then."""
    await runs.see_through(api.runtime.deps, Held(await take(api, person, run_id)))
    return as_json(await person.get(f"/v1/runs/{run_id}"))


async def run(api: Api, person: Person, session_id: str, **body: Any) -> dict[str, Any]:
    """Start a run and see it through."""
    return await see_through(api, person, (await a_run(person, session_id, **body))["id"])


async def calls_of(person: Person, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = as_json(await person.get(f"/v1/runs/{run_id}/calls"))["data"]
    return found


async def call_context(person: Person, run_id: str, n: int, query: str = "") -> dict[str, Any]:
    return as_json(await person.get(f"/v1/runs/{run_id}/calls/{n}/context{query}"))
