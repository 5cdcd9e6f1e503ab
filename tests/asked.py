"""Tries asked for through HTTP, and ended as a worker would end them: nobody works in the tests of the API."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx2
import msgspec

from hango.api.fields import parse_id
from hango.chain import tries as rules
from hango.chain.deps import Deps
from hango.chain.tries import Prepared
from hango.domain import KeyID, Principal, Role, SessionID, TenantID, TryID, UserID
from hango.store import try_claims
from hango.tries import Settlement
from tests.people import Api, Person
from tests.tries import SUCCEEDED, take


async def principal_of(person: Person) -> Principal:
    me = (await person.get("/v1/me")).json()
    ids = TenantID(parse_id(me["tenant"]["id"])), UserID(parse_id(me["user"]["id"])), KeyID(parse_id(me["key_id"]))
    return Principal(*ids, Role(me["user"]["role"]))


async def ask(person: Person, session_id: str, path: str = "", **body: Any) -> httpx2.Response:
    """POST a try; `path` is what follows, such as `?wait=1`."""
    return await person.post(f"/v1/sessions/{session_id}/context/try{path}", json=body)


async def claim(api: Api, person: Person, *ids: str) -> int:
    """Have a worker take these, with their calls under way. Returns their attempt."""
    store = api.runtime.deps.store
    return await take(store, await principal_of(person), *map(UUID, ids), called=True)


async def settle(api: Api, person: Person, id: str, attempt: int, ended: Settlement = SUCCEEDED) -> None:
    """The end of a call that was claimed."""
    deps = api.runtime.deps
    kept = deps.settings.context_try_retention
    async with deps.store.begin(await principal_of(person)) as scope:
        done = await try_claims.settle(scope, TryID(UUID(id)), attempt, ended, retention_seconds=kept)
    assert done, "the claim is not in force"


async def end(api: Api, person: Person, *ids: str, ended: Settlement = SUCCEEDED) -> None:
    """A worker takes them, calls, and settles."""
    attempt = await claim(api, person, *ids)
    for id in ids:
        await settle(api, person, id, attempt, ended)


async def prepared(api: Api, person: Person, try_id: str, deps: Deps | None = None) -> Prepared:
    """The request of a try as a worker makes it; without `deps` in a process that has read nothing yet."""
    known = api.runtime.deps
    deps = deps or Deps(known.settings, known.store, known.providers, known.models)
    async with known.store.read(await principal_of(person)) as scope:
        cursor = await scope.conn.execute("select session_id, request_id from tries where id = %s", (try_id,))
        ((session_id, request_id),) = await cursor.fetchall()
        claimed = await try_claims.request(scope, request_id)
        assert claimed is not None
        return await rules.prepare(scope, deps, SessionID(session_id), claimed)


async def wire_of(api: Api, person: Person, try_id: str, deps: Deps | None = None) -> bytes:
    """The body that the provider gets."""
    made = await prepared(api, person, try_id, deps)
    return api.runtime.deps.providers.get(made.provider).body(made.request)


async def previewed_wire(person: Person, session_id: str, **body: Any) -> bytes:
    """The body that the provider would get, as the preview shows it."""
    reply = await person.post(f"/v1/sessions/{session_id}/context/preview?format=provider", json=body)
    assert reply.status_code == 200, reply.text
    return bytes(msgspec.json.decode(reply.content, type=dict[str, msgspec.Raw])["request"])


async def events(person: Person, action: str) -> list[tuple[str | None, dict[str, Any]]]:
    """Target and detail of the tenant's audit events of one action, the oldest first."""
    return [(target, detail) for found, target, detail in await person.audit() if found == action]
