"""A run through HTTP: accepted, waited for, cancelled, repeated, refused, listed, hidden with its session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from hango.store import run_claims
from hango.store.run_claims import Hold
from tests.asked import events
from tests.desks import Desk, as_json, make_desk, named
from tests.people import Api, Person, a_run, a_session, is_problem
from tests.runs import run, see_through, start, take

LONG = 50  # seconds; nothing here waits for so long
STEP_SECONDS = 20
QUEUED = {
    "status": "queued",
    "turns": 0,
    "model": "offline/extract",
    "overrides": 0,
    "stop_reason": None,
    "error": None,
    "usage": None,
    "attempts": 0,
    "started_at": None,
    "finished_at": None,
}


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def shown(desk: Desk, run_id: str) -> dict[str, Any]:
    return as_json(await desk.owner.get(f"/v1/runs/{run_id}"))


async def of_session(desk: Desk, what: str = "") -> dict[str, Any]:
    return as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}{what}"))


async def waiting(api: Api, ask: Awaitable[httpx2.Response]) -> asyncio.Task[httpx2.Response]:
    """The request, when it has come to wait."""
    task = asyncio.ensure_future(ask)
    async with asyncio.timeout(STEP_SECONDS):
        while not len(api.runtime.waiters) and not task.done():  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
    return task


async def newest(desk: Desk) -> str:
    return str((await of_session(desk, "/runs?limit=1"))["data"][0]["id"])


async def test_a_run_is_accepted_as_a_whole(desk: Desk) -> None:
    """202 with Location and the Run; what the user says is in the session at once, under the run's id."""
    reply = await start(desk.owner, desk.session_id, message="Where are the bolts?")

    made = reply.json()
    assert (reply.status_code, reply.headers["location"]) == (202, f"/v1/runs/{made['id']}")
    assert reply.headers["retry-after"] == "1"
    assert made == {
        **QUEUED,
        "id": made["id"],
        "session_id": desk.session_id,
        "created_at": made["created_at"],
    }
    assert await shown(desk, made["id"]) == made
    last = (await of_session(desk, "/messages?after=5"))["data"]
    assert [(one["seq"], one["role"], one["content"], one["run_id"]) for one in last] == [
        (6, "user", [{"type": "text", "text": "Where are the bolts?"}], made["id"])
    ]
    assert (await of_session(desk))["last_run"] == {
        "id": made["id"],
        "status": "queued",
        "created_at": made["created_at"],
    }
    assert await events(desk.owner, "run.start") == [
        (made["id"], {"session_id": desk.session_id, "model": "offline/extract"})
    ]


async def test_a_run_ends_with_the_models_answer(desk: Desk, api: Api) -> None:
    """Its answer is a message of the session; the run says its turns, stop reason and usage, the audit its end."""
    made = await a_run(desk.owner, desk.session_id, message="Where are the bolts?")

    ended = await see_through(api, desk.owner, made["id"])

    assert ended == {
        **made,
        "status": "succeeded",
        "turns": 1,
        "stop_reason": "end_turn",
        "usage": ended["usage"],
        "attempts": 1,
        "started_at": ended["started_at"],
        "finished_at": ended["finished_at"],
    }
    assert made["created_at"] <= ended["started_at"] <= ended["finished_at"]
    (record,) = as_json(await desk.owner.get("/v1/usage/records"))["data"]
    assert {name: record[name] for name in ended["usage"]} == ended["usage"]
    assert (record["purpose"], record["run_id"], record["session_id"]) == ("run", made["id"], desk.session_id)
    said = (await of_session(desk, "/messages?after=6"))["data"]
    assert [(one["role"], one["run_id"], one["model"]) for one in said] == [
        ("assistant", made["id"], "offline/extract")
    ]
    assert (await of_session(desk))["last_run"]["status"] == "succeeded"
    assert await events(desk.owner, "run.finish") == [(made["id"], {"outcome": "succeeded", "error": None})]


async def test_without_a_message_the_agent_goes_on(desk: Desk, api: Api) -> None:
    """A history that ends with the user's words is answered as it is: no message is added but the answer."""
    ended = await run(api, desk.owner, desk.session_id)

    said = (await of_session(desk, "/messages"))["data"]
    assert (ended["status"], [one["role"] for one in said[4:]]) == ("succeeded", ["user", "assistant"])


async def test_blocks_are_kept_as_they_came(desk: Desk) -> None:
    """`message` may be a list of blocks; what is stored are the bytes that came."""
    body = b'{"message": [{"type": "text", "text": "How many?", "x_n": 1.10}]}'
    reply = await desk.owner.post(f"/v1/sessions/{desk.session_id}/runs", content=body)

    assert reply.status_code == 202
    stored = (await desk.owner.get(f"/v1/sessions/{desk.session_id}/messages?after=5")).content
    assert b'"x_n":1.10' in stored.replace(b" ", b"")


@pytest.mark.parametrize(
    ("options", "applied"),
    [({"headers": {"Prefer": f"wait={LONG}"}}, f"wait={LONG}"), ({"path": f"?wait={LONG}"}, None)],
)
async def test_a_post_waits_for_the_end(options: dict[str, Any], applied: str | None, desk: Desk, api: Api) -> None:
    """200 with the run when it ends in time; for the header, Preference-Applied says so."""
    asked = await waiting(api, start(desk.owner, desk.session_id, **options))
    run_id = await newest(desk)
    await see_through(api, desk.owner, run_id)

    reply = await asked

    assert (reply.status_code, reply.headers["location"]) == (200, f"/v1/runs/{run_id}")
    assert (reply.headers.get("preference-applied"), reply.headers.get("retry-after")) == (applied, None)
    assert reply.json() == await shown(desk, run_id)
    assert reply.json()["status"] == "succeeded"


async def test_a_get_waits_for_the_end(desk: Desk, api: Api) -> None:
    """`GET ?wait=` brings the end when it comes; one that is queued says when to ask again."""
    made = await a_run(desk.owner, desk.session_id)
    early = await desk.owner.get(f"/v1/runs/{made['id']}")
    asked = await waiting(api, desk.owner.get(f"/v1/runs/{made['id']}?wait={LONG}"))
    await see_through(api, desk.owner, made["id"])

    reply = await asked

    assert (early.headers.get("retry-after"), reply.headers.get("retry-after")) == ("1", None)
    assert reply.json() == await shown(desk, made["id"])
    assert reply.json()["status"] == "succeeded"


async def test_one_run_at_a_time(desk: Desk, api: Api) -> None:
    """409 run_active while a run has not ended, for all that would change the history under it; then all go."""
    made = await a_run(desk.owner, desk.session_id)
    stored = await desk.stored()
    session = f"/v1/sessions/{desk.session_id}"
    wanted = {"messages": [{"role": "user", "content": "x"}]}

    refused = [
        await start(desk.owner, desk.session_id, message="Again?"),
        await desk.owner.post(f"{session}/messages", json=wanted),
        await desk.owner.put(f"{session}/summary", json={"text": "s", "through_seq": 1}),
        await desk.owner.delete(f"{session}/summary"),
    ]

    assert [(one.status_code, one.json()["code"], is_problem(one)) for one in refused] == [
        (409, "run_active", True)
    ] * 4
    assert await desk.stored() == stored
    await see_through(api, desk.owner, made["id"])
    assert (await start(desk.owner, desk.session_id, message="Again?")).status_code == 202


async def test_many_at_once_are_one_run(desk: Desk) -> None:
    """Of runs that are asked for at once one starts and the others are 409; the session gets one message."""
    replies = await asyncio.gather(*(start(desk.owner, desk.session_id, message="Now.") for _ in range(12)))

    assert sorted(reply.status_code for reply in replies) == [202] + [409] * 11
    assert (await of_session(desk))["messages"] == 6


async def test_a_history_that_ends_with_the_assistant_needs_a_message(desk: Desk, api: Api) -> None:
    """Without `message`, or with null for it, it is 422 ends_with_assistant, and nothing is left behind; the way out
    is one that a run has."""
    await run(api, desk.owner, desk.session_id)
    before = await of_session(desk)

    refused = await start(desk.owner, desk.session_id)
    with_null = await start(desk.owner, desk.session_id, message=None)

    assert (refused.status_code, refused.json()["code"], is_problem(refused)) == (422, "ends_with_assistant", True)
    assert ("Give a `message`." in refused.json()["detail"], "until" in refused.text) == (True, False)
    assert with_null.json() == refused.json()
    assert await of_session(desk) == before
    assert len(await events(desk.owner, "run.start")) == 1
    assert (await start(desk.owner, desk.session_id, message="And now?")).status_code == 202


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("a\x00b", "invalid_text"),
        ([{"text": "no type"}], "bad_field"),
        (7, "bad_field"),
        ([], "empty_message"),
        (" \n", "empty_message"),
    ],
)
async def test_a_message_that_is_none_is_refused(message: Any, reason: str, desk: Desk) -> None:
    """422 with a pointer to the message; nothing is stored."""
    before = await of_session(desk)

    refused = await start(desk.owner, desk.session_id, message=message)

    assert (refused.status_code, refused.json()["code"]) == (422, reason)
    assert await of_session(desk) == before


async def test_a_result_that_answers_no_call_is_refused(desk: Desk) -> None:
    """A message of which nothing would be sent, as with an id written wrongly, is 422 and leaves nothing behind: the
    model would be told that its call has no result. With the right id, or with words, it starts a run."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "order_parts", "input": {}}
    asked = {"role": "assistant", "content": [call]}
    await desk.owner.make(f"/v1/sessions/{desk.session_id}/messages", messages=[asked])
    wrong = {"type": "tool_result", "tool_use_id": "toolu_l", "content": "Order 7781"}

    refused = await start(desk.owner, desk.session_id, message=[wrong])

    assert (refused.status_code, refused.json()["code"], is_problem(refused)) == (422, "empty_message", True)
    assert [(one["reason"], one["pointer"]) for one in refused.json()["errors"]] == [("empty_message", "/message")]
    assert len((await of_session(desk, "/messages"))["data"]) == 6
    right = await start(desk.owner, desk.session_id, message=[wrong, {**wrong, "tool_use_id": "toolu_1"}])
    assert right.status_code == 202


async def test_a_used_up_quota_starts_nothing(api: Api) -> None:
    """402 before anything is queued: no message, no run."""
    owner = await api.admin(quota_tokens=0)
    desk = await make_desk(owner)

    refused = await start(owner, desk.session_id, message="Where?")

    assert (refused.status_code, refused.json()["code"], is_problem(refused)) == (402, "quota_exceeded", True)
    found = await of_session(desk)
    assert (found["messages"], found["last_run"]) == (5, None)


async def test_a_quota_that_cannot_hold_the_call_ends_the_run(api: Api) -> None:
    """`failed: quota_exceeded`: the call is not made, nothing is billed."""
    owner = await api.admin(quota_tokens=10)
    desk = await make_desk(owner)

    ended = await run(api, owner, desk.session_id)

    assert (ended["status"], ended["error"], ended["usage"]) == (
        "failed",
        {
            "code": "quota_exceeded",
            "message": "The tenant's token quota for this month is used up: the run ended between two calls.",
        },
        None,
    )


async def test_a_repeated_post_gives_the_first_run_again(desk: Desk, api: Api) -> None:
    """The same key and body give the first run, as it is by then; another body is 422; one message is stored."""
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}}
    first = await start(desk.owner, desk.session_id, message="Where?", **key)
    during = await start(desk.owner, desk.session_id, message="Where?", **key)
    await see_through(api, desk.owner, first.json()["id"])

    again = await start(desk.owner, desk.session_id, message="Where?", **key)
    waited = await start(desk.owner, desk.session_id, "?wait=5", message="Where?", **key)
    other = await start(desk.owner, desk.session_id, message="Who?", **key)

    assert (first.status_code, during.status_code, again.status_code, waited.status_code) == (202, 202, 202, 200)
    assert during.json() == first.json()
    assert again.json() == waited.json() == await shown(desk, first.json()["id"])
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert (await of_session(desk))["messages"] == 7


async def test_a_refused_request_leaves_its_key_free(desk: Desk, api: Api) -> None:
    """What is refused takes no key: the same key starts the run when it may."""
    active = await a_run(desk.owner, desk.session_id)
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}}
    refused = await start(desk.owner, desk.session_id, message="Where?", **key)
    await see_through(api, desk.owner, active["id"])

    taken = await start(desk.owner, desk.session_id, message="Where?", **key)

    assert (refused.status_code, taken.status_code) == (409, 202)


async def test_a_waiting_run_is_cancelled_at_once(desk: Desk) -> None:
    """It ends `cancelled` with its error, and stays so; what the user said stays."""
    made = await a_run(desk.owner, desk.session_id, message="Where?")

    reply = await desk.owner.post(f"/v1/runs/{made['id']}/cancel")
    again = await desk.owner.post(f"/v1/runs/{made['id']}/cancel")

    assert (reply.status_code, again.status_code) == (200, 200)
    assert reply.json() == again.json() == {
        **made,
        "status": "cancelled",
        "error": {"code": "cancelled", "message": "The run was cancelled."},
        "finished_at": reply.json()["finished_at"],
    }  # fmt: skip
    assert (await of_session(desk))["messages"] == 6
    assert await events(desk.owner, "run.finish") == [(made["id"], {"outcome": "cancelled", "error": "cancelled"})]


async def test_a_running_one_is_told_to_end(desk: Desk, api: Api) -> None:
    """202 while its worker has not heard it yet; it ends before the next call."""
    made = await a_run(desk.owner, desk.session_id)
    claimed = await take(api, desk.owner, made["id"])

    told = await desk.owner.post(f"/v1/runs/{made['id']}/cancel")

    assert (told.status_code, told.json()["status"]) == (202, "running")
    async with api.runtime.deps.store.begin(claimed.principal) as scope:
        held = await run_claims.hold(scope, claimed.id, claimed.attempt)
    assert held == Hold(cancelled=True, turns=0, skill_version_id=None)


@pytest.mark.parametrize("what", ["sessions", "agents"])
async def test_what_is_deleted_takes_its_runs_with_it(what: str, desk: Desk) -> None:
    """Deleting a session or its agent cancels what waits; the run is 404 with its session."""
    made = await a_run(desk.owner, desk.session_id)
    target = desk.session_id if what == "sessions" else desk.agent_id

    assert (await desk.owner.delete(f"/v1/{what}/{target}")).status_code == 204

    gone = await desk.owner.get(f"/v1/runs/{made['id']}")
    assert (gone.status_code, what) in {(404, "sessions"), (200, "agents")}
    assert await events(desk.owner, "run.finish") == [(made["id"], {"outcome": "cancelled", "error": "cancelled"})]


async def test_runs_are_listed_newest_first(desk: Desk, api: Api) -> None:
    """All of the session and no other's, page by page."""
    made = [await run(api, desk.owner, desk.session_id, message=f"No. {n}?") for n in range(3)]
    other = await a_session(desk.owner, desk.agent_id)
    await a_run(desk.owner, other["id"])

    first = await of_session(desk, "/runs?limit=2")
    second = await of_session(desk, f"/runs?limit=2&cursor={first['next_cursor']}")

    assert first["data"] + second["data"] == made[::-1]
    assert second["next_cursor"] is None


async def test_not_yours_is_not_there(desk: Desk, api: Api) -> None:
    """A run of another tenant or member, of none, and a malformed id are one 404, on every route of it."""
    made = await run(api, desk.owner, desk.session_id)
    stranger, member = await api.admin(), await desk.owner.member()
    routes = ["", "/calls", "/calls/1/context"]
    cases = [(stranger, made["id"]), (member, made["id"]), (desk.owner, str(uuid4())), (desk.owner, "1")]

    answers = [await who.get(f"/v1/runs/{id}{route}") for who, id in cases for route in routes]

    assert {(one.status_code, one.content) for one in answers} == {(404, answers[0].content)}
    assert all([as_json(await desk.owner.get(f"/v1/runs/{made['id']}{route}")) for route in routes])


async def test_the_fields_of_a_run_are_closed(desk: Desk) -> None:
    """An unknown field is refused by name."""
    refused = await start(desk.owner, desk.session_id, messages="x")

    assert named(refused) == (422, "unknown_field", [("unknown_field", None)])
