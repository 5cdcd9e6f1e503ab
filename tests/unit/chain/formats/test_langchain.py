"""LangChain messages in their three written forms become a session."""

from __future__ import annotations

from typing import Any

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Reason
from tests.unit.chain.formats.imported import lines, read

METADATA = {"model_name": "claude-x"}
SAID: list[tuple[str, dict[str, Any]]] = [
    ("system", {"content": "S."}),
    ("human", {"content": "Go"}),
    (
        "ai",
        {
            "content": "",
            "tool_calls": [{"name": "ls", "args": {"n": 1}, "id": "c1", "type": "tool_call"}],
            "invalid_tool_calls": [{"name": "ls", "args": "{", "id": "c2", "error": None}],
            "response_metadata": METADATA,
        },
    ),
    ("tool", {"content": "a", "tool_call_id": "c1", "status": "success"}),
    ("tool", {"content": "b", "tool_call_id": "c2", "status": "error"}),
]


def as_dict(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "data": data}


def as_constructor(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    name = {"ai": "AIMessageChunk"}.get(kind, f"{kind.title()}Message")
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": data}


def as_flat(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind} | data


@pytest.mark.parametrize("form", [as_dict, as_constructor, as_flat])
@pytest.mark.parametrize(
    "wrap", [list, lambda said: {"messages": said}, lambda said: [said], lambda said: lines(*said)]
)
def test_the_written_forms_are_the_same_session(form: Any, wrap: Any) -> None:
    """Messages as dicts, as serialized constructors, or flat; alone, under `messages`, in a batch, or a line each."""
    file = read(wrap([form(kind, data) for kind, data in SAID]))

    assert file.format is Format.LANGCHAIN
    assert (file.agent.model, file.agent.system) == ("anthropic/claude-x", (SystemBlock("agent", "S."),))
    assert file.only.said == [
        ("user", '[{"type":"text","text":"Go"}]'),
        (
            "assistant",
            (
                '[{"type":"tool_use","id":"c1","name":"ls","input":{"n":1}},'
                '{"type":"tool_use","id":"c2","name":"ls","input":"{"}]'
            ),
        ),
        ("user", '[{"type":"tool_result","tool_use_id":"c1","content":"a"}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"c2","content":"b","is_error":true}]'),
    ]
    assert file.only.flags == [("message:2", "bad_tool_arguments")]
    assert [message.model for message in file.only.messages] == [None, "anthropic/claude-x", None, None]


def test_calls_that_stand_twice_are_there_once() -> None:
    """Anthropic's models put a call into the content and into tool_calls; OpenAI's into additional_kwargs."""
    said = [
        as_dict(
            "ai",
            {
                "content": [
                    {"type": "text", "text": "Now."},
                    {"type": "tool_use", "id": "c1", "name": "ls", "input": {"n": 1}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                ],
                "tool_calls": [{"name": "ls", "args": {"n": 1}, "id": "c1"}],
            },
        ),
        as_dict(
            "ai",
            {
                "content": "",
                "additional_kwargs": {
                    "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
                },
                "response_metadata": {"model_name": "gpt-5"},
            },
        ),
    ]

    file = read(said)

    assert [content for _, content in file.only.said] == [
        (
            '[{"type":"text","text":"Now."},{"type":"tool_use","id":"c1","name":"ls","input":{"n":1}},'
            '{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]'
        ),
        '[{"type":"tool_use","id":"c2","name":"ls","input":{}}]',
    ]
    assert file.agent.model == "openai/gpt-5"


def test_a_type_nobody_knows_is_refused() -> None:
    """What cannot be is refused with the pointer."""
    with pytest.raises(Invalid) as raised:
        read([as_dict("human", {"content": "1"}), as_dict("remove", {"content": ""})])

    assert [(each.reason, each.pointer) for each in raised.value.errors] == [(Reason.BAD_FIELD, "/1")]
