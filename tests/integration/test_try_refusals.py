"""Tries that are refused: why, in which order, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from hango.config import Secret, Settings
from tests.asked import ask, end, events, principal_of
from tests.desks import HISTORY, Desk, as_json, exclude, make_desk, named, put
from tests.people import Api, Person, a_batch, a_try, is_problem, serve
from tests.tries import ledger

KEY = Secret("sk-test")


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


@pytest.fixture
async def keyed(settings: Settings) -> AsyncIterator[Api]:
    """A server with a key for each provider."""
    async with serve(replace(settings, anthropic_api_key=KEY, openai_api_key=KEY)) as api:
        yield api


async def left_over(api: Api, desk: Desk) -> dict[str, Any]:
    """What there is of tries in the tenant; nothing at all, when nothing was accepted."""
    principal = await principal_of(desk.owner)
    async with api.runtime.deps.store.read(principal) as scope:
        cursor = await scope.conn.execute(
            "select (select count(*) from tries), (select count(*) from try_requests),"
            " (select count(*) from try_batches), (select count(*) from idempotency_keys),"
            " (select count(*) from context_bases),"
            " (select count(*) from audit_events where action like 'context.try%')"
        )
        (counts,) = await cursor.fetchall()
    reserved = (await ledger(api.runtime.deps.store, principal)).reserved
    return dict(zip(("tries", "requests", "batches", "keys", "bases", "events"), counts, strict=True)) | {
        "reserved": reserved
    }


NOTHING = dict.fromkeys(("tries", "requests", "batches", "keys", "bases", "events", "reserved"), 0)

# A body, and reason, part and pointer of the refusal.
Refused = tuple[dict[str, Any], str, str | None, str | None]
REFUSED: dict[str, Refused] = {
    "a tool replaced": ({"replace": {"tool:look": "{}"}}, "replace_tool", "tool:look", None),
    "a blank replacement": ({"replace": {"message:4": " \u00a0"}}, "empty_replacement", "message:4", None),
    "no part id": ({"exclude": ["message:+1"]}, "bad_part_id", "message:+1", None),
    "no such message": ({"exclude": ["message:6"]}, "unknown_part", "message:6", None),
    "twice": ({"exclude": ["message:2", "message:2"]}, "duplicate_part", "message:2", None),
    "excluded and replaced": (
        {"exclude": ["message:2"], "replace": {"message:2": "x"}},
        "duplicate_part",
        "message:2",
        None,
    ),
    "excluded and included": (
        {"exclude": ["tool:look"], "include": ["tool:look"]},
        "duplicate_part",
        "tool:look",
        None,
    ),
    "replaced and included": (
        {"replace": {"message:4": "x"}, "include": ["*", "message:4"]},
        "duplicate_part",
        "message:4",
        None,
    ),
    "no part to include": ({"include": ["message:0"]}, "bad_part_id", "message:0", None),
    "the extra text": ({"exclude": ["extra"], "message": "x"}, "bad_part_id", "extra", None),
    "no user left": ({"exclude": ["message:1", "message:5"]}, "no_user_message", "message:5", None),
    "the assistant first": ({"exclude": ["message:1", "message:2"]}, "starts_with_assistant", "message:1", None),
    "no such end": ({"until": 6}, "unknown_part", None, "/until"),
    "the end is the assistant's": ({"until": 4}, "ends_with_assistant", "message:4", None),
    "the end left out": ({"exclude": ["message:5"]}, "ends_with_assistant", "message:4", None),
    "no words": ({"message": " \n"}, "bad_field", None, "/message"),
    "no model": ({"model": "gpt-5"}, "bad_model", None, "/model"),
    "no provider": ({"model": "google/gemini"}, "bad_model", None, "/model"),
    "no key": ({"model": "anthropic/claude-sonnet-5"}, "no_provider_key", None, None),
    "an end before the first": ({"until": 0}, "bad_field", None, "/until"),
    "half a letter": ({"replace": {"message:4": "\ud83d"}}, "invalid_text", None, "/replace/message:4"),
    "a long label": ({"label": "x" * 201}, "bad_field", None, "/label"),
    "a label of two lines": ({"label": "a\nb"}, "bad_field", None, "/label"),
    "what nobody knows": ({"temperature": 1}, "unknown_field", None, "/temperature"),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
async def test_what_could_not_be_sent_is_refused_by_part(refused: Refused, desk: Desk, api: Api) -> None:
    """422 before anything is queued, naming the part or field; of a batch, the variant; nothing is left of either."""
    body, reason, part, pointer = refused
    single = await desk.owner.post(f"/v1/sessions/{desk.session_id}/context/try", content=as_body(body))
    batch = await desk.owner.post(
        f"/v1/sessions/{desk.session_id}/context/try-batches", content=as_body({"variants": [{}, body]})
    )
    lone = await desk.owner.post(
        f"/v1/sessions/{desk.session_id}/context/try-batches", content=as_body({"variants": [body]})
    )

    assert all(is_problem(reply) for reply in (single, batch, lone))
    fault = (422, reason, [(reason, part)])
    assert [named(reply) for reply in (single, batch, lone)] == [fault] * 3
    assert [reply.json()["errors"][0].get("pointer") for reply in (single, batch, lone)] == [
        pointer,
        f"/variants/1{pointer or ''}",
        f"/variants/0{pointer or ''}",
    ]
    assert await left_over(api, desk) == NOTHING


def as_body(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("history", "body", "until"),
    [
        (HISTORY[:4], {}, 3),
        (HISTORY, {"exclude": ["message:5"]}, 3),
        (HISTORY, {"until": 4, "exclude": ["message:2"]}, 1),
        ([*HISTORY[:2], *HISTORY[3:4]], {}, 1),
        ([*HISTORY[:1], HISTORY[3], {"role": "user", "content": " "}, HISTORY[3]], {}, 1),
    ],
    ids=["results", "excluded", "a pair excluded", "no result", "a blank message"],
)
async def test_the_end_that_would_work_is_named_and_works(
    history: list[dict[str, Any]], body: dict[str, Any], until: int, caller: Person
) -> None:
    """422 `ends_with_assistant` names the `until` that would work; with it, or with a message, the try is accepted."""
    desk = await make_desk(caller, messages=history)

    reply = await ask(caller, desk.session_id, **body)

    assert (reply.status_code, reply.json()["code"]) == (422, "ends_with_assistant")
    way = f"Give a `message`, or `until: {until}` to ask that one again."
    assert reply.json()["detail"].endswith(way)
    assert reply.json()["errors"][0]["message"] == reply.json()["detail"]
    await a_try(caller, desk.session_id, **{**body, "until": until})
    await a_try(caller, desk.session_id, **{**body, "message": "And now?"})


async def test_a_history_that_is_no_request_says_what_would_mend_it(caller: Person) -> None:
    """A session without a message of the user needs one; one that starts with the assistant may leave it out."""
    empty = await make_desk(caller, messages=[])
    greeted = await make_desk(caller, messages=[{"role": "assistant", "content": "Hello."}, *HISTORY[:1]])

    nobody, first = await ask(caller, empty.session_id), await ask(caller, greeted.session_id)

    assert (nobody.json()["code"], nobody.json()["detail"]) == (
        "no_user_message",
        "No message of the user is left to answer. Give a `message`.",
    )
    assert named(first) == (422, "starts_with_assistant", [("starts_with_assistant", "message:1")])
    assert first.json()["detail"] == "The history does not start with a message of the user. Exclude it."
    await a_try(caller, empty.session_id, message="Hello.")
    await a_try(caller, greeted.session_id, exclude=["message:1"])


async def test_a_model_that_goes_on_takes_the_assistants_words(keyed: Api) -> None:
    """A request may end with the assistant when the model's row says `prefill`: the answer goes on from there."""
    owner = await keyed.admin()
    desk = await make_desk(owner, messages=HISTORY[:4])

    refused = await ask(owner, desk.session_id, model="anthropic/claude-sonnet-5")
    made = await a_try(owner, desk.session_id, model="anthropic/claude-sonnet-4")

    assert refused.json()["code"] == "ends_with_assistant"
    assert made["sent"][-1] == "message:4"


@pytest.mark.parametrize(
    ("tools", "reason", "part"),
    [
        ([{"name": "find", "input_schema": {"type": "string"}}], "bad_tool_schema", "tool:find"),
        ([{"name": f"tool_{n}", "input_schema": {"type": "object"}} for n in range(129)], "too_many_tools", None),
    ],
    ids=["schema", "number"],
)
async def test_tools_that_the_provider_refuses_are_named(
    tools: list[dict[str, Any]], reason: str, part: str | None, keyed: Api
) -> None:
    """A tool that the called provider would refuse is a 422 on a try that names it; excluded, it is none."""
    owner = await keyed.admin()
    agent = await owner.agent(model="openai/gpt-5", builtin=[], tools=tools)
    session = await owner.session(agent["id"], messages=HISTORY[:1])

    reply = await ask(owner, session["id"])

    assert named(reply) == (422, reason, [(reason, part)])
    await a_try(owner, session["id"], exclude=[f"tool:{tools[-1]['name']}"])


async def test_a_quota_that_is_used_up_is_402_before_anything_is_queued(api: Api) -> None:
    """402 when used and reserved leave too little: no row, no audit event, no idempotency key; a batch goes whole."""
    owner = await api.admin(quota_tokens=100)
    desk = await make_desk(owner)
    key = {"Idempotency-Key": "one"}

    single = await owner.post(f"/v1/sessions/{desk.session_id}/context/try", json={}, headers=key)
    batch = await owner.post(f"/v1/sessions/{desk.session_id}/context/try-batches", json={"variants": [{}, {}]})

    for reply in (single, batch):
        assert (reply.status_code, reply.json()["code"], is_problem(reply)) == (402, "quota_exceeded", True)
    assert await left_over(api, desk) == NOTHING
    await owner.patch("/v1/tenant", json={"quota_tokens": None})
    again = await owner.post(f"/v1/sessions/{desk.session_id}/context/try", json={}, headers=key)
    assert again.status_code == 202


async def test_a_batch_is_admitted_whole_or_not_at_all(api: Api) -> None:
    """With quota for three tries a batch of four is refused and holds nothing; one of three is accepted."""
    owner = await api.admin()
    desk = await make_desk(owner)
    await a_try(owner, desk.session_id)
    one = as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"]
    await owner.patch("/v1/tenant", json={"quota_tokens": 4 * one})

    four = await owner.post(f"/v1/sessions/{desk.session_id}/context/try-batches", json={"variants": [{}] * 4})
    held = as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"]
    await a_batch(owner, desk.session_id, variants=[{}] * 3)

    assert (four.status_code, held) == (402, one)
    assert as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"] == 4 * one


async def test_a_quota_race_lets_exactly_as_many_through_as_there_is_quota_for(api: Api) -> None:
    """100 tries at once with quota for 10: exactly 10 are accepted, and the rest is 402 (three rounds)."""
    for _ in range(3):
        owner = await api.admin()
        desk = await make_desk(owner)
        first = await a_try(owner, desk.session_id)
        one = as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"]
        await owner.post(f"/v1/tries/{first['id']}/cancel")
        await owner.patch("/v1/tenant", json={"quota_tokens": 10 * one + one // 2})

        replies = await asyncio.gather(*(ask(owner, desk.session_id) for _ in range(100)))

        statuses = [reply.status_code for reply in replies]
        assert (statuses.count(202), statuses.count(402)) == (10, 90)
        assert as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"] == 10 * one
        accepted = [target for target, _ in await events(owner, "context.try")]
        assert len(accepted) == 11


async def test_what_is_reserved_becomes_what_is_used(api: Api) -> None:
    """A settled call frees its reservation: with quota for one, the next is accepted when the first has ended."""
    owner = await api.admin()
    desk = await make_desk(owner)
    first = await a_try(owner, desk.session_id)
    one = as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"]
    await owner.patch("/v1/tenant", json={"quota_tokens": one + 20})

    assert (await ask(owner, desk.session_id)).status_code == 402
    await end(api, owner, first["id"])

    assert (await ask(owner, desk.session_id)).status_code == 202


async def test_as_many_may_wait_and_run_as_the_setting_says(settings: Settings) -> None:
    """429 `too_many_tries` with Retry-After over the tenant's outstanding tries; a larger batch says to send fewer."""
    async with serve(replace(settings, context_try_tenant_outstanding=3)) as api:
        owner = await api.admin()
        desk = await make_desk(owner)
        batch = f"/v1/sessions/{desk.session_id}/context/try-batches"
        too_large = await owner.post(batch, json={"variants": [{}], "repeats": 4})
        await a_batch(owner, desk.session_id, repeats=2)
        last = await a_try(owner, desk.session_id)

        over = await ask(owner, desk.session_id)
        await owner.post(f"/v1/tries/{last['id']}/cancel")

        assert [(one.status_code, one.json()["code"]) for one in (too_large, over)] == [(429, "too_many_tries")] * 2
        assert too_large.json()["detail"] == ("4 tries are more than the 3 that may wait and run at once. Send fewer.")
        assert over.json()["detail"] == (
            "3 tries wait or run, and with 1 more there would be more than 3. Wait for some to end, or cancel them."
        )
        assert (over.headers["retry-after"], is_problem(over)) == ("5", True)
        assert (await ask(owner, desk.session_id)).status_code == 202
        stranger = await make_desk(await api.admin())
        assert (await ask(stranger.owner, stranger.session_id)).status_code == 202


async def test_a_post_takes_one_from_the_rate_limit_a_batch_too(api: Api) -> None:
    """Each request takes one from the key's limit, a batch of many tries as well; over it a 429 before all else."""
    owner = await api.admin()
    desk = await make_desk(owner)
    await owner.patch("/v1/tenant", json={"rate_per_minute": 3})
    batch = f"/v1/sessions/{desk.session_id}/context/try-batches"

    replies = [
        await owner.post(batch, json={"variants": [{}] * 5, "repeats": 2}),
        await ask(owner, desk.session_id),
        await owner.post(f"/v1/sessions/{desk.session_id}/context/try", content=b"{"),
        await ask(owner, desk.session_id),
        await owner.post("/v1/sessions/nothing/context/try", content=b"{"),
    ]

    assert [reply.status_code for reply in replies] == [202, 202, 400, 429, 429]
    assert {reply.json()["code"] for reply in replies[3:]} == {"rate_limited"}
    assert int(replies[3].headers["retry-after"]) >= 1


async def test_a_request_is_judged_in_one_order(api: Api) -> None:
    """401, then 404, then 413, 400 and 422, and 402 last: what is not yours says nothing of its quota or your body."""
    owner = await api.admin(quota_tokens=0)
    desk, stranger = await make_desk(owner), await api.admin()
    path = f"/v1/sessions/{desk.session_id}/context/try"

    replies = [
        await api.anyone.post(path, content=b"{"),
        await stranger.post(path, content=b"{"),
        await owner.post(path, content=b" " * (8 * 1024 * 1024 + 1)),
        await owner.post(path, content=b"{"),
        await owner.post(path, json={"exclude": ["message:9"]}),
        await owner.post(path, json={}),
    ]

    assert [reply.status_code for reply in replies] == [401, 404, 413, 400, 422, 402]


async def test_a_set_is_judged_on_top_of_the_saved_one(desk: Desk) -> None:
    """Saved overrides apply first, then the body's: together they must leave a valid request."""
    as_json(await put(desk, desk.of_session, exclude("message:1", "message:2", "message:4")))
    shown = await desk.context()

    made = await a_try(desk.owner, desk.session_id)
    own = await ask(desk.owner, desk.session_id, exclude=["message:5"])

    assert (made["request_sha256"], made["excluded"]) == (
        shown["request_sha256"],
        ["message:1", "message:2", "message:3", "message:4"],
    )
    assert named(own) == (422, "no_user_message", [("no_user_message", "message:5")])
