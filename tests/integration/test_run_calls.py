"""What the model saw then: the calls of a run, the context of each made again, and what changed between two."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from hango.config import Secret, Settings
from tests.desks import HISTORY, MEMORY, Desk, as_json, exclude, make_desk, put, swap
from tests.people import Api, Person, serve
from tests.picking import in_turn
from tests.providers_server import FakeProvider, chat, message, says
from tests.runs import call_context, calls_of, run

WIRES = ["anthropic/claude-sonnet-4-5", "openai/gpt-5"]
ASKS = {"id": "call_1", "name": "load_skill", "input": {"name": "none"}}


@pytest.fixture
async def scripted(settings: Settings, fake: FakeProvider) -> AsyncIterator[Api]:
    """An API whose providers `anthropic` and `openai` are the fake."""
    told = replace(
        settings,
        anthropic_base_url=fake.url,
        anthropic_api_key=Secret("a key"),
        openai_base_url=f"{fake.url}/v1",
        openai_api_key=Secret("a key"),
    )
    async with serve(told) as api:
        yield api


def script(fake: FakeProvider, model: str) -> None:
    """One call of a built-in tool, then an answer that stays."""
    if model.startswith("anthropic"):
        asks = message({"type": "tool_use", **ASKS}, stop_reason="tool_use", cache_read_input_tokens=8)
        fake.answer = in_turn(says(asks), says(message("In drawer 4.")))
        return
    asked = {"id": ASKS["id"], "type": "function"}
    called = {"name": ASKS["name"], "arguments": '{"name": "none"}'}
    asks = chat(None, "tool_calls", tool_calls=[{**asked, "function": called}])
    fake.answer = in_turn(says(asks), says(chat("In drawer 4.")))


async def wire(desk: Desk) -> bytes:
    return bytes(msgspec.json.decode(await desk.wire(), type=dict[str, msgspec.Raw])["request"])


def sent(fake: FakeProvider) -> list[bytes]:
    """The bodies of the model calls that came, without those of a counter."""
    return [one.body for one in fake.seen if not one.path.endswith("count_tokens")]


async def desk_of(api: Api, model: str = WIRES[0], **session: Any) -> Desk:
    return await make_desk(await api.admin(), model, **session)


@pytest.mark.parametrize("model", WIRES)
async def test_calls_are_listed_with_their_bills(model: str, scripted: Api, fake: FakeProvider) -> None:
    """Each call of a run: its number, purpose, model, hash, overrides in force, what they took out, its usage."""
    script(fake, model)
    desk = await desk_of(scripted, model)
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    before = await desk.context("?count=estimate")

    ended = await run(scripted, desk.owner, desk.session_id)

    first, second = await calls_of(desk.owner, ended["id"])
    assert first == {
        "n": 1,
        "purpose": "run",
        "model": model,
        "request_sha256": before["request_sha256"],
        "exact": True,
        "overrides": 1,
        "excluded_tokens": before["estimate_before"] - before["estimate_after"],
        "usage": first["usage"],
        "stop_reason": "tool_use",
        "error": None,
        "created_at": first["created_at"],
        "ended_at": first["ended_at"],
    }
    assert (second["n"], second["stop_reason"]) == (2, "end_turn")
    assert (ended["status"], ended["turns"], ended["overrides"]) == ("succeeded", 2, 1)
    tokens = [one for one in ended["usage"] if one.endswith("_tokens")]
    assert [ended["usage"][one] for one in tokens] == [first["usage"][one] + second["usage"][one] for one in tokens]
    page = as_json(await desk.owner.get(f"/v1/runs/{ended['id']}/calls?limit=1"))
    rest = as_json(await desk.owner.get(f"/v1/runs/{ended['id']}/calls?cursor={page['next_cursor']}"))
    assert (page["data"], rest["data"], rest["next_cursor"]) == ([first], [second], None)


@pytest.mark.parametrize("model", WIRES)
async def test_a_call_is_made_again_after_everything_has_changed(model: str, scripted: Api, fake: FakeProvider) -> None:
    """A call rebuilt from its base equals the recorded call (`exact: true`) after the agent, its files, the overrides
    and the summary have since changed; its snapshot is the one of that moment."""
    script(fake, model)
    desk = await desk_of(scripted, model)
    as_json(await put(desk, desk.of_agent, swap("system:agent", "You sort.")))
    then = await desk.context("?count=estimate")
    body = await wire(desk)
    ended = await run(scripted, desk.owner, desk.session_id)
    assert sent(fake)[0] == body

    await desk.change(system_prompt="You forget.", tools=[], max_output_tokens=99)
    await desk.write(MEMORY, "The owner is never away.")
    as_json(await put(desk, desk.of_agent, []))
    as_json(await put(desk, desk.of_session, exclude("message:4")))
    summary = {"text": "Bolts are in drawer 3.", "through_seq": 4}
    as_json(await desk.owner.put(f"/v1/sessions/{desk.session_id}/summary", json=summary))

    assert (await desk.context("?count=estimate"))["request_sha256"] != then["request_sha256"]
    assert await call_context(desk.owner, ended["id"], 1) == {**then, "exact": True, "stale": then["stale"]}
    second = await call_context(desk.owner, ended["id"], 2)
    assert (second["exact"], [part["id"] for part in second["messages"]][-2:]) == (True, ["message:6", "message:7"])


async def test_a_number_that_names_no_call_is_not_there(desk: Desk, api: Api) -> None:
    """404 for a call that was not made, and for what is no number."""
    ended = await run(api, desk.owner, desk.session_id)

    for n in ("0", "2", "01", "-1", "x", "٣", "1" * 30):
        assert (await desk.owner.get(f"/v1/runs/{ended['id']}/calls/{n}/context")).status_code == 404, n


async def test_what_can_be_compared(desk: Desk, api: Api) -> None:
    """`next` without a next one, a call that was not made and another tenant's run are 404; what is none is 422."""
    ended, other = await run(api, desk.owner, desk.session_id), await make_desk(await api.admin())
    foreign = await run(api, other.owner, other.session_id)
    path = f"/v1/runs/{ended['id']}/calls/1/context?against="

    found = [
        (await desk.owner.get(path + against)).status_code
        for against in ("next", f"{ended['id']}:2", f"{foreign['id']}:1", f"{ended['id']}:x", "x:1", "x", "")
    ]

    assert found == [404, 404, 404, 404, 404, 422, 422]


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def two_runs(api: Api, desk: Desk, change: Any) -> tuple[str, str]:
    """The ids of two runs, with a change between them."""
    first = await run(api, desk.owner, desk.session_id)
    if change is not None:
        await change(desk)
    return first["id"], (await run(api, desk.owner, desk.session_id, message="And the screws?"))["id"]


async def changed_memory(desk: Desk) -> None:
    await desk.write(MEMORY, "The owner is away on Fridays.")


async def excluded_tool(desk: Desk) -> None:
    as_json(await put(desk, desk.of_agent, exclude("tool:count")))


async def replaced_message(desk: Desk) -> None:
    as_json(await put(desk, desk.of_session, swap("message:4", "Drawer 3.")))


async def changed_model(desk: Desk) -> None:
    await desk.change(model="offline/other")


async def new_summary(desk: Desk) -> None:
    path = f"/v1/sessions/{desk.session_id}/summary"
    as_json(await desk.owner.put(path, json={"text": "Bolts are in drawer 3.", "through_seq": 4}))


CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": (None, {"removed": [], "changed": [], "at": None, "reason": None}),
    "memory": (
        changed_memory,
        {
            "removed": [],
            "changed": [f"system:memory:{MEMORY}"],
            "at": f"system:memory:{MEMORY}",
            "reason": "changed",
        },
    ),
    "a tool": (excluded_tool, {"removed": ["tool:count"], "changed": [], "at": "tool:count", "reason": "removed"}),
    "a message": (
        replaced_message,
        {"removed": [], "changed": ["message:4"], "at": "message:4", "reason": "changed"},
    ),
    "the model": (changed_model, {"removed": [], "changed": [], "at": "tool:look", "reason": "model"}),
    "a summary": (
        new_summary,
        {"removed": [f"message:{seq}" for seq in range(1, 5)], "changed": [], "at": "message:1", "reason": "removed"},
    ),
}


@pytest.mark.parametrize(("change", "wanted"), CHANGES.values(), ids=CHANGES)
async def test_what_changed_and_where_the_cache_broke(
    change: Any, wanted: dict[str, Any], desk: Desk, api: Api
) -> None:
    """Parts added, removed, changed; tokens before and after; the first part that a cache could not serve, and why."""
    earlier, later = await two_runs(api, desk, change)

    found = await call_context(desk.owner, earlier, 1, f"?against={later}:1")

    added = [*(["summary"] if change is new_summary else []), "message:6", "message:7"]
    assert {
        "added": [part["id"] for part in found["added"]],
        "removed": [part["id"] for part in found["removed"]],
        "changed": [one["part"] for one in found["changed"]],
        "at": found["cache_broken_at"],
        "reason": found["cache_reason"],
    } == {**wanted, "added": added}
    for one in found["changed"]:
        assert (one["before"]["id"], one["after"]["id"]) == (one["part"], one["part"])
        assert one["before"]["preview"] != one["after"]["preview"]
    contexts = [await call_context(desk.owner, id, 1) for id in (earlier, later)]
    assert [found["tokens_before"], found["tokens_after"]] == [one["total_after"] for one in contexts]


async def test_the_next_call_goes_on_from_this_one(scripted: Api, fake: FakeProvider) -> None:
    """`next` is the next call of the conversation: the answer and its results are added, and the cache holds."""
    script(fake, WIRES[0])
    desk = await desk_of(scripted)
    ended = await run(scripted, desk.owner, desk.session_id)

    found = await call_context(desk.owner, ended["id"], 1, "?against=next")

    assert found == await call_context(desk.owner, ended["id"], 1, f"?against={ended['id']}:2")
    assert [part["id"] for part in found["added"]] == ["message:6", "message:7"]
    assert (found["removed"], found["changed"]) == ([], [])
    assert (found["cache_broken_at"], found["cache_reason"]) == (None, None)


async def test_an_excluded_message_is_not_in_the_next_call(scripted: Api, fake: FakeProvider) -> None:
    """With message:5 excluded the next run's model call does not contain it, and GET messages still returns it."""
    history = [*HISTORY[:4], {"role": "user", "content": "Forget the xylophones."}]
    desk = await desk_of(scripted, messages=history)
    as_json(await put(desk, desk.of_session, exclude("message:5")))
    script(fake, WIRES[0])

    ended = await run(scripted, desk.owner, desk.session_id, message="And the nuts?")

    bodies = sent(fake)
    assert (ended["status"], len(bodies)) == ("succeeded", 2)
    assert not any(b"xylophones" in body for body in bodies)
    assert b"xylophones" in await desk.stored()


async def test_a_change_during_a_run_acts_on_the_next_one(scripted: Api, fake: FakeProvider) -> None:
    """A PUT between two calls of a run, of an override, a file or the agent, acts on the next run only."""
    script(fake, WIRES[0])
    desk = await desk_of(scripted)
    scripted_answer, calls = fake.answer, 0

    async def answer(request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            as_json(await put(desk, desk.of_session, swap("message:4", "Changed meanwhile.")))
            as_json(await put(desk, desk.of_agent, exclude("tool:count")))
            await desk.write(MEMORY, "Changed meanwhile.")
            await desk.change(system_prompt="Changed meanwhile.")
        return await scripted_answer(request)

    fake.answer = answer
    first = await run(scripted, desk.owner, desk.session_id)
    second = await run(scripted, desk.owner, desk.session_id, message="Go on.")

    during, after = sent(fake)[:2], sent(fake)[2]
    assert [one["status"] for one in (first, second)] == ["succeeded", "succeeded"]
    assert [body.count(b"Changed meanwhile.") for body in during] == [0, 0]
    assert [body.count(b'"count"') for body in during] == [1, 1]
    assert (after.count(b"Changed meanwhile."), after.count(b'"count"')) == (3, 0)


async def test_the_cache_mark_lands_on_a_block_that_is_sent(scripted: Api, fake: FakeProvider) -> None:
    """With the last system block left out the mark is on the one before it, once in the request."""
    script(fake, WIRES[0])
    desk = await desk_of(scripted)
    blocks = (await desk.context("?count=estimate"))["system"]
    as_json(await put(desk, desk.of_agent, exclude(blocks[-1]["id"])))

    await run(scripted, desk.owner, desk.session_id)

    system = msgspec.json.decode(sent(fake)[0])["system"]
    assert len(system) == len([part for part in blocks if part["sent"]]) - 1
    assert ["cache_control" in block for block in system] == [*[False] * (len(system) - 1), True]


async def test_what_a_subagent_saw(scripted: Api, fake: FakeProvider) -> None:
    """A subagent's calls lie between those of the run; each is made again, and `next` stays in its conversation."""
    asks = {"type": "tool_use", "id": "call_1", "name": "task", "input": {"description": "Count the nuts."}}
    fake.answer = in_turn(
        says(message(asks, stop_reason="tool_use")), says(message("Ten nuts.")), says(message("There are ten."))
    )
    desk = await desk_of(scripted)
    await desk.change(builtin=["subagent", "memory"])
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    ended = await run(scripted, desk.owner, desk.session_id)
    await desk.change(system_prompt="You forget.")

    calls = await calls_of(desk.owner, ended["id"])
    contexts = [await call_context(desk.owner, ended["id"], call["n"]) for call in calls]

    assert (ended["status"], ended["turns"]) == ("succeeded", 2)
    assert [(one["purpose"], one["overrides"]) for one in calls] == [("run", 1), ("subagent", 0), ("run", 1)]
    assert [one["exact"] for one in contexts] == [True] * 3
    assert [part["preview"] for part in contexts[1]["messages"]] == ["Count the nuts."]
    assert "tool:task" not in [part["id"] for part in contexts[1]["tools"]]
    found = await call_context(desk.owner, ended["id"], 1, "?against=next")
    assert [part["id"] for part in found["added"]] == ["message:6", "message:7"]
    assert (await desk.owner.get(f"/v1/runs/{ended['id']}/calls/2/context?against=next")).status_code == 404
