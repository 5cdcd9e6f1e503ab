"""ChatGPT exports: one session a conversation, the branch that was seen last."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hango.agent_definition import SystemBlock
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Reason
from tests.unit.chain.formats.imported import lines, read


def node(role: str, content: Any, parent: str | None, name: str | None = None, **metadata: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    author: dict[str, Any] = {"role": role, "name": name, "metadata": {}}
    message = {"author": author, "content": content, "create_time": 1_700_000_000.5, "metadata": metadata}
    return {"message": message, "parent": parent, "children": []}


def conversation(title: str | None, current: str | None, **nodes: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"root": {"message": None, "parent": None, "children": []}}
    return {"title": title, "mapping": root | nodes, "current_node": current}


def test_each_conversation_is_a_session_of_its_last_branch() -> None:
    """The tree is followed from current_node up; hidden and empty nodes are dropped."""
    file = read(
        [
            conversation(
                "Stock",
                "a2",
                s0=node("system", "", "root"),
                s1=node("system", "Be brief.", "s0"),
                h=node("user", "Profile", "s1", is_visually_hidden_from_conversation=True),
                u1=node("user", "How many?", "h"),
                a1=node("assistant", "Ten.", "u1", model_slug="gpt-4o"),
                u2=node("user", "Really?", "a1"),
                a2=node("assistant", "Twelve.", "u1", model_slug="gpt-5"),
            ),
            conversation("Other", "u1", u1=node("user", "Hello", "root")),
        ]
    )

    assert (file.format, file.agent.model) == (Format.CHATGPT, "openai/gpt-5")
    assert [(session.title, session.texts) for session in file.sessions] == [
        ("Stock", ["Be brief.", "How many?", "Twelve."]),
        ("Other", ["Hello"]),
    ]
    assert file.sessions[0].messages[-1].created_at == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)


def test_a_system_prompt_of_all_conversations_is_the_agents() -> None:
    """A system text at the head is the agent's where every conversation has it."""
    file = read(conversation("T", "u", s=node("system", "Be brief.", "root"), u=node("user", "Hi", "s")))

    assert (file.agent.system, file.only.texts) == ((SystemBlock("agent", "Be brief."),), ["Hi"])


def test_contents_become_text_thinking_or_stay() -> None:
    """Code and outputs are text, tools come with their name, thoughts are unsigned thinking, pictures stay as told."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x", "width": 10}
    file = read(
        conversation(
            None,
            "t2",
            u=node("user", {"content_type": "multimodal_text", "parts": [picture, "What is it?"]}, "root"),
            t=node("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "S", "content": "C"}]}, "u"),
            c=node("assistant", {"content_type": "code", "language": "python", "text": "1+1"}, "t"),
            o=node("tool", {"content_type": "execution_output", "text": "2"}, "c", "python"),
            q=node("tool", {"content_type": "tether_browsing_display", "result": "Found"}, "o", "browser"),
            r=node("assistant", {"content_type": "reasoning_recap", "content": "Thought"}, "q"),
            t2=node("assistant", "Two.", "r"),
        )
    )

    assert file.only.said == [
        (
            "user",
            (
                '[{"type":"image_asset_pointer","content_type":"image_asset_pointer","asset_pointer":"file-service://x",'
                '"width":10},{"type":"text","text":"What is it?"}]'
            ),
        ),
        ("assistant", '[{"type":"thinking","thinking":"S\\nC"}]'),
        ("assistant", '[{"type":"text","text":"1+1"}]'),
        ("user", '[{"type":"text","text":"[python] 2"}]'),
        ("user", '[{"type":"text","text":"[browser] Found"}]'),
        ("assistant", '[{"type":"reasoning_recap","content_type":"reasoning_recap","content":"Thought"}]'),
        ("assistant", '[{"type":"text","text":"Two."}]'),
    ]
    assert file.only.flags == [
        ("message:1", "unknown_block"),
        ("message:2", "unsigned_thinking"),
        ("message:6", "unknown_block"),
    ]


@pytest.mark.parametrize("current", [None, "gone"])
def test_without_a_current_node_the_last_one_counts(current: str | None) -> None:
    """An export whose current_node is missing is followed from its last node."""
    nodes = {"u": node("user", "Hi", "root"), "a": node("assistant", "Hello", "u")}

    assert read(conversation("T", current, **nodes)).only.texts == ["Hi", "Hello"]


def test_one_conversation_a_line_is_read_too() -> None:
    """Exports are also passed on as JSON Lines."""
    one = conversation("A", "u", u=node("user", "1", "root"))
    two = conversation("B", "u", u=node("user", "2", "root"))

    assert [session.title for session in read(lines(one, two)).sessions] == ["A", "B"]


def test_a_circle_of_parents_ends() -> None:
    """Nodes that are each other's parents are read once."""
    assert read(conversation("T", "b", a=node("user", "1", "b"), b=node("user", "2", "a"))).only.texts == ["1", "2"]


def test_a_role_nobody_knows_is_refused() -> None:
    """What cannot be is refused with the part and the pointer."""
    with pytest.raises(Invalid) as raised:
        read(conversation("T", "x/y", **{"x/y": node("critic", "1", "root")}))

    assert [(each.reason, each.part, each.pointer) for each in raised.value.errors] == [
        (Reason.BAD_FIELD, "message:1", "/mapping/x~1y/message/author/role")
    ]
