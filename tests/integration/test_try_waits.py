"""Waiting for a try or a batch through HTTP: `Prefer: wait=N` and `?wait=N`, woken by the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hango.config import Settings
from tests.asked import claim, end, settle
from tests.desks import Desk, as_json, make_desk
from tests.people import Api, Person, a_batch, a_try, is_problem, serve
from tests.tries import REFUSED

LONG = 50  # seconds; nothing here waits for so long
STEP_SECONDS = 20


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


@pytest.fixture
async def hasty(settings: Settings) -> AsyncIterator[Api]:
    """A server on which no wait is long."""
    async with serve(replace(settings, long_wait_max=0.05)) as api:
        yield api


async def waiting(api: Api, ask: Awaitable[httpx2.Response]) -> asyncio.Task[httpx2.Response]:
    """The request, when it has come to wait."""
    task = asyncio.ensure_future(ask)
    async with asyncio.timeout(STEP_SECONDS):
        while not len(api.runtime.waiters) and not task.done():  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
    return task


async def newest(desk: Desk, what: str = "tries") -> dict[str, Any]:
    found: dict[str, Any] = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/{what}?limit=1"))["data"][0]
    return found


@pytest.mark.parametrize(
    ("options", "applied"),
    [
        ({"headers": {"Prefer": f"wait={LONG}"}}, f"wait={LONG}"),
        ({"headers": {"Prefer": 'respond-async, wait="3600"'}}, "wait=60"),
        ({"params": {"wait": LONG}}, None),
        ({"params": {"wait": LONG}, "headers": {"Prefer": "wait=0"}}, None),
    ],
)
async def test_a_post_waits_for_the_answer(options: dict[str, Any], applied: str | None, desk: Desk, api: Api) -> None:
    """200 with the answer when it comes in time; Preference-Applied says the wait, at most HANGO_LONG_WAIT_MAX."""
    path = f"/v1/sessions/{desk.session_id}/context/try"
    asked = await waiting(api, desk.owner.post(path, json={"message": "Now?"}, **options))
    made = await newest(desk)
    await end(api, desk.owner, made["id"])

    reply = await asked

    assert (reply.status_code, reply.headers["location"]) == (200, f"/v1/tries/{made['id']}")
    assert (reply.headers.get("preference-applied"), reply.headers.get("retry-after")) == (applied, None)
    assert reply.json() == as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))
    assert reply.json()["answer"]["content"] == [{"type": "text", "text": "Yes."}]


async def test_any_end_is_an_end(desk: Desk, api: Api) -> None:
    """A try that failed or was cancelled has ended: 200, with its error."""
    path = f"/v1/sessions/{desk.session_id}/context/try?wait={LONG}"
    failing = await waiting(api, desk.owner.post(path, json={}))
    await end(api, desk.owner, (await newest(desk))["id"], ended=REFUSED)
    failed = await failing
    cancelling = await waiting(api, desk.owner.post(path, json={}))
    await desk.owner.post(f"/v1/tries/{(await newest(desk))['id']}/cancel")
    cancelled = await cancelling

    assert [(reply.status_code, reply.json()["error"]["code"]) for reply in (failed, cancelled)] == [
        (200, "provider_refused"),
        (200, "cancelled"),
    ]


@pytest.mark.parametrize(
    "options", [{"headers": {"Prefer": "wait=30"}}, {"params": {"wait": 30}}, {"headers": {"Prefer": "wait=soon"}}, {}]
)
async def test_a_post_that_waits_in_vain_is_accepted(options: dict[str, Any], hasty: Api) -> None:
    """202 with Location and Retry-After when the wait is over, or none was asked for; no preference is applied."""
    desk = await make_desk(await hasty.admin())

    reply = await desk.owner.post(f"/v1/sessions/{desk.session_id}/context/try", json={}, **options)

    made = reply.json()
    assert (reply.status_code, made["status"]) == (202, "queued")
    assert (reply.headers["location"], reply.headers["retry-after"]) == (f"/v1/tries/{made['id']}", "1")
    assert "preference-applied" not in reply.headers


@pytest.mark.parametrize(
    ("options", "applied"), [({"params": {"wait": LONG}}, None), ({"headers": {"Prefer": "wait=9"}}, "wait=9")]
)
async def test_a_get_waits_for_the_end(options: dict[str, Any], applied: str | None, desk: Desk, api: Api) -> None:
    """`GET ...?wait=N` does the same on the resource: it answers when the try ends."""
    made = await a_try(desk.owner, desk.session_id)
    asked = await waiting(api, desk.owner.get(f"/v1/tries/{made['id']}", **options))
    attempt = await claim(api, desk.owner, made["id"])
    assert not asked.done()
    await settle(api, desk.owner, made["id"], attempt)

    reply = await asked

    assert (reply.status_code, reply.json()["status"]) == (200, "succeeded")
    assert (reply.headers.get("preference-applied"), reply.headers.get("retry-after")) == (applied, None)


async def test_a_get_that_waits_in_vain_says_when_to_ask_again(hasty: Api) -> None:
    """200 with the try as it is and Retry-After; without a wait at once; an ended one needs no wait."""
    desk = await make_desk(await hasty.admin())
    made = await a_try(desk.owner, desk.session_id)
    path = f"/v1/tries/{made['id']}"

    vain, at_once = await desk.owner.get(f"{path}?wait=30"), await desk.owner.get(path)
    await desk.owner.post(f"{path}/cancel")
    ended = await desk.owner.get(f"{path}?wait=30")

    assert [(reply.status_code, reply.json()["status"]) for reply in (vain, at_once, ended)] == [
        (200, "queued"),
        (200, "queued"),
        (200, "cancelled"),
    ]
    assert [reply.headers.get("retry-after") for reply in (vain, at_once, ended)] == ["1", "1", None]


async def test_waiting_on_a_batch_ends_with_its_last_try(desk: Desk, api: Api) -> None:
    """A batch has ended when every try of it has, and not before."""
    made = await a_batch(desk.owner, desk.session_id, variants=[{}, {"exclude": ["message:2"]}], repeats=2)
    first, second = (one["tries"] for one in made["variants"])
    asked = await waiting(api, desk.owner.get(f"/v1/try-batches/{made['id']}?wait={LONG}"))
    await end(api, desk.owner, *first, second[0])
    assert not asked.done()
    await desk.owner.post(f"/v1/tries/{second[1]}/cancel")

    reply = await asked

    assert (reply.status_code, reply.json()["counts"]) == (200, {"succeeded": 3, "cancelled": 1})
    assert reply.json()["finished_at"] is not None
    assert "retry-after" not in reply.headers


async def test_a_post_of_a_batch_waits_too(desk: Desk, api: Api) -> None:
    """200 when all of a batch ended in time, with Preference-Applied."""
    path = f"/v1/sessions/{desk.session_id}/context/try-batches"
    asked = await waiting(
        api, desk.owner.post(path, json={"variants": [{}], "repeats": 2}, headers={"Prefer": f"wait={LONG}"})
    )
    made = await newest(desk, "try-batches")
    await end(api, desk.owner, *made["variants"][0]["tries"])

    reply = await asked

    assert (reply.status_code, reply.headers["location"]) == (200, f"/v1/try-batches/{made['id']}")
    assert (reply.headers["preference-applied"], reply.json()["done"]) == (f"wait={LONG}", 2)


async def test_a_batch_that_is_waited_for_in_vain_is_accepted(hasty: Api) -> None:
    """202 with Location and Retry-After, and a GET answers with Retry-After, while a try of it goes on."""
    desk = await make_desk(await hasty.admin())
    posted = await desk.owner.post(
        f"/v1/sessions/{desk.session_id}/context/try-batches?wait=30", json={"variants": [{}]}
    )
    found = await desk.owner.get(f"/v1/try-batches/{posted.json()['id']}?wait=30")

    assert [(one.status_code, one.headers["retry-after"]) for one in (posted, found)] == [(202, "1"), (200, "1")]
    assert "preference-applied" not in posted.headers


Ask = Callable[[Desk], Awaitable[httpx2.Response]]


@pytest.mark.parametrize("what", ["tries", "try-batches"])
async def test_who_waits_for_what_is_deleted_gets_a_404(what: str, desk: Desk, api: Api) -> None:
    """The session is deleted while somebody waits: the wait ends with the answer of what is not there."""
    start = a_try if what == "tries" else a_batch
    made = await start(desk.owner, desk.session_id)
    asked = await waiting(api, desk.owner.get(f"/v1/{what}/{made['id']}?wait={LONG}"))
    assert (await desk.owner.delete(f"/v1/sessions/{desk.session_id}")).status_code == 204

    reply = await asked

    assert (reply.status_code, is_problem(reply)) == (404, True)


@pytest.mark.parametrize("wait", ["-1", "soon", "1.5", "", "%D9%A5"])
async def test_a_wait_that_is_no_number_is_refused(wait: str, desk: Desk) -> None:
    """422 `bad_field` for `?wait=` that is no whole number, before anything is started."""
    reply = await desk.owner.post(f"/v1/sessions/{desk.session_id}/context/try?wait={wait}", json={})

    assert (reply.status_code, reply.json()["code"]) == (422, "bad_field")
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/tries"))["data"] == []


async def test_who_leaves_while_waiting_leaves_the_try(desk: Desk, api: Api) -> None:
    """A client that goes away cancels nothing: its try goes on, and nothing of the wait is left."""
    body = json.dumps({"message": "Now?"}).encode()
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    await events.put({"type": "http.request", "body": body, "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    path = f"/v1/sessions/{desk.session_id}/context/try"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"wait=50",
        "root_path": "",
        "headers": [(b"authorization", f"Bearer {desk.owner.key}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    asking = asyncio.ensure_future(api.app(scope, events.get, send))
    async with asyncio.timeout(STEP_SECONDS):
        while not len(api.runtime.waiters):  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
    await events.put({"type": "http.disconnect"})
    await asyncio.wait_for(asking, STEP_SECONDS)

    assert (sent, len(api.runtime.waiters)) == ([], 0)
    made = await newest(desk)
    assert made["status"] == "queued"
    await end(api, desk.owner, made["id"])
    assert as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))["status"] == "succeeded"
