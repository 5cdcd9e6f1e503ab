"""A try through HTTP: accepted as it will be sent, shown, listed, cancelled, hidden with its session."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from hango.config import Settings
from hango.store import retention
from hango.tries import Settlement, TryError, TryStatus
from tests.asked import ask, claim, end, events, previewed_wire, principal_of, settle, wire_of
from tests.conftest import Database
from tests.desks import COUNT, LOOK, MEMORY, Desk, as_json, exclude, make_desk, put, swap
from tests.loops import watched_loop
from tests.people import Api, Person, a_batch, a_session, a_try, serve
from tests.tries import ESTIMATE, LOST, REFUSED, SUCCEEDED, TIMED_OUT

SYSTEM = ["system:agent", f"system:memory:{MEMORY}"]
TOOLS = [f"tool:{LOOK['name']}", f"tool:{COUNT['name']}", "tool:load_skill"]


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


def messages(*seqs: int) -> list[str]:
    return [f"message:{seq}" for seq in seqs]


async def test_a_try_is_accepted_as_a_whole(desk: Desk) -> None:
    """202 with Location and the Try: what was asked, what is sent and left out, before and after, and no answer yet."""
    changes: dict[str, Any] = {"exclude": ["message:2"], "replace": {"message:4": "Forty."}, "include": ["tool:look"]}
    seen = await desk.preview(**changes, message="In Spanish.")

    reply = await ask(desk.owner, desk.session_id, **changes, message="In Spanish.", label="short")

    made = reply.json()
    assert (reply.status_code, reply.headers["location"]) == (202, f"/v1/tries/{made['id']}")
    assert reply.headers["retry-after"] == "1"
    assert made == {
        "id": made["id"],
        "session_id": desk.session_id,
        "batch_id": None,
        "variant": None,
        "label": "short",
        "status": "queued",
        "request": {**changes, "message": "In Spanish.", "until": None, "model": "offline/extract"},
        "sent": [*SYSTEM, *TOOLS, *messages(1, 4, 5), "extra"],
        "excluded": messages(2, 3),
        "tokens_before": seen["estimate_before"],
        "tokens_after": seen["estimate_after"],
        "request_sha256": seen["request_sha256"],
        "answer": None,
        "stop_reason": None,
        "usage": None,
        "error": None,
        "attempts": 0,
        "purged": False,
        "created_at": made["created_at"],
        "started_at": None,
        "finished_at": None,
    }
    assert as_json(await desk.owner.get(f"/v1/tries/{made['id']}")) == made


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a call, and so its result": {"exclude": ["message:2"]},
    "a result, and so its call": {"exclude": ["message:3"]},
    "a tool and memory": {"exclude": ["tool:count", f"system:memory:{MEMORY}"]},
    "texts": {"replace": {"system:agent": "You count.", "message:3": "Nothing.", "message:4": "None."}},
    "a message": {"message": "How many screws?"},
    "an earlier end": {"until": 3},
    "an earlier end, and a message": {"until": 4, "message": "How many screws?"},
    "a cut inside a pair": {"until": 2},
    "a cut inside a pair, and a message": {"until": 2, "message": "Go on."},
    "a saved one lifted": {"include": ["tool:look"]},
    "all saved ones lifted": {"include": ["*"]},
    "all saved ones lifted, and others": {"include": ["*"], "exclude": ["tool:count"], "replace": {"message:1": "Hm."}},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
async def test_a_try_sends_what_the_preview_shows(changes: dict[str, Any], desk: Desk, api: Api) -> None:
    """The preview of a body is the request of its try: totals, hash, parts, and every byte that the provider gets."""
    as_json(await put(desk, desk.of_agent, [*exclude("tool:look"), *swap("system:agent", "You sort.")]))
    as_json(await put(desk, desk.of_session, swap("message:4", "Drawer 3.")))
    seen = await desk.preview(**changes)
    parts = [part for group in ("system", "tools", "messages") for part in seen[group]]

    made = await a_try(desk.owner, desk.session_id, **changes)

    assert (made["tokens_before"], made["tokens_after"]) == (seen["total_before"], seen["total_after"])
    assert made["request_sha256"] == seen["request_sha256"]
    assert made["sent"] == [part["id"] for part in parts if part["sent"]]
    assert sorted(made["excluded"]) == sorted(part["id"] for part in parts if not part["included"])
    assert await wire_of(api, desk.owner, made["id"]) == await previewed_wire(desk.owner, desk.session_id, **changes)


async def test_the_session_gets_no_message_and_no_run(desk: Desk, api: Api) -> None:
    """The answer comes back; the session has the messages and runs that it had."""
    before, shown = await desk.stored(), as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}"))
    made = await a_try(desk.owner, desk.session_id, exclude=["message:2"], message="And the screws?")

    await end(api, desk.owner, made["id"])

    found = as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))
    assert found["answer"] == {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    assert await desk.stored() == before
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}")) == shown


USED = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3, "cache_write_tokens": 2}
GUESSED = {"input_tokens": 60, "output_tokens": 40, "cache_read_tokens": 0, "cache_write_tokens": 0}
STOPPED = Settlement(TryStatus.CANCELLED, ESTIMATE, TryError.CANCELLED)
ENDS: dict[str, tuple[Settlement, dict[str, Any]]] = {
    "answered": (
        SUCCEEDED,
        {
            "status": "succeeded",
            "answer": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
            "stop_reason": "end_turn",
            "usage": {**USED, "cost_usd": 0.25, "estimated": False},
        },
    ),
    "too late": (
        TIMED_OUT,
        {
            "status": "timed_out",
            "usage": {**GUESSED, "cost_usd": None, "estimated": True},
            "error": {
                "code": "timeout",
                "message": "The provider did not answer in time. It may charge for the call.",
            },
        },
    ),
    "refused": (
        REFUSED,
        {
            "status": "failed",
            "usage": {**dict.fromkeys(USED, 0), "cost_usd": 0.0, "estimated": False},
            "error": {
                "code": "provider_refused",
                "message": "The provider refused the request. It answered with status 404. It said: no such model",
            },
        },
    ),
    "cancelled during the call": (
        STOPPED,
        {
            "status": "cancelled",
            "usage": {**GUESSED, "cost_usd": None, "estimated": True},
            "error": {
                "code": "cancelled",
                "message": "The try was cancelled. The call was under way: the provider may charge for it.",
            },
        },
    ),
    "lost": (
        LOST,
        {
            "status": "lost",
            "usage": {**GUESSED, "cost_usd": None, "estimated": True},
            "error": {
                "code": "worker_lost",
                "message": "The worker went away. The call is not repeated, so that nothing is paid twice.",
            },
        },
    ),
}


@pytest.mark.parametrize(("ended", "wanted"), ENDS.values(), ids=ENDS)
async def test_an_end_is_shown_whole(ended: Settlement, wanted: dict[str, Any], desk: Desk, api: Api) -> None:
    """Answer, stop reason, usage and error of an ended try; its error is one sentence beside a closed code."""
    made = await a_try(desk.owner, desk.session_id)

    await end(api, desk.owner, made["id"], ended=ended)

    found = as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))
    times = {name: found[name] for name in ("started_at", "finished_at")}
    assert found == {**made, **wanted, **times, "attempts": 1}
    assert made["created_at"] <= times["started_at"] <= times["finished_at"]


async def test_tool_calls_of_an_answer_are_shown_as_they_came(desk: Desk, api: Api) -> None:
    """Tool calls in the answer are returned, never executed; digits and unknown fields are kept as text."""
    content = '[{"type":"tool_use","id":"a","name":"look","input":{"n":1.10,"big":123456789012345678901234567890}}]'
    made = await a_try(desk.owner, desk.session_id)

    await end(api, desk.owner, made["id"], ended=replace(SUCCEEDED, answer=content))

    assert f'"content":{content}' in (await desk.owner.get(f"/v1/tries/{made['id']}")).text
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}"))["messages"] == 5


async def test_a_list_is_without_texts_and_answers(desk: Desk, api: Api) -> None:
    """Lists give part ids only: no replacement, no message, no answer, no words of a provider, not what is sent."""
    changes = {"exclude": ["message:2"], "replace": {"message:4": "Forty."}, "message": "In Spanish."}
    answered = await a_try(desk.owner, desk.session_id, **changes)
    refused = await a_try(desk.owner, desk.session_id)
    await end(api, desk.owner, answered["id"])
    await end(api, desk.owner, refused["id"], ended=REFUSED)
    shown = [as_json(await desk.owner.get(f"/v1/tries/{one['id']}")) for one in (refused, answered)]

    listed = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/tries"))

    said = {"code": "provider_refused", "message": "The provider refused the request. It answered with status 404."}
    request = {**answered["request"], "replace": {"message:4": None}, "message": None}
    assert listed == {
        "data": [
            {**shown[0], "sent": None, "error": said},
            {**shown[1], "sent": None, "answer": None, "request": request},
        ],
        "next_cursor": None,
    }


async def test_a_list_goes_page_by_page_with_the_newest_first(desk: Desk) -> None:
    """Lists take limit and cursor; tries of batches are among those of the session, those of others are not."""
    made = [(await a_try(desk.owner, desk.session_id))["id"] for _ in range(3)]
    batch = await a_batch(desk.owner, desk.session_id, repeats=2)
    elsewhere = await a_session(desk.owner, desk.agent_id)
    await a_try(desk.owner, elsewhere["id"])
    wanted = [*reversed(made + batch["variants"][0]["tries"])]

    pages, cursor = [], None
    for _ in range(3):
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/tries", params=query))
        pages.append([one["id"] for one in page["data"]])
        cursor = page["next_cursor"]

    assert (pages, cursor) == ([wanted[:2], wanted[2:4], wanted[4:]], None)


async def test_texts_and_answer_are_kept_for_a_while(settings: Settings) -> None:
    """Texts and answer are kept for RETENTION, then null and `purged: true`; ids, usage and the rest stay."""
    async with serve(replace(settings, context_try_retention=0.0)) as api:
        desk = await make_desk(await api.admin())
        made = await a_try(desk.owner, desk.session_id, replace={"message:4": "Forty."}, message="In Spanish.")
        waiting = await a_try(desk.owner, desk.session_id, message="In French.")
        await end(api, desk.owner, made["id"])
        before = as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))

        async with api.runtime.deps.store.begin(await principal_of(desk.owner)) as scope:
            await retention.purge(scope)

        found = as_json(await desk.owner.get(f"/v1/tries/{made['id']}"))
        request = {**made["request"], "replace": {"message:4": None}, "message": None}
        assert found == {**before, "request": request, "answer": None, "purged": True}
        assert as_json(await desk.owner.get(f"/v1/tries/{waiting['id']}")) == waiting


async def test_cancelling_ends_what_waits_at_once(desk: Desk) -> None:
    """A waiting try is cancelled at once: not called, not charged; cancelled again it stays as it is."""
    made = await a_try(desk.owner, desk.session_id)

    first = await desk.owner.post(f"/v1/tries/{made['id']}/cancel")
    second = await desk.owner.post(f"/v1/tries/{made['id']}/cancel")

    found = first.json()
    error = {"code": "cancelled", "message": "The try was cancelled."}
    assert found == {**made, "status": "cancelled", "error": error, "finished_at": found["finished_at"]}
    assert found["finished_at"] is not None
    assert [(reply.status_code, reply.json()) for reply in (first, second)] == [(200, found)] * 2
    assert as_json(await desk.owner.get(f"/v1/tries/{made['id']}")) == found
    assert as_json(await desk.owner.get("/v1/me"))["tenant"]["quota_reserved"] == 0
    assert as_json(await desk.owner.get("/v1/usage/records"))["data"] == []


async def test_cancelling_tells_the_worker_of_what_runs(desk: Desk, api: Api) -> None:
    """A running try answers 202 and goes on until its worker has heard; an ended one answers 200, unchanged."""
    made = await a_try(desk.owner, desk.session_id)
    attempt = await claim(api, desk.owner, made["id"])

    told = await desk.owner.post(f"/v1/tries/{made['id']}/cancel")
    await settle(api, desk.owner, made["id"], attempt, STOPPED)
    ended = await desk.owner.post(f"/v1/tries/{made['id']}/cancel")

    assert (told.status_code, told.json()["status"]) == (202, "running")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")


@pytest.mark.parametrize("what", ["session", "agent"])
async def test_deleting_cancels_what_waits(what: str, desk: Desk, api: Api) -> None:
    """Deleting an agent or session cancels its queued tries, asks running ones to end, and keeps usage and audit."""
    waiting, running, ended = [(await a_try(desk.owner, desk.session_id))["id"] for _ in range(3)]
    await end(api, desk.owner, ended)
    attempt = await claim(api, desk.owner, running)
    path = f"/v1/sessions/{desk.session_id}" if what == "session" else f"/v1/agents/{desk.agent_id}"

    assert (await desk.owner.delete(path)).status_code == 204

    outcomes = [(target, detail["outcome"]) for target, detail in await events(desk.owner, "context.try_finished")]
    assert outcomes == [(ended, "succeeded"), (waiting, "cancelled")]
    await settle(api, desk.owner, running, attempt, STOPPED)
    records = as_json(await desk.owner.get("/v1/usage/records"))["data"]
    assert [one["try_id"] for one in records] == [running, ended]
    assert as_json(await desk.owner.get("/v1/me"))["tenant"]["quota_reserved"] == 0


async def test_a_deleted_session_hides_its_tries(desk: Desk) -> None:
    """What is of a deleted session is not there: the same 404 as for what never was, on every route of tries."""
    made, batch = await a_try(desk.owner, desk.session_id), await a_batch(desk.owner, desk.session_id)
    never = await desk.owner.get("/v1/tries/00000000-0000-7000-8000-000000000000")
    assert (await desk.owner.delete(f"/v1/sessions/{desk.session_id}")).status_code == 204

    replies = [
        await desk.owner.call(method, path, json={})
        for method, path in [
            ("GET", f"/v1/tries/{made['id']}"),
            ("GET", f"/v1/tries/{made['id']}?wait=60"),
            ("POST", f"/v1/tries/{made['id']}/cancel"),
            ("GET", f"/v1/try-batches/{batch['id']}"),
            ("GET", f"/v1/try-batches/{batch['id']}/tries"),
            ("POST", f"/v1/try-batches/{batch['id']}/cancel"),
            ("GET", f"/v1/sessions/{desk.session_id}/tries"),
            ("GET", f"/v1/sessions/{desk.session_id}/try-batches"),
            ("POST", f"/v1/sessions/{desk.session_id}/context/try"),
            ("POST", f"/v1/sessions/{desk.session_id}/context/try-batches"),
        ]
    ]

    assert {(reply.status_code, reply.content) for reply in replies} == {(404, never.content)}


async def test_a_session_of_a_deleted_agent_can_still_be_tried(desk: Desk) -> None:
    """A deleted agent's sessions stay, and so does what their next request would contain: it can be tried."""
    assert (await desk.owner.delete(f"/v1/agents/{desk.agent_id}")).status_code == 204

    made = await a_try(desk.owner, desk.session_id)

    assert made["request_sha256"] == (await desk.context())["request_sha256"]


async def test_a_page_of_many_parts_holds_up_nobody(desk: Desk, database: Database) -> None:
    """A page whose tries leave out thousands of parts is spelt out beside the loop: the work of others goes on."""
    await a_batch(desk.owner, desk.session_id, variants=[{}] * 100)
    with psycopg.connect(database.superuser_dsn) as conn:
        conn.execute("update try_requests set excluded = '[[1,10000]]' where session_id = %s", (UUID(desk.session_id),))

    async with watched_loop() as work:
        page = await desk.owner.get(f"/v1/sessions/{desk.session_id}/tries?limit=100")

    began = time.thread_time()
    found = as_json(page)["data"]
    read = time.thread_time() - began
    parts = [f"message:{seq}" for seq in range(1, 10001)]
    assert [one["excluded"] == parts for one in found] == [True] * 100
    # To spell a million ids out takes longer than to read them.
    assert work.longest < read / 2


async def test_a_try_belongs_to_its_sessions_owner(api: Api, caller: Person) -> None:
    """Another member and another tenant get the 404 of what is not there; an admin may see, start and cancel."""
    owner, other, stranger = await caller.member(), await caller.member(), await api.admin()
    desk = await make_desk(owner)
    made = await a_try(owner, desk.session_id, message="And the screws?")
    never = await owner.get("/v1/tries/00000000-0000-7000-8000-000000000000")

    hidden = [await person.get(f"/v1/tries/{made['id']}") for person in (other, stranger)]

    assert [(reply.status_code, reply.content) for reply in hidden] == [(404, never.content)] * 2
    assert as_json(await caller.get(f"/v1/tries/{made['id']}")) == made
    by_admin = await a_try(caller, desk.session_id)
    assert as_json(await owner.get(f"/v1/tries/{by_admin['id']}")) == by_admin
    assert (await caller.post(f"/v1/tries/{made['id']}/cancel")).status_code == 200


async def test_the_audit_log_names_parts_and_no_text(desk: Desk, api: Api) -> None:
    """One `context.try` a try: ids of excluded, replaced and included parts and the model; one event at its end."""
    changes = {"exclude": ["message:2"], "replace": {"message:4": "canary-1"}, "include": ["*"]}
    made = await a_try(desk.owner, desk.session_id, **changes, message="canary-2", label="canary-3")
    answer = '[{"type":"text","text":"canary-4"}]'
    await end(api, desk.owner, made["id"], ended=replace(SUCCEEDED, answer=answer))

    audit = await desk.owner.audit()

    whole = {"session_id": desk.session_id, "model": "offline/extract"}
    named = {"excluded": ["message:2"], "replaced": ["message:4"], "included": ["*"]}
    assert audit[-2:] == [
        ("context.try", made["id"], {**whole, **named}),
        ("context.try_finished", made["id"], {**whole, "outcome": "succeeded", "error": None}),
    ]
    assert "canary" not in str(audit)


async def test_a_call_is_billed_once_with_its_try(desk: Desk, api: Api) -> None:
    """One usage record of purpose context_try without a run; what was reserved is given back for what was used."""
    made = await a_try(desk.owner, desk.session_id)
    before = as_json(await desk.owner.get("/v1/me"))["tenant"]

    await end(api, desk.owner, made["id"])

    after = as_json(await desk.owner.get("/v1/me"))["tenant"]
    (record,) = as_json(await desk.owner.get("/v1/usage/records?purpose=context_try"))["data"]
    assert record == {
        "id": record["id"],
        "created_at": record["created_at"],
        "purpose": "context_try",
        "run_id": None,
        "try_id": made["id"],
        "session_id": desk.session_id,
        "model": "offline/extract",
        **USED,
        "cost_usd": 0.25,
        "estimated": False,
    }
    tokens = sum(USED.values())
    assert (before["quota_used"], after["quota_used"], after["quota_reserved"]) == (0, tokens, 0)
    assert before["quota_reserved"] >= made["tokens_after"]
