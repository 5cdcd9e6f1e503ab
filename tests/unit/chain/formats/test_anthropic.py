"""Anthropic Messages requests become an agent and a session, and back."""

from __future__ import annotations

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Flag, Format, ImportedAgent
from hango.errors import Invalid, Malformed, Reason
from hango.messages import ToolSpec
from tests.unit.chain.formats.imported import read

SEARCH = '{"type":"web_search_20250305","name":"web_search","max_uses":3}'


def test_a_request_is_an_agent_and_a_session() -> None:
    """System blocks get names, cache marks of system and tools are dropped, parameters get hango's names."""
    file = read(
        {
            "model": "claude-sonnet-5",
            "max_tokens": 1024,
            "system": [
                {"type": "text", "text": "A.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "B."},
            ],
            "tools": [
                {
                    "name": "read_file",
                    "description": "Reads.",
                    "input_schema": {"type": "object"},
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
            ],
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "stream": True,
            "context_management": {"edits": []},
            "messages": [{"role": "user", "content": "Hi."}],
        }
    )

    assert file.format is Format.ANTHROPIC
    assert file.agent == ImportedAgent(
        model="anthropic/claude-sonnet-5",
        system=(SystemBlock("agent", "A."), SystemBlock("system-2", "B.")),
        tools=(ToolSpec("read_file", "Reads.", '{"type":"object"}'), ToolSpec("web_search", definition=SEARCH)),
        params={
            "temperature": 0.5,
            "stop": ["END"],
            "tool_choice": {"type": "any"},
            "parallel_tool_calls": False,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        },
        max_output_tokens=1024,
        flags=(Flag("param:context_management", Reason.PARAM_NOT_TAKEN),),
    )
    assert file.only.said == [("user", '[{"type":"text","text":"Hi."}]')]


def test_blocks_stay_byte_for_byte() -> None:
    """Tool inputs keep their digits, unknown blocks and marks in messages stay as they came."""
    blocks = (
        '{"type":"tool_use","id":"t1","name":"add","input":{"n":123456789012345678901234567890,"m":1.10}}',
        '{"type":"hologram","data":{"x":1.50}}',
        '{"type":"text","text":"caf\\u00e9","cache_control":{"type":"ephemeral"}}',
    )

    file = read(f'{{"messages": [ {{"role": "assistant", "content": [ {" , ".join(blocks)} ]}} ]}}', Format.ANTHROPIC)

    assert file.only.said == [("assistant", f"[{','.join(blocks)}]")]
    assert file.only.flags == [("message:1", "unknown_block"), ("message:1", "unpaired_tool_use")]


def test_a_system_string_is_the_block_agent() -> None:
    """A system string becomes the block `agent`; the list of messages alone has no agent's texts."""
    messages = [{"role": "user", "content": "Hi."}]

    assert read({"system": "You help.", "messages": messages}).agent.system == (SystemBlock("agent", "You help."),)
    assert read(messages, Format.ANTHROPIC).agent == ImportedAgent()


def test_a_request_in_an_envelope_is_found() -> None:
    """hango's own `?format=provider` reply and a batch file's line are requests in an envelope."""
    request = {"system": "S.", "messages": [{"role": "user", "content": "Hi."}]}

    for envelope in ({"provider": "anthropic", "request": request}, {"custom_id": "1", "params": request}):
        file = read(envelope)
        assert (file.format, file.agent.system, file.only.texts) == (
            Format.ANTHROPIC,
            (SystemBlock("agent", "S."),),
            ["Hi."],
        )


def test_doubled_and_odd_tool_names_are_kept_and_flagged() -> None:
    """Names that break the rule are kept; of two tools with one name the first is kept; both are flagged."""
    schema = {"type": "object"}
    tools = [
        {"name": "a.b", "input_schema": schema},
        {"name": "ls", "description": "first", "input_schema": schema},
        {"name": "ls", "description": "second", "input_schema": schema},
    ]

    agent = read({"tools": tools, "messages": []}, Format.ANTHROPIC).agent

    assert [(tool.name, tool.description) for tool in agent.tools] == [("a.b", ""), ("ls", "first")]
    assert agent.flags == (
        Flag("tool:a.b", Reason.BAD_TOOL_NAME),
        Flag("tool:ls", Reason.DUPLICATE_TOOL_NAME),
    )


@pytest.mark.parametrize(
    ("body", "reason", "part", "pointer"),
    [
        ('{"messages":[{"role":"user","content":7}]}', Reason.BAD_FIELD, "message:1", "/messages/0/content"),
        ('{"messages":[{"role":"narrator","content":""}]}', Reason.BAD_FIELD, "message:1", "/messages/0/role"),
        ('{"messages":[{"content":"x"}]}', Reason.BAD_FIELD, "message:1", "/messages/0"),
        ('{"messages":{}}', Reason.BAD_FIELD, None, "/messages"),
        ('{"messages":[],"system":7}', Reason.BAD_FIELD, None, "/system"),
        ('{"messages":[],"system":"a\\u0000b"}', Reason.INVALID_TEXT, "system:agent", None),
        ('{"messages":[],"tools":[{"name":"a","input_schema":3}]}', Reason.BAD_TOOL_SCHEMA, "tool:a", "/tools/0"),
        ('{"messages":[{"role":"user","content":"a\\u0000b"}]}', Reason.INVALID_TEXT, "message:1", None),
        (
            '{"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"x","y":["\\ud83d"]}]}]}',
            Reason.INVALID_TEXT,
            "message:2",
            None,
        ),
        ('{"messages":[],"metadata":{"user_id":"\\udc00"}}', Reason.INVALID_TEXT, None, "/metadata/user_id"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    body: str, reason: Reason, part: str | None, pointer: str | None
) -> None:
    """What cannot be is refused with the part or the pointer."""
    with pytest.raises(Invalid) as raised:
        read(body, Format.ANTHROPIC)

    assert [(each.reason, each.part, each.pointer) for each in raised.value.errors] == [(reason, part, pointer)]


def test_a_written_escape_of_nul_is_text() -> None:
    """Backslash and u0000 as letters are no NUL."""
    assert read('{"messages":[{"role":"user","content":"\\\\u0000 \\ud83d\\ude00"}]}').only.texts == ["\\u0000 😀"]


@pytest.mark.parametrize(
    "body",
    ["", "{", '{"messages":[],"messages":[]}', '{"messages":[NaN]}', b'{"messages":["\xff"]}', '{"messages":[]} x'],
)
def test_what_is_not_json_is_refused(body: str | bytes) -> None:
    """Bodies that are not JSON, doubled keys and NaN are 400 `not_json`."""
    for format in (Format.ANTHROPIC, None):
        with pytest.raises(Malformed) as raised:
            read(body, format)
        assert raised.value.closed_code == "not_json"
