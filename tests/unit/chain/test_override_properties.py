"""What holds of every override set, whatever the history: closure, order, clearing, sums, and that nothing changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hango.chain import saved_overrides
from hango.chain.context import Drafted, estimated_snapshot
from hango.chain.snapshot import Part, Snapshot
from hango.chain.state import Wanted
from hango.domain import AgentID, Override, OverrideAction, SessionID
from hango.errors import Invalid
from hango.messages import Message, content_json
from tests.histories import numbered
from tests.wire.making import worlds
from tests.wire.sets import good_words, parts_of_agent, parts_of_session
from tests.wire.worlds import ANTHROPIC_MODELS, OPENAI_MODELS, Call, World, next_call

made = settings(derandomize=False, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def calls_to_make(draw: st.DrawFn, *, replacing: bool = True) -> tuple[World, list[Override]]:
    """A world and a good set for it."""
    world = draw(worlds()).of(draw(st.sampled_from(ANTHROPIC_MODELS + OPENAI_MODELS)))
    words = draw(good_words(parts_of_agent(world) + parts_of_session(world), replacing=replacing))
    return world, words.read()


async def drafted(world: World, overrides: Sequence[Override]) -> Call:
    """The call with these overrides; a set that is refused says nothing here."""
    try:
        return await next_call(world, wanted=Wanted(overrides))
    except Invalid:
        assume(False)
        raise


def snapshot_of(call: Call) -> Snapshot:
    nobody = UUID(int=1)
    return estimated_snapshot(Drafted(SessionID(nobody), AgentID(nobody), call.state, call.draft, ""))


def parts_of(snapshot: Snapshot) -> list[Part]:
    return [*snapshot.system, *snapshot.tools, *snapshot.messages]


def added(call: Call) -> set[str]:
    return {one.part for one in saved_overrides.added(call.draft)}


# --- closure ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """A call: who answers it and its id, where it stands, and whether it has a result."""

    name: tuple[str, str]
    at: int
    answered: bool = False


def answers(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Which messages share a call and a result of it, read naively: a result answers the nearest earlier call of its
    kind and id that has none, else it is a further one of the nearest such call."""
    calls: list[Asked] = []
    for at, message in enumerate(messages):
        for block in message.content:
            kind = kind_of(block.type)
            if message.role != ("user" if block.type == "tool_result" else "assistant"):
                continue
            if block.type.endswith("tool_use") and block.view.id:
                name = kind, block.view.id
                if not any(call.at == at and call.name[1] == block.view.id for call in calls):
                    calls.append(Asked(name, at))
            elif block.type.endswith("tool_result"):
                mine = [call for call in calls if call.name == (kind, block.view.tool_use_id)]
                waiting = [call for call in mine if not call.answered]
                if kind != "client" and waiting and ends_turn(messages[waiting[-1].at + 1 : at]):
                    waiting = []
                for call in (waiting or [call for call in mine if call.answered])[-1:]:
                    call.answered = True
                    yield call.at, at


def kind_of(type: str) -> str:
    if type in ("tool_use", "tool_result"):
        return "client"
    return "mcp" if type.startswith("mcp_") else "server"


def ends_turn(between: Sequence[Message]) -> bool:
    """True when anything but results of the client is said by somebody else than the assistant."""
    others = [message for message in between if message.role != "assistant"]
    return any(block.type != "tool_result" and not block.blank for one in numbered(others) for block in one.blocks)


@made
@given(calls_to_make(replacing=False))
async def test_closure_is_minimal_and_idempotent(given: tuple[World, list[Override]]) -> None:
    """What leaves with a set is all that shares a call with it, step by step, and nothing else; naming it changes
    nothing."""
    world, overrides = given
    call = await drafted(world, overrides)
    pairs = [(a + world.under + 1, b + world.under + 1) for a, b in answers(world.messages[world.under :])]
    named = {int(one.part[8:]) for one in overrides if one.part.startswith("message:")}
    gone = {seq for seq in named if seq > world.under}
    while more := {one for pair in pairs if gone & set(pair) for one in pair} - gone:
        gone |= more

    assert added(call) == {f"message:{seq}" for seq in gone - named}
    whole = [*overrides, *(Override(part, OverrideAction.EXCLUDE) for part in sorted(added(call)))]  # type: ignore[arg-type]  # parts
    again = await drafted(world, whole)
    assert (again.body, added(again)) == (call.body, set())


# --- order, clearing -------------------------------------------------------------------------------------------------


@made
@given(calls_to_make(), st.data())
async def test_order_of_a_set_does_not_matter(given: tuple[World, list[Override]], data: st.DataObject) -> None:
    """The same set in another order gives the same bytes and the same partners."""
    world, overrides = given
    call = await drafted(world, overrides)
    other = await drafted(world, data.draw(st.permutations(overrides)))

    assert (other.body, added(other)) == (call.body, added(call))
    assert snapshot_of(other).groups == snapshot_of(call).groups


@made
@given(calls_to_make())
async def test_clearing_gives_the_first_bytes_back(given: tuple[World, list[Override]]) -> None:
    """Nothing that is stored changes: without the overrides the request is to the byte what it was before them."""
    world, overrides = given
    first, digests = await drafted(world, []), numbered(world.messages)
    bodies = [content_json(message.content) for message in world.messages]
    call = await drafted(world, overrides)
    cleared = await drafted(world, [])

    assert (cleared.body, snapshot_of(cleared)) == (first.body, snapshot_of(first))
    assert [content_json(message.content) for message in world.messages] == bodies
    assert numbered(world.messages) == digests
    assert tuple(call.draft.stored_messages()) == tuple(first.draft.messages)


# --- sums ------------------------------------------------------------------------------------------------------------


@made
@given(calls_to_make())
async def test_a_snapshot_adds_up(given: tuple[World, list[Override]]) -> None:
    """Totals are the sums of the parts, with the originals before and without the excluded ones after; every part that
    is included and not sent stands in `problems`."""
    world, overrides = given
    snapshot = snapshot_of(await drafted(world, overrides))
    groups = [
        (
            sum(part.tokens if not isinstance(part.tokens_original, int) else part.tokens_original for part in group),
            sum(part.tokens for part in group if part.included),
        )
        for group in (snapshot.system, snapshot.tools, snapshot.messages)
    ]
    named = {problem.part for problem in snapshot.problems}

    assert [
        (one.before, one.after) for one in (snapshot.groups.system, snapshot.groups.tools, snapshot.groups.messages)
    ] == groups
    assert (snapshot.total_before, snapshot.total_after) == (sum(b for b, _ in groups), sum(a for _, a in groups))
    assert {part.id for part in parts_of(snapshot) if part.included and not part.sent} <= named


@made
@given(calls_to_make(replacing=False))
async def test_excluding_saves_the_tokens_of_the_excluded(given: tuple[World, list[Override]]) -> None:
    """Before minus after is the sum of the excluded parts' tokens, and before is what the request was without the set
    as long as the set changes nothing of what is sent of the other parts."""
    world, overrides = given
    plain, snapshot = snapshot_of(await drafted(world, [])), snapshot_of(await drafted(world, overrides))
    gone = sum(part.tokens for part in parts_of(snapshot) if not part.included)

    assert snapshot.total_before - snapshot.total_after == gone
    if [part.tokens for part in parts_of(plain)] == [part.tokens for part in parts_of(snapshot)]:
        assert snapshot.total_before == plain.total_after


# --- replacements ----------------------------------------------------------------------------------------------------


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


@made
@given(calls_to_make())
async def test_a_replacement_arrives_as_it_was_written(given: tuple[World, list[Override]]) -> None:
    """The text of a replacement is in the request to the letter: no template, no format, no trimming touches it."""
    world, overrides = given
    call = await drafted(world, overrides)
    snapshot = snapshot_of(call)
    sent = {part.id for part in parts_of(snapshot) if part.sent} - {problem.part for problem in snapshot.problems}
    found = list(strings(json.loads(call.body)))
    # The end of a prefill is trimmed: a provider refuses white space there.
    found += [text + "  " for text in found[-1:]]
    lost = [
        one.part
        for one in overrides
        if one.replacement is not None and one.part in sent and not any(one.replacement in text for text in found)
    ]

    assert lost == []
