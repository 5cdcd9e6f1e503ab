"""Worlds made by hypothesis: any agent with any history, odd imports among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import strategies as st

from hango.agent_definition import AgentDefinition, Builtin, Cache, SystemBlock
from hango.messages import Block, Message, MessageRole, ToolSpec
from tests.histories import OWN_MODEL, build, histories
from tests.states import file
from tests.unit.chain.providers.making import PNG
from tests.wire.worlds import World

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
LONG_ID = "call.long-" * 7

# What imports brought, by the role in which it came: marks, odd pictures and files, blocks of other makers.
ODD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("user", {"type": "text", "text": "Marked words.", **MARK}),
    ("user", {"type": "text", "text": "", **MARK}),
    ("assistant", {"type": "text", "text": "Words that end with space. \n", **MARK}),
    ("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}, **MARK}),
    ("user", {"type": "image", "source": {"type": "url"}}),
    ("user", {"type": "image"}),
    ("assistant", {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}),
    ("user", {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": ""}}),
    ("user", {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}),
    ("user", {"type": "document", "title": "", "source": {"type": "base64", "data": ""}}),
    ("user", {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": " ", **MARK}]}}),
    ("assistant", {"type": "document", "source": {"type": "url", "url": "https://papers.example/a.pdf"}}),
    ("user", {"type": "search_result", "title": "", "source": "", "content": []}),
    ("assistant", {"type": "tool_use", "id": LONG_ID, "name": "câu.hỏi", "input": {"n": msgspec.Raw(b"1e400")}}),
    ("assistant", {"type": "tool_use", "id": "call_9", "name": "", "input": '{"path": "/a"}'}),
    ("user", {"type": "tool_result", "tool_use_id": LONG_ID, "content": [], **MARK}),
    ("user", {"type": "tool_result", "tool_use_id": "call_9", "content": None}),
    ("user", {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": "", **MARK}]}),
    ("user", {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "image", "source": {}}]}),
    ("assistant", {"type": "thinking", "thinking": "", "signature": "c2ln"}),
    ("assistant", {"type": "thinking", "thinking": " caf\u0065\u0301 \u00e9 ", "signature": "c2ln", **MARK}),
    ("assistant", {"type": "code_execution_tool_result", "tool_use_id": "call_1", "content": {"n": 1}}),
)


def _odd(role: str, members: dict[str, Any]) -> Message:
    fields = {key: value for key, value in members.items() if key != "type"}
    return Message(MessageRole(role), (Block.make(members["type"], **fields),))


odd_messages = st.sampled_from(ODD).map(lambda one: _odd(*one))


@st.composite
def message_lists(draw: st.DrawFn, *, min_odd: int = 0) -> tuple[Message, ...]:
    """A history of `tests.histories` with odd blocks in it, in messages of their own or beside others."""
    made = build(draw(histories))
    for odd in draw(st.lists(odd_messages, min_size=min_odd, max_size=2)):
        at = draw(st.integers(0, len(made)))
        if at < len(made) and made[at].role == odd.role and draw(st.booleans()):
            made[at] = replace(made[at], content=(*made[at].content, *odd.content))
        else:
            made.insert(at, odd)
    return tuple(made)


SCHEMAS = (
    '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}',
    '{"type":"object"}',
    '{"type":"object","properties":{"n":{"type":"array"}}}',
    '{"oneOf":[{"type":"object"}]}',
)
TOOLS = (
    ToolSpec("read_note", "Read one note.", SCHEMAS[0]),
    ToolSpec("a.b", "", SCHEMAS[1]),
    ToolSpec("câu_hỏi", "Hỏi.", SCHEMAS[1]),
    ToolSpec("x" * 70, "", SCHEMAS[1]),
    ToolSpec("loose", "An array without items.", SCHEMAS[2]),
    ToolSpec("either", "No type at the top.", SCHEMAS[3]),
    ToolSpec(
        "web_search",
        definition='{"type":"web_search_20250305","name":"web_search","cache_control":{"type":"ephemeral"}}',
    ),
    ToolSpec("grammar", definition='{"type":"custom","custom":{"name":"grammar"}}'),
)
SYSTEM = (
    SystemBlock("agent", "You look after the stock list of a small workshop."),
    SystemBlock("blank", " \n\u00a0"),
    SystemBlock("none", ""),
    SystemBlock("style", "Answer in one sentence. {0.__class__} %s {{7*7}}"),
)
FILES = (
    file("/memories/AGENTS.md", "Bolts are counted on Mondays."),
    file("/memories/empty.md", ""),
    file("/skills/count/SKILL.md", "---\nname: count\ndescription: How to count.\n---\nOne by one."),
)
CHOICES = (
    "auto",
    "required",
    {"type": "any"},
    {"type": "tool", "name": "read_note"},
    {"type": "function", "function": {"name": "a.b"}},
    {"type": "tool", "name": "not_there"},
)


@st.composite
def agents(draw: st.DrawFn) -> AgentDefinition:
    tools = draw(st.lists(st.sampled_from(TOOLS), max_size=3, unique_by=lambda tool: tool.name))
    params: dict[str, Any] = {}
    if draw(st.booleans()):
        params["tool_choice"] = draw(st.sampled_from(CHOICES))
    if draw(st.booleans()):
        params["parallel_tool_calls"] = draw(st.booleans())
    return AgentDefinition(
        model=OWN_MODEL,
        system=tuple(draw(st.lists(st.sampled_from(SYSTEM), max_size=3, unique_by=lambda block: block.name))),
        tools=tuple(tools),
        builtin=frozenset(draw(st.sets(st.sampled_from(Builtin), max_size=2))),
        memory=tuple(
            draw(st.lists(st.sampled_from([one.path for one in FILES[:2]] + ["/memories/gone.md"]), unique=True))
        ),
        allowed_tools=draw(st.sampled_from((None, None, None, (), ("read_note", "ls")))),
        params=params,
        cache=Cache(enabled=draw(st.booleans()), ttl=draw(st.sampled_from(("5m", "1h")))),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any agent with any history; some under a summary."""
    messages = draw(message_lists())
    # A cut never separates a pair; one that does anyway must not harm a request either.
    under = draw(st.integers(0, len(messages)))
    return World(
        agent=draw(agents()),
        messages=messages,
        files=FILES if draw(st.booleans()) else (),
        summary=draw(st.sampled_from(("Before: 40 bolts counted.", "Before."))) if under else None,
        under=under,
    )
