"""`Idempotency-Key`: a POST that starts work and is repeated starts nothing twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.asked import end, events, principal_of
from tests.desks import Desk, as_json, exclude, make_desk, put
from tests.people import Api, Person, is_problem

BODY: dict[str, Any] = {"exclude": ["message:2"], "message": "And the screws?"}
BATCH: dict[str, Any] = {"variants": [{"label": "a"}, {"label": "b", "exclude": ["message:2"]}], "repeats": 2}


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def send(
    person: Person, session_id: str, key: str, body: dict[str, Any] = BODY, route: str = "try"
) -> httpx2.Response:
    path = f"/v1/sessions/{session_id}/context/{route}"
    return await person.post(path, json=body, headers={"Idempotency-Key": key})


async def started(person: Person) -> int:
    return len(await events(person, "context.try"))


async def test_a_repeated_post_gives_the_first_try_again(desk: Desk, api: Api) -> None:
    """The same key and body by the same user give the first resource again, as it is by then; nothing is started."""
    first = await send(desk.owner, desk.session_id, "one")
    await end(api, desk.owner, first.json()["id"])

    again = await send(desk.owner, desk.session_id, "one")
    waited = await desk.owner.post(
        f"/v1/sessions/{desk.session_id}/context/try?wait=5", json=BODY, headers={"Idempotency-Key": "one"}
    )

    assert (first.status_code, again.status_code, waited.status_code) == (202, 202, 200)
    assert again.headers["location"] == first.headers["location"]
    assert [one.headers.get("retry-after") for one in (first, again, waited)] == ["1", None, None]
    assert again.json() == waited.json() == as_json(await desk.owner.get(first.headers["location"]))
    assert again.json()["status"] == "succeeded"
    assert await started(desk.owner) == 1


async def test_a_repeated_post_gives_the_first_batch_again(desk: Desk) -> None:
    """A batch is repeated like a try."""
    first = await send(desk.owner, desk.session_id, "one", BATCH, "try-batches")
    again = await send(desk.owner, desk.session_id, "one", BATCH, "try-batches")

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert await started(desk.owner) == 4


@pytest.mark.parametrize(("body", "route", "tries"), [(BODY, "try", 1), (BATCH, "try-batches", 4)])
async def test_many_at_once_start_one(body: dict[str, Any], route: str, tries: int, desk: Desk) -> None:
    """40 POSTs at once with one key are one try, or one batch: all get the same."""
    replies = await asyncio.gather(*(send(desk.owner, desk.session_id, "one", body, route) for _ in range(40)))

    assert {(reply.status_code, reply.json()["id"]) for reply in replies} == {(202, replies[0].json()["id"])}
    assert await started(desk.owner) == tries
    batch = await send(desk.owner, desk.session_id, "two", body, route)
    assert batch.json()["id"] != replies[0].json()["id"]


async def test_many_at_once_with_two_bodies_start_one(desk: Desk) -> None:
    """Of two bodies with one key at once, one is started and the other refused, however often they are sent."""
    bodies = [BODY, {**BODY, "message": "And the nails?"}]

    replies = await asyncio.gather(*(send(desk.owner, desk.session_id, "one", bodies[n % 2]) for n in range(20)))

    assert sorted(reply.status_code for reply in replies) == [202] * 10 + [422] * 10
    assert len({reply.json()["id"] for reply in replies if reply.status_code == 202}) == 1
    assert await started(desk.owner) == 1


async def test_another_request_with_the_key_is_refused(desk: Desk) -> None:
    """422 `idempotency_key_reused`: another body, another session, another route; nothing of it is started."""
    other = await make_desk(desk.owner)
    await send(desk.owner, desk.session_id, "one")

    replies = [
        await send(desk.owner, desk.session_id, "one", {**BODY, "message": "And the nails?"}),
        await send(desk.owner, desk.session_id, "one", {}),
        await send(desk.owner, other.session_id, "one"),
        await send(desk.owner, desk.session_id, "one", {"variants": [BODY]}, "try-batches"),
    ]

    for reply in replies:
        assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (422, "idempotency_key_reused", True)
        assert "one" not in reply.json()["detail"].split()
    assert await started(desk.owner) == 1


async def test_how_a_body_is_written_does_not_matter(desk: Desk) -> None:
    """The same body in other words: order of keys, white space, what is left out and what is said to be nothing."""
    path, headers = f"/v1/sessions/{desk.session_id}/context/try", {"Idempotency-Key": "one"}
    texts = [
        '{"exclude":["message:2"],"message":"And the screws?"}',
        '{ "message" : "And the screws?", "exclude" : [ "message:2" ] }',
        '{"include":[],"until":null,"replace":{},"message":"And the screws\\u003f","exclude":["message:2"]}',
    ]

    ids = {(await desk.owner.post(path, content=text, headers=headers)).json()["id"] for text in texts}

    assert len(ids) == 1


async def test_a_key_is_one_users(api: Api, caller: Person) -> None:
    """The same key by another user, or in another tenant, is another key; another key of the user is the same one."""
    owner = await caller.member()
    desk = await make_desk(owner)
    second = replace(owner, key=(await owner.make("/v1/api-keys", name="second"))["key"])
    elsewhere = await make_desk(await api.admin())

    first = (await send(owner, desk.session_id, "one")).json()["id"]
    by_admin = (await send(caller, desk.session_id, "one")).json()["id"]
    by_stranger = (await send(elsewhere.owner, elsewhere.session_id, "one")).json()["id"]
    by_second = (await send(second, desk.session_id, "one")).json()["id"]

    assert len({first, by_admin, by_stranger}) == 3
    assert by_second == first


async def test_a_repeat_does_not_look_at_what_changed_since(desk: Desk) -> None:
    """After session, overrides or quota changed the first resource still comes, though it could not start again."""
    first = (await send(desk.owner, desk.session_id, "one", {"exclude": ["message:2"]})).json()
    await desk.append({"role": "assistant", "content": "Ten nuts."})
    as_json(await put(desk, desk.of_session, exclude("message:4")))
    await desk.owner.patch("/v1/tenant", json={"quota_tokens": 0})

    again = await send(desk.owner, desk.session_id, "one", {"exclude": ["message:2"]})
    fresh = await send(desk.owner, desk.session_id, "two", {"exclude": ["message:2"]})

    assert (again.status_code, again.json()) == (202, first)
    assert fresh.json()["code"] == "ends_with_assistant"


@pytest.mark.parametrize(
    "refused", [{"until": 4}, {"exclude": ["message:9"]}, {"model": "anthropic/claude-sonnet-5"}, {"no_such_field": 1}]
)
async def test_a_refused_request_leaves_the_key_free(refused: dict[str, Any], desk: Desk) -> None:
    """Nothing is kept of a request that started nothing: its key may be sent with another body."""
    assert (await send(desk.owner, desk.session_id, "one", refused)).status_code == 422

    assert (await send(desk.owner, desk.session_id, "one", {})).status_code == 202


async def test_a_key_is_good_for_a_day(desk: Desk, api: Api) -> None:
    """After 24 hours the same key starts a new try, and stands for that one."""
    first = (await send(desk.owner, desk.session_id, "one")).json()["id"]
    async with api.runtime.deps.store.begin(await principal_of(desk.owner)) as scope:
        await scope.conn.execute(
            "update idempotency_keys set created_at = created_at - interval '24 hours' where tenant_id = %s",
            (scope.tenant_id,),
        )

    second = (await send(desk.owner, desk.session_id, "one", {})).json()["id"]
    third = (await send(desk.owner, desk.session_id, "one", {})).json()["id"]

    assert first != second == third


@pytest.mark.parametrize("key", ["", " ", "a" * 256, "k\u00e9y".encode(), b"\x7f", b"a\tb"])
async def test_a_key_that_is_none_is_refused(key: str | bytes, desk: Desk) -> None:
    """422 `bad_field`: empty, over 255 characters, not printable ASCII; the sentence says what a key is."""
    reply = await desk.owner.post(
        f"/v1/sessions/{desk.session_id}/context/try", json={}, headers={"Idempotency-Key": key}
    )

    assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (422, "bad_field", True)
    assert reply.json()["detail"].startswith("An Idempotency-Key is one text of 1 to 255 printable ASCII characters")
    assert await started(desk.owner) == 0


async def test_two_keys_are_none(desk: Desk, api: Api) -> None:
    """A request has one key: the header twice is refused."""
    headers = [("Authorization", f"Bearer {desk.owner.key}"), ("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    reply = await api.client.post(f"/v1/sessions/{desk.session_id}/context/try", json={}, headers=headers)

    assert (reply.status_code, reply.json()["code"]) == (422, "bad_field")


async def test_any_printable_text_is_a_key(desk: Desk) -> None:
    """A UUID, 255 characters, quotes and SQL are keys; only a hash of them is kept."""
    keys = ["01a22dfd-b204-7685-9ad3-9b0d8b2170bd", "a" * 255, '"quoted"', "'; select pg_sleep(8)--", "a b"]

    ids = [(await send(desk.owner, desk.session_id, key)).json()["id"] for key in keys]

    assert len(set(ids)) == len(keys)
    assert [(await send(desk.owner, desk.session_id, key)).json()["id"] for key in keys] == ids
