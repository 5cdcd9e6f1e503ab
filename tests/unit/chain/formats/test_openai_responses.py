"""OpenAI Responses requests become an agent and a session."""

from __future__ import annotations

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Format, ImportedAgent
from hango.errors import Invalid, Reason
from hango.messages import ToolSpec
from tests.unit.chain.formats.imported import lines, read


def test_a_request_is_an_agent_and_a_session() -> None:
    """Instructions and developer items at the head are the agent's; a string of input is the user's message."""
    file = read(
        {
            "model": "gpt-5",
            "instructions": "A.",
            "input": "Hi.",
            "tools": [
                {"type": "function", "name": "ls", "parameters": {"type": "object"}, "strict": True},
                {"type": "web_search"},
            ],
            "tool_choice": "required",
            "reasoning": {"effort": "low"},
            "max_output_tokens": 99,
            "store": False,
        }
    )

    assert file.format is Format.OPENAI_RESPONSES
    assert file.agent == ImportedAgent(
        model="openai/gpt-5",
        system=(SystemBlock("agent", "A."),),
        tools=(ToolSpec("ls", "", '{"type":"object"}'), ToolSpec("web_search", definition='{"type":"web_search"}')),
        params={"reasoning_effort": "low", "tool_choice": {"type": "any"}},
        max_output_tokens=99,
    )
    assert file.only.said == [("user", '[{"type":"text","text":"Hi."}]')]


def test_items_of_one_answer_are_one_message() -> None:
    """Reasoning, text and calls of an answer are one assistant message; each output is a user message."""
    reasoning = '{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"x"}'
    body = (
        '{"input":[{"role":"developer","content":"S."},'
        '{"role":"user","content":[{"type":"input_text","text":"Go"},'
        '{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]},'
        f"{reasoning},"
        '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now.","annotations":[]}]},'
        '{"type":"function_call","call_id":"c1","name":"add","arguments":"{\\"n\\":1.10}"},'
        '{"type":"function_call","call_id":"c2","name":"add","arguments":"1"},'
        '{"type":"function_call_output","call_id":"c1","output":"2"},'
        '{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"no"}]},'
        '{"type":"message","role":"assistant","content":"One."},{"role":"assistant","content":"Two."}]}'
    )

    file = read(body)

    assert file.agent.system == (SystemBlock("agent", "S."),)
    assert file.only.said == [
        (
            "user",
            (
                '[{"type":"text","text":"Go"},'
                '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]'
            ),
        ),
        (
            "assistant",
            (
                f'[{reasoning},{{"type":"text","text":"Now."}},'
                '{"type":"tool_use","id":"c1","name":"add","input":{"n":1.10}},'
                '{"type":"tool_use","id":"c2","name":"add","input":"1"}]'
            ),
        ),
        ("user", '[{"type":"tool_result","tool_use_id":"c1","content":"2"}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"no"}]}]'),
        ("assistant", '[{"type":"text","text":"One."}]'),
        ("assistant", '[{"type":"text","text":"Two."}]'),
    ]
    assert file.only.flags == [("message:2", "bad_tool_arguments"), ("message:2", "unknown_block")]


def test_items_nobody_knows_stay_byte_for_byte() -> None:
    """Items that are neither message nor call are kept as they came: the model's own, and outputs from the client."""
    search = '{"type":"web_search_call","id":"w","status":"completed","action":{"n":1.0}}'
    shot = '{"type":"computer_call_output","call_id":"k","output":{"type":"computer_screenshot"}}'

    file = read(f"[{search}, {shot}]", Format.OPENAI_RESPONSES)

    assert file.only.said == [("assistant", f"[{search}]"), ("user", f"[{shot}]")]


def test_a_response_follows_its_request() -> None:
    """The output of a response that stands with its input is the last answer."""
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]

    assert read({"input": "Hi", "output": output}).only.texts == ["Hi", "Hello"]
    assert read(lines({"role": "user", "content": "Hi"}, *output), Format.OPENAI_RESPONSES).only.texts == [
        "Hi",
        "Hello",
    ]


@pytest.mark.parametrize(
    ("body", "reason", "part", "pointer"),
    [
        ({"model": "gpt-5"}, Reason.MISSING_FIELD, None, "/input"),
        ({"input": [{"role": "ghost", "content": ""}]}, Reason.BAD_FIELD, "message:1", "/input/0/role"),
        ({"input": [{"role": "user", "content": 1}]}, Reason.BAD_FIELD, "message:1", "/input/0/content"),
        ({"input": 7}, Reason.BAD_FIELD, None, "/input"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(body: object, reason: Reason, part: str | None, pointer: str) -> None:
    """What cannot be is refused with the part or the pointer."""
    with pytest.raises(Invalid) as raised:
        read(body, Format.OPENAI_RESPONSES)

    assert [(each.reason, each.part, each.pointer) for each in raised.value.errors] == [(reason, part, pointer)]
