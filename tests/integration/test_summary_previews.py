"""The preview of a summary: a queued call as a try is, on the session as it was; nothing is saved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from hango.config import Secret, SecretUrl, Settings
from tests.desks import Desk, as_json, exclude, make_desk, put
from tests.people import Api, is_problem, serve
from tests.picking import picking
from tests.providers_server import FakeProvider, message, says
from tests.runs import calls_of, run

MODEL = "anthropic/claude-sonnet-4-5"
TEXT = "The owner asked for the bolts."
HISTORY = [
    {"role": "user", "content": "Where are the 40 bolts of /srv/stock.csv?"},
    {"role": "assistant", "content": "See https://example.org/d/3 for ABC-1234."},
    {"role": "user", "content": "And the nuts?"},
]
FACTS = ["40", "/srv/stock.csv", "https://example.org/d/3", "ABC-1234"]


@pytest.fixture
async def api(settings: Settings, fresh_database: Any, fake: FakeProvider) -> AsyncIterator[Api]:
    """An API whose provider `anthropic` is the fake, on a database of its own: a picker claims across tenants."""
    told = replace(
        settings,
        anthropic_base_url=fake.url,
        anthropic_api_key=Secret("a key"),
        database_url=SecretUrl(fresh_database.app_dsn),
    )
    fake.answer = says(message(TEXT))
    async with serve(told) as running:
        yield running


@pytest.fixture
async def desk(api: Api) -> Desk:
    made = await make_desk(await api.admin(), MODEL, messages=HISTORY)
    await made.change(compaction={"trigger_tokens": 1, "keep_messages": 1})
    return made


@asynccontextmanager
async def at_work(api: Api) -> AsyncIterator[None]:
    """A worker's inside for the time of the block."""
    async with picking(api.runtime.deps):
        yield


async def ask(desk: Desk, query: str = "", **headers: str) -> Any:
    return await desk.owner.post(f"/v1/sessions/{desk.session_id}/summary/preview{query}", headers=headers)


async def answered(api: Api, desk: Desk) -> dict[str, Any]:
    """A preview that a worker has seen to its end."""
    made = await ask(desk)
    assert made.status_code == 202, made.text
    async with at_work(api):
        return as_json(await desk.owner.get(f"{made.headers['location']}?wait=20"))


async def test_a_preview_is_accepted_and_answered(api: Api, desk: Desk) -> None:
    """202 with Location; then the text, and the facts of the covered messages that it no longer mentions."""
    reply = await ask(desk)
    made = reply.json()
    async with at_work(api):
        ended = as_json(await desk.owner.get(f"{reply.headers['location']}?wait=20"))

    assert (reply.status_code, reply.headers["retry-after"]) == (202, "1")
    assert reply.headers["location"] == f"/v1/summary-previews/{made['id']}"
    assert made == {
        "id": made["id"],
        "status": "queued",
        "text": None,
        "through_seq": 2,
        "missing": [],
        "usage": None,
        "error": None,
    }
    assert ended == {**made, "status": "succeeded", "text": TEXT, "missing": FACTS, "usage": ended["usage"]}
    assert (ended["usage"]["input_tokens"], ended["usage"]["output_tokens"]) == (12, 3)


async def test_a_preview_saves_nothing_and_is_no_try(api: Api, desk: Desk) -> None:
    """The session stays as it is, no list of tries has it, no try has its id; it is billed as a summary of no run."""
    before = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}")), await desk.stored()

    made = await answered(api, desk)

    assert (as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}")), await desk.stored()) == before
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/tries"))["data"] == []
    assert (await desk.owner.get(f"/v1/tries/{made['id']}")).status_code == 404
    (record,) = as_json(await desk.owner.get("/v1/usage/records"))["data"]
    assert (record["purpose"], record["run_id"], record["try_id"]) == ("summary", None, made["id"])


async def test_the_preview_asks_what_a_run_would_ask(api: Api, desk: Desk, fake: FakeProvider) -> None:
    """Byte for byte the summary call of a run that is started then, of the filtered history."""
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    await answered(api, desk)
    ended = await run(api, desk.owner, desk.session_id)

    assert [call["purpose"] for call in await calls_of(desk.owner, ended["id"])] == ["summary", "run"]
    bodies = [one.body for one in fake.seen if one.path.endswith("/messages")]
    assert bodies[0] == bodies[1]
    assert b"ABC-1234" not in bodies[0]


async def test_the_base_is_of_the_moment_of_the_post(api: Api, desk: Desk, fake: FakeProvider) -> None:
    """What is appended later is neither asked about nor missed."""
    reply = await ask(desk)
    await desk.append({"role": "assistant", "content": "In drawer 4711."}, {"role": "user", "content": "Thanks."})
    async with at_work(api):
        ended = as_json(await desk.owner.get(f"{reply.headers['location']}?wait=20"))

    assert (ended["through_seq"], ended["missing"]) == (2, FACTS)
    assert b"4711" not in fake.seen[-1].body


async def test_a_post_waits_for_the_answer(api: Api, desk: Desk) -> None:
    """`Prefer: wait` gives 200 with the text when it comes in time."""
    async with at_work(api):
        asked = asyncio.create_task(ask(desk, Prefer="wait=20"))
        while not len(api.runtime.waiters) and not asked.done():  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
        async with picking(api.runtime.deps):  # nobody rings here: another look
            reply = await asked

    assert (reply.status_code, reply.headers["preference-applied"]) == (200, "wait=20")
    assert (reply.json()["status"], reply.json()["text"]) == ("succeeded", TEXT)


async def test_a_repeated_post_gives_the_first_preview_again(desk: Desk) -> None:
    """The same key gives the first resource again; on another session it is another request: 422."""
    first, again = [await ask(desk, **{"Idempotency-Key": "one"}) for _ in range(2)]
    other = replace(desk, session_id=(await desk.owner.session(desk.agent_id, messages=HISTORY))["id"])
    refused = await ask(other, **{"Idempotency-Key": "one"})

    assert (first.status_code, again.status_code, again.json()) == (202, 202, first.json())
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")


async def test_what_is_kept_is_not_summarized(desk: Desk) -> None:
    """422 nothing_to_summarize when the messages that the agent keeps are all that there is."""
    await desk.change(compaction={"trigger_tokens": 1, "keep_messages": 3})

    refused = await ask(desk)

    assert (refused.status_code, refused.json()["code"], is_problem(refused)) == (422, "nothing_to_summarize", True)


async def test_a_used_up_quota_asks_nothing(api: Api) -> None:
    """402 before anything is queued."""
    desk = await make_desk(await api.admin(quota_tokens=1), MODEL, messages=HISTORY)
    await desk.change(compaction={"trigger_tokens": 1, "keep_messages": 1})

    refused = await ask(desk)

    assert (refused.status_code, refused.json()["code"]) == (402, "quota_exceeded")


async def test_a_call_that_fails_says_so(api: Api, desk: Desk, fake: FakeProvider) -> None:
    """`failed` with its error, no text; what the provider took no call for is not billed."""
    fake.answer = says({"error": {"type": "invalid_request_error", "message": "no"}}, status=400)

    made = await answered(api, desk)

    assert (made["status"], made["text"], made["missing"], made["error"]["code"]) == (
        "failed",
        None,
        [],
        "provider_refused",
    )


async def test_not_yours_is_not_there(api: Api, desk: Desk) -> None:
    """Another tenant's, another member's, a try's id and one that never was: 404; it goes with its session."""
    made = (await ask(desk)).json()
    path = f"/v1/summary-previews/{made['id']}"
    tried = await desk.owner.post(f"/v1/sessions/{desk.session_id}/context/try", json={})
    stranger, member = await api.admin(), await desk.owner.member()

    found = [
        (await stranger.get(path)).status_code,
        (await member.get(path)).status_code,
        (await desk.owner.get(f"/v1/summary-previews/{tried.json()['id']}")).status_code,
        (await desk.owner.get(f"/v1/summary-previews/{uuid4()}")).status_code,
        (await desk.owner.get(path)).status_code,
        (await desk.owner.delete(f"/v1/sessions/{desk.session_id}")).status_code,
        (await desk.owner.get(path)).status_code,
    ]

    assert found == [404, 404, 404, 404, 200, 204, 404]
