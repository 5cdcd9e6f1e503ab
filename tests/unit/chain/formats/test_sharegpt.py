"""ShareGPT conversations become sessions."""

from __future__ import annotations

import json

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Reason
from hango.messages import ToolSpec
from tests.unit.chain.formats.imported import lines, read


def turn(sender: str, value: str) -> dict[str, str]:
    return {"from": sender, "value": value}


def test_turns_become_messages() -> None:
    """human and gpt are user and assistant; a system turn or member is the agent's."""
    file = read(
        {"id": "1", "system": "A.", "conversations": [turn("system", "B."), turn("human", "Hi"), turn("gpt", "Hello")]}
    )

    assert (file.format, file.agent.system) == (
        Format.SHAREGPT,
        (SystemBlock("agent", "A."), SystemBlock("system-2", "B.")),
    )
    assert [(role, text) for (role, _), text in zip(file.only.said, file.only.texts, strict=True)] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
    ]


def test_calls_and_observations_pair_in_order() -> None:
    """A function_call turn is a tool_use with its digits, an observation the result of the oldest open call."""
    two = '[{"name":"add","arguments":{"n":1.10}},{"name":"sub","arguments":"{\\"m\\":2}"}]'
    file = read(
        {
            "tools": json.dumps([{"name": "add", "description": "Adds.", "parameters": {"type": "object"}}]),
            "conversations": [
                turn("human", "Go"),
                turn("function_call", two),
                turn("observation", "a"),
                turn("observation", "b"),
                turn("function_call", "add(1)"),
                turn("observation", "c"),
            ],
        }
    )

    assert file.agent.tools == (ToolSpec("add", "Adds.", '{"type":"object"}'),)
    assert file.only.said[1:] == [
        (
            "assistant",
            (
                '[{"type":"tool_use","id":"call_1","name":"add","input":{"n":1.10}},'
                '{"type":"tool_use","id":"call_2","name":"sub","input":{"m":2}}]'
            ),
        ),
        ("user", '[{"type":"tool_result","tool_use_id":"call_1","content":"a"}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"call_2","content":"b"}]'),
        ("assistant", '[{"type":"text","text":"add(1)"}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"","content":"c"}]'),
    ]
    assert file.only.flags == [("message:6", "unpaired_tool_result")]


def test_many_conversations_are_many_sessions() -> None:
    """A list, and JSON Lines with a conversation a line; the messages variant too."""
    one = {"conversations": [turn("human", "1")]}
    two = {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "2"}]}

    for file in (read([one, two], Format.SHAREGPT), read(lines(one, two), Format.SHAREGPT)):
        assert [session.texts for session in file.sessions] == [["1"], ["S", "2"]]
    assert read([turn("human", "3"), turn("gpt", "4")]).only.texts == ["3", "4"]
    assert read(lines(turn("human", "3"), turn("gpt", "4"))).only.texts == ["3", "4"]


@pytest.mark.parametrize(
    ("given", "part", "pointer"),
    [
        ({"conversations": [turn("human", "1"), turn("ghost", "2")]}, "message:2", "/conversations/1/from"),
        ({"conversations": [{"value": "1"}]}, None, "/conversations/0"),
        ({"conversations": [], "tools": "["}, None, "/tools"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(given: object, part: str | None, pointer: str) -> None:
    """What cannot be is refused with the pointer."""
    with pytest.raises(Invalid) as raised:
        read(given, Format.SHAREGPT)

    assert [(each.reason, each.part, each.pointer) for each in raised.value.errors] == [
        (Reason.BAD_FIELD, part, pointer)
    ]
