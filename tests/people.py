"""Callers of the API in tests: an application in this process, a tenant with people, one line a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx2
from starlette.applications import Starlette

from hango.api.app import create_app
from hango.api.endpoint import Row, Runtime
from hango.config import Settings
from hango.domain import TenantID
from hango.store import system

JSON = Mapping[str, Any]


@dataclass(frozen=True)
class Person:
    """Somebody with a key; `key` None sends none."""

    client: httpx2.AsyncClient
    tenant_id: str = ""
    user_id: str = ""
    key: str | None = field(default=None, repr=False)

    async def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {**({"Authorization": f"Bearer {self.key}"} if self.key else {}), **options.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **options)

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        return await self.call("GET", path, **options)

    async def post(self, path: str, **options: Any) -> httpx2.Response:
        return await self.call("POST", path, **options)

    async def put(self, path: str, **options: Any) -> httpx2.Response:
        return await self.call("PUT", path, **options)

    async def patch(self, path: str, **options: Any) -> httpx2.Response:
        return await self.call("PATCH", path, **options)

    async def delete(self, path: str, **options: Any) -> httpx2.Response:
        return await self.call("DELETE", path, **options)

    async def make(self, path: str, **body: Any) -> dict[str, Any]:
        """POST what must be created, and return it."""
        reply = await self.post(path, json=body)
        assert reply.status_code == 201, reply.text
        made: dict[str, Any] = reply.json()
        return made

    async def agent(self, **body: Any) -> dict[str, Any]:
        return await self.make("/v1/agents", **{"name": "desk", "model": "offline/extract", **body})

    async def session(self, agent_id: str, **body: Any) -> dict[str, Any]:
        return await self.make("/v1/sessions", agent_id=agent_id, **body)

    async def member(self, role: str = "member") -> Person:
        """A new user of the same tenant; only an admin can."""
        user = await self.make("/v1/users", name=f"user {uuid4().hex[:8]}", role=role)
        key = await self.make("/v1/api-keys", name="key", user_id=user["id"])
        return Person(self.client, self.tenant_id, user["id"], key["key"])

    async def audit(self) -> list[tuple[str, str | None, dict[str, Any]]]:
        """What the tenant's audit log says, the oldest first: action, target, detail."""
        reply = await self.get("/v1/audit?limit=500")
        return [(row["action"], row["target_id"], row["detail"]) for row in reversed(reply.json()["data"])]


@dataclass(frozen=True)
class Api:
    """The application, served in this process."""

    app: Starlette
    client: httpx2.AsyncClient

    @property
    def runtime(self) -> Runtime:
        runtime: Runtime = self.app.state.runtime
        return runtime

    @property
    def anyone(self) -> Person:
        return Person(self.client)

    async def admin(self, quota_tokens: int | None = None) -> Person:
        """The admin of a new tenant."""
        async with self.runtime.deps.store.system() as scope:
            made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=quota_tokens)
        return Person(self.client, str(TenantID(made.tenant_id)), str(made.user_id), made.api_key)


@asynccontextmanager
async def serve(settings: Settings) -> AsyncIterator[Api]:
    app = create_app(settings)
    # A failure of the application must come as its 500, not as an exception in the test.
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://hango.test") as client,
    ):
        yield Api(app, client)


# An agent that keeps none of its messages can summarize any session.
KEEPS_NONE = {"trigger_tokens": 100_000, "keep_messages": 0}


async def path_of(row: Row, person: Person) -> str:
    """The row's path for a thing of the person's own."""
    path = row.path.replace("{path:path}", "notes.md").replace("{user_id}", person.user_id).replace("{n}", "1")
    if "{agent_id}" in path or "{session_id}" in path:
        agent = await person.agent(compaction=KEEPS_NONE)
        path = path.replace("{agent_id}", agent["id"])
        if "{session_id}" in path:
            path = path.replace("{session_id}", (await a_session(person, agent["id"]))["id"])
    for param, start in STARTS.items():
        if param in path:
            session = await a_session(person, (await person.agent(compaction=KEEPS_NONE))["id"])
            path = path.replace(param, (await start(person, session["id"]))["id"])
    return path


async def a_session(person: Person, agent_id: str, **body: Any) -> dict[str, Any]:
    """One that a model could answer."""
    return await person.session(agent_id, messages=[{"role": "user", "content": "Hello."}], **body)


async def a_run(person: Person, session_id: str, **body: Any) -> dict[str, Any]:
    """A run that waits: nobody works in the tests of the API, unless they say so."""
    return _accepted(await person.post(f"/v1/sessions/{session_id}/runs", json=body))


async def a_try(person: Person, session_id: str, **body: Any) -> dict[str, Any]:
    """A try that waits, as a run does."""
    return _accepted(await person.post(f"/v1/sessions/{session_id}/context/try", json=body))


async def a_batch(person: Person, session_id: str, **body: Any) -> dict[str, Any]:
    return _accepted(
        await person.post(f"/v1/sessions/{session_id}/context/try-batches", json={"variants": [{}], **body})
    )


async def a_preview(person: Person, session_id: str) -> dict[str, Any]:
    """The preview of a summary that waits."""
    return _accepted(await person.post(f"/v1/sessions/{session_id}/summary/preview"))


def _accepted(reply: httpx2.Response) -> dict[str, Any]:
    assert reply.status_code == 202, reply.text
    made: dict[str, Any] = reply.json()
    return made


STARTS = {"{try_id}": a_try, "{batch_id}": a_batch, "{run_id}": a_run, "{preview_id}": a_preview}


def is_problem(reply: httpx2.Response) -> bool:
    """Whether it is a whole RFC 9457 problem document about its own status."""
    problem = reply.json()
    return (
        reply.headers["content-type"] == "application/problem+json"
        and {"type", "title", "status", "detail", "code"} <= set(problem) <= {
            "type", "title", "status", "detail", "code", "errors"
        }
        and problem["status"] == reply.status_code
        and bool(problem["detail"])
    )  # fmt: skip
