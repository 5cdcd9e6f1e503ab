"""OpenAI Chat Completions requests become an agent and a session."""

from __future__ import annotations

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Flag, Format, ImportedAgent
from hango.errors import Invalid, Reason
from hango.messages import ToolSpec
from tests.unit.chain.formats.imported import read


def test_a_request_is_an_agent_and_a_session() -> None:
    """System messages at the head are the agent's; parameters get hango's names and words."""
    file = read(
        {
            "model": "gpt-5",
            "messages": [
                {"role": "system", "content": "A."},
                {"role": "developer", "content": [{"type": "text", "text": "B."}, {"type": "text", "text": "C."}]},
                {"role": "user", "content": "Hi."},
                {"role": "system", "content": "Later."},
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}],
            "tool_choice": {"type": "function", "function": {"name": "ls"}},
            "stop": "END",
            "max_completion_tokens": 77,
            "parallel_tool_calls": False,
            "reasoning_effort": "low",
            "logit_bias": {"1": 2},
            "stream": True,
        }
    )

    assert file.format is Format.OPENAI_CHAT
    assert file.agent == ImportedAgent(
        model="openai/gpt-5",
        system=(SystemBlock("agent", "A."), SystemBlock("system-2", "B."), SystemBlock("system-3", "C.")),
        tools=(ToolSpec("ls", "", '{"type":"object"}'),),
        params={
            "parallel_tool_calls": False,
            "reasoning_effort": "low",
            "stop": ["END"],
            "tool_choice": {"type": "tool", "name": "ls"},
        },
        max_output_tokens=77,
        flags=(Flag("param:logit_bias", Reason.PARAM_NOT_TAKEN),),
    )
    assert file.only.said == [
        ("user", '[{"type":"text","text":"Hi."}]'),
        ("system", '[{"type":"text","text":"Later."}]'),
    ]
    assert file.only.flags == [("message:2", "system_in_history")]


def test_calls_and_results_become_blocks_one_message_each() -> None:
    """Arguments that are a JSON object become the input with their digits; each tool message is a user message."""
    call = '{"id":"c1","type":"function","function":{"name":"add","arguments":"{\\"n\\": 100000000000000000001.10}"}}'
    bad = '{"id":"c2","type":"function","function":{"name":"add","arguments":"{\\"n\\": 1"}}'
    body = (
        '{"messages":[{"role":"user","content":"Add."},'
        f'{{"role":"assistant","content":"Now.","tool_calls":[{call},{bad}]}},'
        '{"role":"tool","tool_call_id":"c1","content":"2"},'
        '{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"no"}]},'
        '{"role":"tool","tool_call_id":"c3","content":""}]}'
    )

    session = read(body).only

    assert session.said == [
        ("user", '[{"type":"text","text":"Add."}]'),
        (
            "assistant",
            (
                '[{"type":"text","text":"Now."},'
                '{"type":"tool_use","id":"c1","name":"add","input":{"n":100000000000000000001.10}},'
                '{"type":"tool_use","id":"c2","name":"add","input":"{\\"n\\": 1"}]'
            ),
        ),
        ("user", '[{"type":"tool_result","tool_use_id":"c1","content":"2"}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"no"}]}]'),
        ("user", '[{"type":"tool_result","tool_use_id":"c3","content":""}]'),
    ]
    assert session.flags == [("message:2", "bad_tool_arguments"), ("message:5", "unpaired_tool_result")]


@pytest.mark.parametrize("text", ["", "null", "[1]", '{"a":1,"a":2}', '{"a":NaN}', '{"a":"\\u0000"}', "{'a': 1}"])
def test_arguments_that_are_no_object_stay_as_text(text: str) -> None:
    """Arguments that cannot be an input are kept as a JSON string of themselves, and flagged."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": text}}

    session = read([{"role": "assistant", "content": None, "tool_calls": [call]}]).only

    (message,) = session.messages
    (block,) = message.content
    assert message.content[0].json == block.with_fields(input=text).json
    assert session.flags == [("message:1", "bad_tool_arguments"), ("message:1", "unpaired_tool_use")]


def test_parts_become_blocks_or_stay() -> None:
    """Data URLs become base64 images, addresses url sources, PDFs documents; audio stays as it came."""
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
    ]

    session = read([{"role": "user", "content": parts}]).only

    assert [block.json for block in session.messages[0].content] == [
        '{"type":"text","text":"Look."}',
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}',
        '{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}',
        '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"},"title":"a.pdf"}',
        '{"type":"file","file":{"file_id":"file-1"}}',
        '{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}',
    ]
    assert session.flags == [("message:1", "unknown_block")]


def test_reasoning_is_unsigned_thinking_and_a_refusal_is_kept() -> None:
    """Reasoning of compatible servers is shown as thinking, which nobody signed; a refusal stays a refusal."""
    session = read(
        [
            {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
            {"role": "assistant", "content": None, "refusal": "No."},
        ]
    ).only

    assert session.said == [
        ("assistant", '[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Yes."}]'),
        ("assistant", '[{"type":"refusal","refusal":"No."}]'),
    ]
    assert session.flags == [("message:1", "unsigned_thinking"), ("message:2", "unknown_block")]


def test_function_messages_of_the_first_api_pair_by_name() -> None:
    """A `function` message knows only the name: it answers the latest call of that function."""
    session = read(
        {
            "functions": [{"name": "ls", "description": "Lists.", "parameters": {"type": "object"}}],
            "messages": [
                {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}},
                {"role": "function", "name": "ls", "content": "a.txt"},
            ],
        }
    )

    first, second = session.only.messages
    assert first.content[0].view.id == second.content[0].view.tool_use_id
    assert session.agent.tools == (ToolSpec("ls", "Lists.", '{"type":"object"}'),)
    assert session.only.flags == []


def test_one_request_a_line_makes_one_session_a_line() -> None:
    """JSON Lines of training data: a system prompt that all share is the agent's."""
    line = '{"messages":[{"role":"system","content":"S."},{"role":"user","content":"%s"}]}\n'

    file = read(line % "one" + line % "two")

    assert file.agent.system == (SystemBlock("agent", "S."),)
    assert [session.texts for session in file.sessions] == [["one"], ["two"]]


def test_prompts_that_differ_stay_in_their_histories() -> None:
    """Where the lines' system prompts differ, each keeps its own as a system message."""
    line = '{"messages":[{"role":"system","content":"%s"},{"role":"user","content":"Hi."}]}\n'

    file = read(line % "A." + line % "B.")

    assert file.agent.system == ()
    assert [session.texts for session in file.sessions] == [["A.", "Hi."], ["B.", "Hi."]]
    assert file.sessions[1].flags == [("message:1", "system_in_history")]


def test_one_message_a_line_is_one_session() -> None:
    """JSON Lines of single messages are one conversation."""
    file = read('{"role":"user","content":"a"}\n\n{"role":"assistant","content":"b"}\n')

    assert (file.format, file.only.texts) == (Format.OPENAI_CHAT, ["a", "b"])


def test_a_line_at_fault_is_named() -> None:
    """A refusal names the line, and the part where there is one."""
    good = '{"messages":[{"role":"user","content":"a"}]}\n'

    with pytest.raises(Invalid) as raised:
        read(good + '{"messages":[{"role":"user","content":"b"},{"role":"ghost","content":"c"}]}\n')

    assert str(raised.value).startswith("Line 2: message:2: ")
    assert [(each.reason, each.part) for each in raised.value.errors] == [(Reason.BAD_FIELD, "message:2")]
