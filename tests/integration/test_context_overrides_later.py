"""What becomes of saved overrides afterwards: drift, parts that go and come back, summaries, previews on top."""

from __future__ import annotations

from typing import Any

import pytest

from tests.desks import COUNT, HISTORY, LOOK, MEMORY, Desk, as_json, exclude, make_desk, named, put, swap
from tests.people import Person

SKILL = "---\nname: {0}\ndescription: {1}\n---\nDo it.\n"
SUMMARY = {"text": "The user asked for the bolts: forty, in drawer 3.", "through_seq": 4}


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def drifted(desk: Desk) -> list[str]:
    shot = await desk.context()
    return [part["id"] for group in ("system", "tools", "messages") for part in shot[group] if part["drifted"]]


async def test_drift_is_told(desk: Desk) -> None:
    """When the text that an override was made against changes, inspect says `drifted`.

    An override that is put again unchanged stays so: saving another one must not hide the change.
    """
    await desk.write("/skills/count/SKILL.md", SKILL.format("count", "Counts things."))
    memory = f"system:memory:{MEMORY}"
    wanted = [*swap(memory, "No memory."), *swap("system:skills", "No skills."), *exclude("system:agent", "tool:look")]
    as_json(await put(desk, desk.of_agent, wanted))
    assert await drifted(desk) == []

    await desk.write(MEMORY, "The owner is away on Tuesdays.")
    assert await drifted(desk) == [memory]
    await desk.write("/skills/order/SKILL.md", SKILL.format("order", "Orders things."))
    assert await drifted(desk) == [memory, "system:skills"]
    tools = [{**LOOK, "description": "Looks everywhere."}, COUNT]
    await desk.change(system_prompt="You sell the stock.", tools=tools)
    assert sorted(await drifted(desk)) == sorted(["system:agent", memory, "system:skills", "tool:look"])

    as_json(await put(desk, desk.of_agent, [*wanted, *exclude("tool:count")]))
    assert sorted(await drifted(desk)) == sorted(["system:agent", memory, "system:skills", "tool:look"])
    as_json(await put(desk, desk.of_agent, []))
    as_json(await put(desk, desk.of_agent, wanted))
    assert await drifted(desk) == []
    await desk.write(MEMORY, "The owner is away on Mondays.")
    assert await drifted(desk) == [memory]


async def test_a_part_that_goes_is_stale_and_counts_again_when_it_is_back(desk: Desk) -> None:
    """An override for a part that no longer exists is kept, reported as stale, and does nothing until it comes back."""
    as_json(await put(desk, desk.of_agent, exclude("tool:look", f"system:memory:{MEMORY}")))
    await desk.change(tools=[COUNT])
    assert (await desk.owner.delete(f"/v1/agents/{desk.agent_id}/files{MEMORY}")).status_code == 204

    gone = {"action": "exclude", "scope": "agent", "reason": "not_in_context", "stale": True}
    shown = as_json(await desk.owner.get(desk.of_agent))
    assert (await desk.context())["stale"] == [
        {"part": "tool:look", **gone},
        {"part": f"system:memory:{MEMORY}", **gone},
    ]
    assert [(one["part"], one["stale"]) for one in shown["overrides"]] == [(part, True) for part in shown["stale"]]
    assert shown["stale"] == ["tool:look", f"system:memory:{MEMORY}"]

    await desk.change(tools=[COUNT, LOOK])
    assert [one["part"] for one in (await desk.context())["stale"]] == [f"system:memory:{MEMORY}"]
    assert "tool:look" not in await desk.sent()
    assert "tool:count" in await desk.sent()


async def test_the_cache_mark_stands_on_what_is_sent(caller: Person) -> None:
    """The cache breakpoint lands on a block that is sent when a system part before it is excluded."""
    desk = await make_desk(caller, model="anthropic/claude-sonnet-4-5")
    first, last = "system:agent", f"system:memory:{MEMORY}"
    for gone, marked in ((first, last), (last, first)):
        as_json(await put(desk, desk.of_agent, exclude(gone)))

        parts = {part["id"]: (part["sent"], part["cached_prefix"]) for part in (await desk.context())["system"]}
        body = as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}/context?format=provider"))["request"]

        assert (parts[gone], parts[marked]) == ((False, False), (True, True))
        assert "cache_control" in body["system"][-1]


async def test_messages_under_a_summary(caller: Person) -> None:
    """An override on a message under the summary is stale: in_summary; excluding the summary brings none back."""
    desk = await make_desk(caller, summary=SUMMARY)

    made = as_json(await put(desk, desk.of_session, exclude("message:2", "summary")))

    assert (made["added"], made["stale"]) == ([], ["message:2"])
    shot = await desk.context()
    assert [(one["part"], one["reason"]) for one in shot["stale"]] == [("message:2", "in_summary")]
    assert [(part["id"], part["sent"]) for part in shot["messages"]] == [("summary", False), ("message:5", True)]


async def test_the_summary_is_replaced(caller: Person) -> None:
    """A replaced summary is sent with its new text, and the stored one stays."""
    desk = await make_desk(caller, summary=SUMMARY)

    as_json(await put(desk, desk.of_session, swap("summary", "Forty bolts.")))

    full = await desk.context("?full=summary")
    assert (full["content"], full["content_original"], full["override"]) == ("Forty bolts.", SUMMARY["text"], "replace")
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}"))["summary"] == SUMMARY


async def test_without_the_summary_the_history_must_start_with_the_user(caller: Person) -> None:
    """Excluding a summary that stands before an assistant's message is refused, naming the summary."""
    desk = await make_desk(caller, summary={"text": "The user asked for the bolts.", "through_seq": 3})

    refused = await put(desk, desk.of_session, exclude("summary"))

    assert named(refused) == (422, "starts_with_assistant", [("starts_with_assistant", "summary")])


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({}, ["message:1", "message:4", "message:5"]),
        ({"exclude": ["message:4"]}, ["message:1", "message:5"]),
        ({"include": ["message:2"]}, ["message:1", "message:2", "message:3", "message:4", "message:5"]),
        ({"include": ["*"]}, ["message:1", "message:2", "message:3", "message:4", "message:5"]),
        ({"include": ["message:4"]}, ["message:1", "message:4", "message:5"]),
        ({"replace": {"message:2": "Looking."}}, ["message:1", "message:2", "message:3", "message:4", "message:5"]),
        ({"until": 4, "message": "Sure?"}, ["message:1", "message:4", "extra"]),
        ({"until": 1}, ["message:1"]),
    ],
)
async def test_a_preview_comes_on_top_of_the_saved_set(change: dict[str, Any], messages: list[str], desk: Desk) -> None:
    """Saved overrides apply first, then the body's; `include` lifts a saved one, `*` all. Nothing is stored."""
    saved = as_json(await put(desk, desk.of_session, exclude("message:2")))

    sent = [id for id in await desk.sent(**change) if not id.startswith(("system", "tool"))]

    assert sent == messages
    assert as_json(await desk.owner.get(desk.of_session)) == saved


async def test_everything_is_lifted_with_both_sets(desk: Desk) -> None:
    """`include: ["*"]` lifts the agent's overrides too: the request is that without any override."""
    first = await desk.wire()
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    as_json(await put(desk, desk.of_agent, exclude("tool:look", "system:agent")))

    path = f"/v1/sessions/{desk.session_id}/context/preview?format=provider"
    lifted = await desk.owner.post(path, json={"include": ["*"]})

    assert lifted.content == first
    assert await desk.wire() != first


async def test_a_preview_equals_the_set_when_it_is_saved(desk: Desk) -> None:
    """What a preview shows is what an inspect shows after the PUT, to the hash of the request."""
    shown = await desk.preview(exclude=["message:2", "tool:look"], replace={"message:4": "Forty."})

    as_json(await put(desk, desk.of_session, [*exclude("message:2"), *swap("message:4", "Forty.")]))
    as_json(await put(desk, desk.of_agent, exclude("tool:look")))

    assert await desk.context("?count=estimate") == shown


async def test_a_set_that_turned_bad_is_left_out_of_the_call(desk: Desk) -> None:
    """A stored set that would leave no valid request is not applied, and the snapshot says so."""
    as_json(await put(desk, desk.of_session, exclude("message:1", "message:2", "message:4")))

    shot = await desk.preview(until=4)

    assert [part["id"] for part in shot["messages"] if part["sent"]] == [f"message:{n}" for n in (1, 2, 3, 4)]
    assert "no_user_message" in [problem["reason"] for problem in shot["problems"]]


async def test_the_history_is_never_changed(desk: Desk) -> None:
    """Overrides never change persisted history, whatever was put, previewed and cleared."""
    before = await desk.stored()

    for overrides in (exclude("message:2"), swap("message:3", "Nothing."), swap("message:4", "Forty."), []):
        as_json(await put(desk, desk.of_session, overrides))
        await desk.context()

    assert await desk.stored() == before
    assert as_json(await desk.owner.get(f"/v1/sessions/{desk.session_id}"))["messages"] == len(HISTORY)
