"""Batches through HTTP: many variants on one base, accepted whole, summed up by variant, cancelled together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message

from hango.config import Secret, Settings
from tests.asked import claim, end, events, previewed_wire, settle, wire_of
from tests.desks import Desk, as_json, exclude, make_desk, named, put
from tests.loops import watched_loop
from tests.people import Api, Person, a_batch, a_try, is_problem, serve
from tests.tries import REFUSED, SUCCEEDED
from tests.working import logged

VARIANTS: list[dict[str, Any]] = [
    {"label": "as it is"},
    {"label": "no memory", "exclude": ["system:memory:/memories/AGENTS.md"]},
    {"label": "shorter", "replace": {"message:4": "Forty."}, "message": "And the screws?"},
]


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


def path_of(desk: Desk) -> str:
    return f"/v1/sessions/{desk.session_id}/context/try-batches"


async def test_a_batch_is_accepted_as_a_whole(desk: Desk) -> None:
    """202 with Location and the Batch: counts by status, and of each variant its label, counts and tries, in order."""
    reply = await desk.owner.post(path_of(desk), json={"variants": VARIANTS, "repeats": 2, "label": "memory"})

    made = reply.json()
    assert (reply.status_code, reply.headers["location"]) == (202, f"/v1/try-batches/{made['id']}")
    assert reply.headers["retry-after"] == "1"
    tries = [one["tries"] for one in made["variants"]]
    assert [len(ids) for ids in tries] == [2, 2, 2]
    assert len({id for ids in tries for id in ids}) == 6
    assert made == {
        "id": made["id"],
        "session_id": desk.session_id,
        "label": "memory",
        "tries": 6,
        "done": 0,
        "counts": {"queued": 6},
        "variants": [
            {"label": variant["label"], "counts": {"queued": 2}, "usage": None, "tries": ids}
            for variant, ids in zip(VARIANTS, tries, strict=True)
        ],
        "created_at": made["created_at"],
        "finished_at": None,
    }
    assert as_json(await desk.owner.get(f"/v1/try-batches/{made['id']}")) == made


async def test_each_try_of_a_batch_sends_what_its_preview_shows(desk: Desk, api: Api) -> None:
    """A variant is a try of the same body: totals, hash, parts, bytes; it says its batch, place and label."""
    made = await a_batch(desk.owner, desk.session_id, variants=VARIANTS, repeats=2)

    for at, (variant, shown) in enumerate(zip(VARIANTS, made["variants"], strict=True)):
        changes = {name: value for name, value in variant.items() if name != "label"}
        single = await a_try(desk.owner, desk.session_id, **variant)
        wire = await previewed_wire(desk.owner, desk.session_id, **changes)
        for id in shown["tries"]:
            one = as_json(await desk.owner.get(f"/v1/tries/{id}"))
            own = {"id": id, "batch_id": made["id"], "variant": at, "created_at": one["created_at"]}
            assert one == {**single, **own}
            assert await wire_of(api, desk.owner, id) == wire


async def test_the_variants_are_summed_up_as_they_end(desk: Desk, api: Api) -> None:
    """Counts and usage by variant; `done` counts what has ended; the batch ends with its last try."""
    made = await a_batch(desk.owner, desk.session_id, variants=VARIANTS, repeats=2)
    first, second, third = (one["tries"] for one in made["variants"])
    await end(api, desk.owner, *first)
    await end(api, desk.owner, second[0], ended=REFUSED)
    attempt = await claim(api, desk.owner, third[0])

    found = as_json(await desk.owner.get(f"/v1/try-batches/{made['id']}"))

    usage = {"input_tokens": 20, "output_tokens": 10, "cache_read_tokens": 6, "cache_write_tokens": 4}
    nothing = dict.fromkeys(usage, 0)
    assert found == {
        **made,
        "done": 3,
        "counts": {"queued": 2, "running": 1, "succeeded": 2, "failed": 1},
        "variants": [
            {
                **made["variants"][0],
                "counts": {"succeeded": 2},
                "usage": {**usage, "cost_usd": 0.5, "estimated": False},
            },
            {
                **made["variants"][1],
                "counts": {"queued": 1, "failed": 1},
                "usage": {**nothing, "cost_usd": 0.0, "estimated": False},
            },
            {**made["variants"][2], "counts": {"queued": 1, "running": 1}},
        ],
    }
    await end(api, desk.owner, second[1], third[1])
    await settle(api, desk.owner, third[0], attempt)
    last = as_json(await desk.owner.get(f"/v1/try-batches/{made['id']}"))
    assert (last["done"], last["counts"]) == (6, {"succeeded": 5, "failed": 1})
    assert last["finished_at"] >= made["created_at"]


async def test_all_tries_of_a_batch_share_one_base(desk: Desk, api: Api) -> None:
    """One base for all, though the overrides change while it is accepted and before it is sent."""

    async def change_often() -> None:
        for n in range(10):
            as_json(await put(desk, desk.of_session, exclude("message:4") if n % 2 else []))

    made, _ = await asyncio.gather(a_batch(desk.owner, desk.session_id, variants=[{}] * 200), change_often())
    as_json(await put(desk, desk.of_session, exclude("message:2")))

    ids = [id for variant in made["variants"] for id in variant["tries"]]
    hashes = {one["request_sha256"] for one in await tries_of(desk, made["id"])}
    assert len(hashes) == 1
    assert await wire_of(api, desk.owner, ids[0]) == await wire_of(api, desk.owner, ids[-1])


async def tries_of(desk: Desk, batch_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = as_json(await desk.owner.get(f"/v1/try-batches/{batch_id}/tries?limit=500"))["data"]
    return found


async def test_a_batch_lists_its_tries(desk: Desk) -> None:
    """GET .../tries: those of the batch alone, the newest first, without texts, page by page."""
    made = await a_batch(desk.owner, desk.session_id, variants=VARIANTS)
    await a_try(desk.owner, desk.session_id)
    wanted = [one["tries"][0] for one in reversed(made["variants"])]

    first = as_json(await desk.owner.get(f"/v1/try-batches/{made['id']}/tries?limit=2"))
    query = {"limit": 2, "cursor": first["next_cursor"]}
    second = as_json(await desk.owner.get(f"/v1/try-batches/{made['id']}/tries", params=query))

    assert [one["id"] for one in (*first["data"], *second["data"])] == wanted
    assert second["next_cursor"] is None
    assert [(one["label"], one["variant"], one["sent"]) for one in first["data"]] == [
        ("shorter", 2, None),
        ("no memory", 1, None),
    ]
    assert first["data"][0]["request"]["replace"] == {"message:4": None}


async def test_a_session_lists_its_batches(desk: Desk, api: Api) -> None:
    """GET .../try-batches: the newest first, page by page, each as its own GET shows it."""
    made = [await a_batch(desk.owner, desk.session_id, label=f"batch {n}", repeats=2) for n in range(3)]
    other = await make_desk(desk.owner)
    await a_batch(other.owner, other.session_id)
    await end(api, desk.owner, made[0]["variants"][0]["tries"][0])
    wanted = [as_json(await desk.owner.get(f"/v1/try-batches/{one['id']}")) for one in reversed(made)]
    path = f"/v1/sessions/{desk.session_id}/try-batches"

    first = as_json(await desk.owner.get(path, params={"limit": 2}))
    second = as_json(await desk.owner.get(path, params={"limit": 2, "cursor": first["next_cursor"]}))

    assert [*first["data"], *second["data"]] == wanted
    assert second["next_cursor"] is None


async def test_cancelling_a_batch_ends_what_waits_and_tells_what_runs(desk: Desk, api: Api) -> None:
    """What waits ends at once, what runs is told to, what has ended stays; 200 when all of it has ended."""
    made = await a_batch(desk.owner, desk.session_id, repeats=3)
    ended, running, _ = made["variants"][0]["tries"]
    await end(api, desk.owner, ended)
    attempt = await claim(api, desk.owner, running)

    told = await desk.owner.post(f"/v1/try-batches/{made['id']}/cancel")
    await settle(api, desk.owner, running, attempt, SUCCEEDED)
    again = await desk.owner.post(f"/v1/try-batches/{made['id']}/cancel")

    assert (told.status_code, told.json()["counts"]) == (202, {"running": 1, "succeeded": 1, "cancelled": 1})
    assert (again.status_code, again.json()["counts"]) == (200, {"succeeded": 2, "cancelled": 1})
    assert again.json()["finished_at"] is not None


@pytest.mark.parametrize(
    ("body", "reason", "pointer"),
    [
        ({"variants": [{}] * 34, "repeats": 30}, "too_many_variants", "/variants"),
        ({"variants": [{}] * 1001}, "bad_field", "/variants"),
        ({"variants": []}, "bad_field", "/variants"),
        ({}, "missing_field", "/variants"),
        ({"variants": [{}], "repeats": 0}, "bad_field", "/repeats"),
        ({"variants": [{}], "repeats": 31}, "bad_field", "/repeats"),
        ({"variants": [{}], "repeats": 1.5}, "bad_field", "/repeats"),
        ({"variants": [{}, {"exclude": "message:1"}]}, "bad_field", "/variants/1/exclude"),
        ({"variants": [{}, {"no_such_field": 1}]}, "unknown_field", "/variants/1/no_such_field"),
        ({"variants": [{}], "message": "x"}, "unknown_field", "/message"),
    ],
)
async def test_the_bounds_of_a_batch(body: dict[str, Any], reason: str, pointer: str, desk: Desk) -> None:
    """1 to 30 repeats, at most 1,000 tries; what is wrong is named by its place."""
    reply = await desk.owner.post(path_of(desk), json=body)

    error = reply.json()["errors"][0]
    assert (reply.status_code, error["reason"], error["pointer"], is_problem(reply)) == (422, reason, pointer, True)
    assert await events(desk.owner, "context.try") == []


async def test_a_fault_says_which_variant(desk: Desk) -> None:
    """The sentence names the variant at fault, and nothing of the batch is started."""
    reply = await desk.owner.post(path_of(desk), json={"variants": [{}, {"until": 4}, {"exclude": ["message:9"]}]})

    assert named(reply) == (422, "ends_with_assistant", [("ends_with_assistant", "message:4")])
    assert reply.json()["detail"] == (
        "Variant 1: The history ends with the assistant: the next call needs a message of the user."
        " Give a `message`, or `until: 3` to ask that one again."
    )
    assert await events(desk.owner, "context.try") == []


@pytest.fixture
async def keyed(settings: Settings) -> AsyncIterator[Api]:
    """A server with a key for each provider, of which one is a compatible server with prices of its own."""
    key = Secret("sk-test")
    wanted = replace(settings, anthropic_api_key=key, openai_api_key=key, openai_base_url="http://127.0.0.1:9/v1")
    async with serve(wanted) as api:
        yield api


async def test_a_check_says_what_a_batch_would_come_to(keyed: Api) -> None:
    """`?check=true`: calls, estimated input, most output, cost from and to, and what is left of the quota."""
    owner = await keyed.admin(quota_tokens=1_000_000)
    desk = await make_desk(owner, model="anthropic/claude-sonnet-4")
    body = {"variants": [{}, {"exclude": ["message:2"]}], "repeats": 3}
    totals = [(await desk.preview(**change))["total_after"] for change in body["variants"]]  # type: ignore[attr-defined]  # a list of changes
    reserved = as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"]

    reply = await owner.post(f"{path_of(desk)}?check=true", json=body)

    checked = as_json(reply)
    most = 6 * as_json(await owner.get(f"/v1/agents/{desk.agent_id}"))["max_output_tokens"]
    # Claude Sonnet 4: 3 dollars a million in, 15 out.
    least = round(3 * sum(totals) * 3 / 1_000_000, 6)
    assert checked == {
        "calls": 6,
        "input_tokens": 3 * sum(totals),
        "output_tokens_most": most,
        "cost_usd": {"least": pytest.approx(least), "most": pytest.approx(least + 15 * most / 1_000_000)},
        "quota_left": 1_000_000,
    }
    assert reserved == as_json(await owner.get("/v1/me"))["tenant"]["quota_reserved"] == 0


@pytest.mark.parametrize(("model", "cost"), [("offline/extract", {"least": 0.0, "most": 0.0}), ("openai/gpt-5", None)])
async def test_a_check_knows_no_price_or_that_it_is_free(model: str, cost: Any, keyed: Api) -> None:
    """Cost is null where no price is known: a compatible server has its own. Offline is free; without a quota: null."""
    desk = await make_desk(await keyed.admin())

    checked = as_json(await desk.owner.post(f"{path_of(desk)}?check=true", json={"variants": [{"model": model}]}))

    assert (checked["calls"], checked["cost_usd"], checked["quota_left"]) == (1, cost, None)


async def test_a_check_starts_nothing_and_takes_no_key(desk: Desk) -> None:
    """A check queues nothing, reserves nothing and leaves an Idempotency-Key free; it refuses what the POST would."""
    headers = {"Idempotency-Key": "one"}
    checked = await desk.owner.post(f"{path_of(desk)}?check=true", json={"variants": [{}]}, headers=headers)
    refused = await desk.owner.post(f"{path_of(desk)}?check=true", json={"variants": [{"until": 9}]}, headers=headers)

    made = await desk.owner.post(path_of(desk), json={"variants": [{}, {}]}, headers=headers)

    assert (checked.status_code, refused.status_code, made.status_code) == (200, 422, 202)
    assert refused.json()["errors"][0]["pointer"] == "/variants/0/until"
    assert len(await events(desk.owner, "context.try")) == 2


async def test_a_large_batch_holds_up_nobody(caller: Person) -> None:
    """1,000 variants of a session of 1,000 messages are accepted in one go, and others wait for none of it."""
    history = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"Message {n}. " * 40} for n in range(999)]
    desk = await make_desk(caller, messages=[*history, {"role": "user", "content": "And now?"}])
    variants = [{"exclude": [f"message:{seq}"]} for seq in range(2, 1000)] + [{}, {"message": "And then?"}]
    async with watched_loop() as work:
        made = await desk.owner.post(path_of(desk), json={"variants": variants})

    assert (made.status_code, made.json()["counts"]) == (202, {"queued": 1000})
    # Whoever else asks waits for one round of the loop: for a variant or two, never for the batch.
    assert work.longest < work.total / 10


async def test_a_batch_of_a_client_that_has_gone_is_given_up(caller: Person, api: Api) -> None:
    """Who goes away while a batch is worked out gets none: nothing is queued, and the work ends within a variant."""
    desk = await make_desk(caller)
    body = json.dumps({"variants": [{}] * 1000}).encode()
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return next(messages)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {caller.key}".encode()), (b"content-type", b"application/json")]
    path = {"path": path_of(desk), "raw_path": path_of(desk).encode(), "query_string": b""}
    scope = {"type": "http", "http_version": "1.1", "scheme": "http", "method": "POST", **path, "headers": headers}
    with logged() as lines:
        await api.app(scope, receive, send)

    assert sent == []
    assert [(line["event"], line["status"]) for line in lines()] == [("request", 499)]
    assert await events(caller, "context.try") == []
