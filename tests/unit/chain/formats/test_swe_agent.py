"""SWE-agent trajectories become a session."""

from __future__ import annotations

import json

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Reason
from tests.unit.chain.formats.imported import read

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}


def test_the_history_is_the_session() -> None:
    """The history that the model saw: system at the head, tool calls paired by tool_call_ids."""
    file = read(
        {
            "environment": "repo__1",
            "trajectory": [{"action": "ls", "observation": "a.py", "thought": "Look.", "response": "Look."}],
            "history": [
                {"role": "system", "content": "S.", "agent": "main", "message_type": "system_prompt"},
                {"role": "user", "content": [{"type": "text", "text": "Mend it."}], "agent": "main"},
                {
                    "role": "assistant",
                    "content": "Look.",
                    "thought": "Look.",
                    "action": "ls",
                    "tool_calls": [CALL],
                    "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}],
                },
                {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "tool_call_ids": ["c1"]},
            ],
            "info": {"exit_status": "submitted"},
            "replay_config": json.dumps({"agent": {"model": {"name": "claude-x"}}}),
        }
    )

    assert (file.format, file.agent.model, file.only.title) == (Format.SWE_AGENT, "anthropic/claude-x", "repo__1")
    assert file.agent.system == (SystemBlock("agent", "S."),)
    assert file.only.said == [
        ("user", '[{"type":"text","text":"Mend it."}]'),
        (
            "assistant",
            (
                '[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Look."},'
                '{"type":"tool_use","id":"c1","name":"bash","input":{"command":"ls"}}]'
            ),
        ),
        ("user", '[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a.py"}]}]'),
    ]
    assert file.only.flags == []


def test_steps_without_a_history_are_answers_and_observations() -> None:
    """Without a history each step is what was said, or thought and action, and what was seen."""
    file = read(
        {
            "trajectory": [
                {"action": "ls", "observation": "a.py", "thought": "Look."},
                {"action": "submit", "observation": "", "response": "Done.\nsubmit"},
            ]
        }
    )

    assert [(role, text) for (role, _), text in zip(file.only.said, file.only.texts, strict=True)] == [
        ("assistant", "Look.\n\nls"),
        ("user", "a.py"),
        ("assistant", "Done.\nsubmit"),
    ]


def test_messages_of_the_small_agent_are_read() -> None:
    """mini-swe-agent writes plain messages and its model under info."""
    file = read(
        {
            "trajectory_format": "mini-swe-agent-1",
            "messages": [{"role": "system", "content": "S."}, {"role": "user", "content": "Go.", "extra": {"a": 1}}],
            "info": {"config": {"model": {"model_name": "gpt-5"}}},
        }
    )

    assert (file.format, file.agent.model, file.only.texts) == (Format.SWE_AGENT, "openai/gpt-5", ["Go."])


def test_a_file_without_steps_is_refused() -> None:
    """What cannot be is refused with the pointer."""
    with pytest.raises(Invalid) as raised:
        read({"info": {}}, Format.SWE_AGENT)

    assert [(each.reason, each.pointer) for each in raised.value.errors] == [(Reason.MISSING_FIELD, "/history")]
