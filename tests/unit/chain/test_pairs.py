"""Which call a result answers, held against a slow reading of the rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from hango.chain.pairs import together
from hango.messages import Message, is_blank
from tests.histories import Said, build, histories, numbered


def shared(messages: Sequence[Message]) -> set[frozenset[int]]:
    """The rule read slowly: sets of places that share one call and all its results."""
    calls: list[tuple[tuple[str, str], set[int], bool]] = []  # (kind and id, places, answered)
    order: list[int] = []  # calls by the time of their last answer
    for index, message in enumerate(messages):
        own: set[str] = set()
        for block in message.content:
            kind = "mcp" if "mcp" in block.type else "client" if block.type.startswith("tool_") else "provider"
            if block.type.endswith("tool_use") and message.role == "assistant":
                id = block.view.id or ""
                if id and id not in own:
                    calls.append(((kind, id), {index}, False))
                own.add(id)
            elif block.type.endswith("tool_result") and message.role == ("user" if kind == "client" else "assistant"):
                key = (kind, block.view.tool_use_id or "")
                known = [n for n, call in enumerate(calls) if call[0] == key]
                waiting = [n for n in known if not calls[n][2]]
                answered = [n for n in order if n in known]
                if waiting and kind != "client" and speaks(messages[min(calls[waiting[-1]][1]) + 1 : index]):
                    waiting = []  # a provider's own tool answers in the assistant's turn or never
                if not waiting and not answered:
                    continue
                at = waiting[-1] if waiting else answered[-1]
                calls[at] = (key, calls[at][1] | {index}, True)
                if waiting:
                    order.append(at)
    return {frozenset(places) for _, places, _ in calls if len(places) > 1}


def speaks(between: Sequence[Message]) -> bool:
    """True when somebody else than the assistant says more than results."""
    return any(
        block.type != "tool_result" and not (block.type == "text" and is_blank(block.view.text or ""))
        for message in between
        if message.role != "assistant"
        for block in message.content
    )


def closed(groups: set[frozenset[int]]) -> dict[int, set[int]]:
    """Each place with all that leave with it, itself included."""
    made: dict[int, set[int]] = {}
    for group in groups:
        whole = set(group).union(*(made[i] for i in group if i in made))
        for i in whole:
            made[i] = whole
    return made


def reached(links: dict[int, set[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for other in links.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


@given(histories)
def test_pairing_is_by_place_and_id(history: list[Said]) -> None:
    """A result belongs to the nearest earlier unanswered call with its id; every result of a call is its partner."""
    messages = build(history)
    links = together(numbered(messages))

    assert {i: reached(links, i) for i in range(len(messages)) if len(reached(links, i)) > 1} == closed(
        shared(messages)
    )


CALL, OTHER = Said("assistant", (("use", "call_0"),)), Said("assistant", (("use", "call_1"),))
BOTH = Said("assistant", (("use", "call_0"), ("use", "call_1")))
ANSWER, OTHERS_ANSWER = Said("user", (("result", "call_0"),)), Said("user", (("result", "call_1"),))
HI, WORDS = Said("user", (("text", ""),)), Said("assistant", (("text", ""),))


@pytest.mark.parametrize(
    ("history", "links"),
    [
        ([HI, CALL, ANSWER, WORDS], {1: {1, 2}, 2: {1, 2}}),
        # The same id in two turns: each result stays with its own call.
        ([HI, CALL, ANSWER, CALL, ANSWER], {1: {1, 2}, 2: {1, 2}, 3: {3, 4}, 4: {3, 4}}),
        # Parallel calls with results in two messages take all along.
        ([HI, BOTH, ANSWER, OTHERS_ANSWER], {1: {1, 2, 3}, 2: {1, 2, 3}, 3: {1, 2, 3}}),
        # A result that is not right after its call.
        ([HI, CALL, HI, ANSWER], {1: {1, 3}, 3: {1, 3}}),
        # A second result is a partner too.
        ([HI, CALL, ANSWER, WORDS, ANSWER], {1: {1, 2, 4}, 2: {1, 2, 4}, 4: {1, 2, 4}}),
        # A call that broke off has no partner; the next one with its id has its own result.
        ([HI, CALL, HI, CALL, ANSWER], {3: {3, 4}, 4: {3, 4}}),
        ([ANSWER, WORDS], {}),
        ([HI, Said("assistant", (("server_use", "s"), ("server_result", "s")))], {}),
        ([HI, Said("assistant", (("server_use", "s"),)), Said("user", (("result", "s"),))], {}),
        ([], {}),
    ],
)
def test_examples(history: list[Said], links: dict[int, set[int]]) -> None:
    """Calls and their results, by place."""
    made = together(numbered(build(history)))

    assert {i: reached(made, i) for i in made} == links
