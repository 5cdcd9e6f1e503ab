"""The compaction summary of a session: put in force, taken back; a run makes one when the history is long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from hango.config import Secret, Settings
from tests.asked import events
from tests.desks import Desk, as_json, exclude, make_desk, put
from tests.people import Api, Person, is_problem, serve
from tests.picking import in_turn
from tests.providers_server import FakeProvider, chat, message, says
from tests.runs import call_context, calls_of, run, start

MODEL = "anthropic/claude-sonnet-4-5"
TEXT = "The owner asked for the bolts; forty are in drawer 3."


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def save(desk: Desk, through: int, text: str = TEXT) -> Any:
    body = {"text": text, "through_seq": through}
    return await desk.owner.put(f"/v1/sessions/{desk.session_id}/summary", json=body)


async def undo(desk: Desk) -> int:
    return (await desk.owner.delete(f"/v1/sessions/{desk.session_id}/summary")).status_code


async def in_force(desk: Desk) -> dict[str, Any] | None:
    found: dict[str, Any] | None = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}"))["summary"]
    return found


async def test_a_summary_stands_for_the_messages_that_it_covers(desk: Desk) -> None:
    """PUT puts it in force: it is sent in their place, they stay in the session; the audit knows no text."""
    stored = await desk.stored()

    reply = await save(desk, 4)

    assert as_json(reply) == {"text": TEXT, "through_seq": 4} == await in_force(desk)
    assert (await desk.sent())[-2:] == ["summary", "message:5"]
    assert TEXT.encode() in await desk.wire()
    assert await desk.stored() == stored
    assert await events(desk.owner, "summary.save") == [(desk.session_id, {"through_seq": 4, "chars": len(TEXT)})]


async def test_the_last_one_is_taken_back(desk: Desk) -> None:
    """DELETE brings the one before it back, then none, then there is nothing to take back: 404."""
    as_json(await save(desk, 1, "They asked."))
    as_json(await save(desk, 4))

    first = (await undo(desk), await in_force(desk))
    second = (await undo(desk), await in_force(desk))
    third = await undo(desk)

    assert first == (204, {"text": "They asked.", "through_seq": 1})
    assert second == (204, None)
    assert third == 404
    assert (await desk.sent())[-5:] == [f"message:{seq}" for seq in range(1, 6)]
    assert await events(desk.owner, "summary.undo") == [(desk.session_id, {})] * 2


async def test_a_summary_is_replaced_by_one_of_the_same_end(desk: Desk) -> None:
    """Another text for the same messages is put in force, and can be taken back."""
    as_json(await save(desk, 4, "They asked."))

    assert as_json(await save(desk, 4)) == await in_force(desk)
    assert (await undo(desk), await in_force(desk)) == (204, {"text": "They asked.", "through_seq": 4})


@pytest.mark.parametrize(
    ("through", "text", "fault"),
    [
        (2, TEXT, ("bad_field", "/through_seq")),
        (6, TEXT, ("bad_field", "/through_seq")),
        (0, TEXT, ("bad_field", "/through_seq")),
        (2**31, TEXT, ("bad_field", "/through_seq")),
        (4, " \n", ("empty_text", "/text")),
        (4, "a\x00b", ("invalid_text", "/text")),
    ],
)
async def test_what_is_no_summary_is_refused(through: int, text: str, fault: tuple[str, str], desk: Desk) -> None:
    """422 for a cut inside a pair, an end that is not there, a blank text; nothing changes."""
    reply = await save(desk, through, text)

    (error,) = reply.json()["errors"]
    assert (reply.status_code, is_problem(reply), (error["reason"], error["pointer"])) == (422, True, fault)
    assert await in_force(desk) is None


async def test_a_summary_never_covers_less_than_the_one_in_force(desk: Desk) -> None:
    """422: what is under a summary is not read again to be covered by another."""
    as_json(await save(desk, 4))

    assert (await save(desk, 1)).status_code == 422
    assert await in_force(desk) == {"text": TEXT, "through_seq": 4}


@pytest.fixture
async def scripted(settings: Settings, fake: FakeProvider) -> AsyncIterator[Api]:
    """An API whose provider `anthropic` is the fake."""
    told = replace(settings, anthropic_base_url=fake.url, anthropic_api_key=Secret("a key"))
    async with serve(told) as api:
        yield api


async def long_desk(api: Api, trigger: int = 1) -> Desk:
    """One whose next call would summarize first, and keeps two messages."""
    desk = await make_desk(await api.admin(), MODEL)
    await desk.change(compaction={"trigger_tokens": trigger, "keep_messages": 1})
    return desk


async def test_a_run_summarizes_first_when_the_history_is_long(scripted: Api, fake: FakeProvider) -> None:
    """The summarizer is a call of purpose `summary`: its text is in force, and the next call sends it."""
    fake.answer = in_turn(says(message(TEXT)), says(message("In drawer 4.")))
    desk = await long_desk(scripted)
    assert (await desk.context("?count=estimate"))["would_compact"]

    ended = await run(scripted, desk.owner, desk.session_id)

    found = await calls_of(desk.owner, ended["id"])
    assert (ended["status"], ended["turns"]) == ("succeeded", 1)
    assert [(call["n"], call["purpose"], call["exact"]) for call in found] == [(1, "summary", True), (2, "run", True)]
    assert await in_force(desk) == {"text": TEXT, "through_seq": 4}
    bodies = [one for one in fake.seen if one.path.endswith("/messages")]
    assert (b"Forty bolts." in bodies[0].body, "tools" in bodies[0].json) == (True, False)
    assert (b"Forty bolts." in bodies[1].body, TEXT.encode() in bodies[1].body) == (False, True)
    asked = await call_context(desk.owner, ended["id"], 1)
    assert asked["exact"]
    assert [part["id"] for part in asked["system"]] == ["system:summarizer"]
    records = as_json(await desk.owner.get("/v1/usage/records"))["data"]
    assert sorted(one["purpose"] for one in records) == ["run", "summary"]


async def test_what_is_left_out_is_not_summarized(scripted: Api, fake: FakeProvider) -> None:
    """The summarizer gets the filtered history: neither an excluded call nor its result is in it."""
    fake.answer = in_turn(says(message(TEXT)), says(message("In drawer 4.")))
    desk = await long_desk(scripted)
    as_json(await put(desk, desk.of_session, exclude("message:2")))

    await run(scripted, desk.owner, desk.session_id)

    asked = next(one for one in fake.seen if one.path.endswith("/messages"))
    assert (b"Where are the bolts?" in asked.body, b"Forty bolts.\\n" in asked.body) == (True, False)


@pytest.mark.parametrize("answer", [says({"error": {}}, status=500), says(message(" "))], ids=["a fault", "a blank"])
async def test_a_summary_that_fails_changes_nothing(answer: Any, scripted: Api, fake: FakeProvider) -> None:
    """The run goes on with its whole history; no summary is in force."""
    fake.answer = in_turn(answer, says(message("In drawer 4.")))
    desk = await long_desk(scripted)

    ended = await run(scripted, desk.owner, desk.session_id)

    assert (ended["status"], ended["turns"], await in_force(desk)) == ("succeeded", 1, None)
    assert [call["purpose"] for call in await calls_of(desk.owner, ended["id"])] == ["summary", "run"]
    assert b"Where are the bolts?" in fake.seen[-1].body


LONG = [
    {"role": "assistant" if n % 2 else "user", "content": f"Bolt {n}: {'one more word ' * 400}"} for n in range(12)
] + [{"role": "user", "content": "And the nuts?"}]


async def test_a_history_that_no_model_holds_is_summarized_and_answered(settings: Settings, fake: FakeProvider) -> None:
    """Longer than one and a half windows: the run is accepted, the summarizer gets what its model holds, and the call
    after it is answered. A POST without the summary's way out is refused."""
    fake.answer = in_turn(says(chat(TEXT)), says(chat("In drawer 4.")))
    told = replace(settings, openai_base_url=f"{fake.url}/v1", openai_api_key=Secret("a key"))
    async with serve(told) as api:
        desk = await make_desk(await api.admin(), "openai/smollm2-135m-instruct", messages=LONG)
        shown = await desk.context("?count=estimate")
        assert (shown["would_compact"], shown["total_after"] > 1.5 * shown["window"]) == (True, True)
        await desk.change(compaction={"keep_messages": 1}, max_output_tokens=512)
        ended = await run(api, desk.owner, desk.session_id)
        found = await calls_of(desk.owner, ended["id"])
        asked = await call_context(desk.owner, ended["id"], 1)
        kept = await in_force(desk)
        await desk.change(compaction={"keep_messages": 100})
        await undo(desk)
        refused = await start(desk.owner, desk.session_id, message="And the screws?")

    assert (ended["status"], ended["turns"]) == ("succeeded", 1)
    assert [(call["purpose"], call["exact"]) for call in found] == [("summary", True), ("run", True)]
    assert kept == {"text": TEXT, "through_seq": 12}
    assert asked["total_after"] < asked["window"]
    assert (refused.status_code, refused.json()["errors"][0]["reason"]) == (422, "context_too_long")


async def test_an_attempt_that_did_not_help_is_not_made_again(scripted: Api, fake: FakeProvider) -> None:
    """What is too big by itself causes one summary in a run, however many turns it has."""
    looks = {"type": "tool_use", "id": "c1", "name": "load_skill", "input": {"name": "none"}}
    calls_a_tool = says({**message("Looking."), "content": [looks], "stop_reason": "tool_use"})
    fake.answer = in_turn(says(message(TEXT)), calls_a_tool, calls_a_tool, says(message("In drawer 4.")))
    desk = await long_desk(scripted)

    ended = await run(scripted, desk.owner, desk.session_id)

    assert (ended["status"], ended["turns"]) == ("succeeded", 3)
    assert [call["purpose"] for call in await calls_of(desk.owner, ended["id"])] == ["summary", "run", "run", "run"]


async def test_a_run_that_grows_again_is_summarized_again(scripted: Api, fake: FakeProvider) -> None:
    """After a summary that helped, what the tools bring may call for another one: one summary is in force."""
    looks = {"type": "tool_use", "id": "c1", "name": "load_skill", "input": {"name": "bolt " * 3000}}
    calls_a_tool = says({**message("Looking."), "content": [looks], "stop_reason": "tool_use"})
    fake.answer = in_turn(
        says(message(TEXT)), calls_a_tool, says(message("Nothing was found.")), says(message("In drawer 4."))
    )
    desk = await long_desk(scripted, 2_000)
    await desk.append({"role": "assistant", "content": "many words " * 1_500}, {"role": "user", "content": "And?"})

    ended = await run(scripted, desk.owner, desk.session_id)

    assert (ended["status"], ended["turns"]) == ("succeeded", 2)
    assert [call["purpose"] for call in await calls_of(desk.owner, ended["id"])] == ["summary", "run", "summary", "run"]
    assert (await in_force(desk) or {})["text"] == "Nothing was found."
