"""Histories as they come: good ones, broken-off ones, hostile ones. Every block of a history is unlike all others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from hango.chain.digest import digests
from hango.digests import MessageDigest
from hango.messages import Block, Message, MessageRole

OWN_MODEL = "anthropic/claude-sonnet-4-5"
FOREIGN_MODEL = "other-maker/model-k"
# Few ids, so that they come back in other turns and in other kinds of calls; the last are not legal on a wire.
IDS = ("call_0", "call_1", "call_2", "c.é", "")

CALLS = ("use", "use", "odd_use", "server_use", "mcp_use")
RESULTS = ("result", "result", "result_blocks", "result_empty", "server_result", "mcp_result")
THOUGHTS = ("signed", "unsigned", "redacted", "redacted_empty")
OTHERS = ("text", "text", "blank", "no_text", "image", "unknown")


@dataclass(frozen=True, slots=True)
class Said:
    """The shape of one message: blocks as (kind, id), without their texts."""

    role: str
    blocks: tuple[tuple[str, str], ...]
    model: str | None = None


def block(kind: str, id: str, n: int) -> Block:
    """The n-th block of a history. Its text is like no other's."""
    made: dict[str, tuple[str, dict[str, Any]]] = {
        "text": ("text", {"text": f"Words {n}, spoken."}),
        "blank": ("text", {"text": " \n\u00a0" * (n + 1)}),
        "no_text": ("text", {"text": "", "n": n}),
        "image": ("image", {"source": {"type": "url", "url": f"https://pictures.example/{n}.png"}}),
        "unknown": ("hologram", {"beams": [n, msgspec.Raw(b"1.10")]}),
        "use": ("tool_use", {"id": id, "name": "read_file", "input": {"n": n}}),
        "odd_use": ("tool_use", {"id": id, "name": "read_file", "input": n}),
        "server_use": ("server_tool_use", {"id": id, "name": "web_search", "input": {"n": n}}),
        "mcp_use": ("mcp_tool_use", {"id": id, "name": "echo", "server_name": "s", "input": {"n": n}}),
        "result": ("tool_result", {"tool_use_id": id, "content": f"Result {n}."}),
        "result_blocks": (
            "tool_result",
            {"tool_use_id": id, "content": [{"type": "text", "text": f"Line {n}."}], "is_error": True},
        ),
        "result_empty": ("tool_result", {"tool_use_id": id, "n": n}),
        "server_result": ("web_search_tool_result", {"tool_use_id": id, "content": [{"n": n}]}),
        "mcp_result": ("mcp_tool_result", {"tool_use_id": id, "content": [{"type": "text", "text": f"Echo {n}."}]}),
        "signed": ("thinking", {"thinking": f"Thought {n}.", "signature": "c2ln"}),
        "unsigned": ("thinking", {"thinking": f"Guess {n}."}),
        "redacted": ("redacted_thinking", {"data": f"RW5j{n}"}),
        "redacted_empty": ("redacted_thinking", {"data": "", "n": n}),
    }
    type, fields = made[kind]
    return Block.make(type, **fields)


def build(history: Sequence[Said]) -> list[Message]:
    """The messages of a history, every block numbered."""
    numbers = iter(range(1_000_000))
    return [
        Message(MessageRole(said.role), tuple(block(kind, id, next(numbers)) for kind, id in said.blocks), said.model)
        for said in history
    ]


def said(role: str, content: str | Sequence[dict[str, Any]], model: str | None = None) -> Message:
    """One message from Python values."""
    blocks: Sequence[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return Message(MessageRole(role), tuple(Block.of(json.dumps(item)) for item in blocks), model)


def numbered(messages: Sequence[Message], first: int = 1) -> tuple[MessageDigest, ...]:
    """Digests as a session holds them, by seq."""
    return tuple(msgspec.structs.replace(made, seq=seq) for seq, made in enumerate(digests(messages), first))


ids = st.sampled_from(IDS)
kinds = st.sampled_from(CALLS + RESULTS + THOUGHTS + OTHERS)
models = st.sampled_from((None, None, OWN_MODEL, OWN_MODEL.partition("/")[2], FOREIGN_MODEL))
roles = st.sampled_from(("user", "assistant", "user", "assistant", "system"))

wild_messages = st.builds(Said, roles, st.lists(st.tuples(kinds, ids), max_size=4).map(tuple), models)


@st.composite
def turns(draw: st.DrawFn) -> list[Said]:
    """Calls of one turn and their results: in parallel, spread, late, doubled, in part or not there at all."""
    called = draw(st.lists(st.sampled_from(IDS[:3]), min_size=1, max_size=3, unique=True))
    before = draw(st.lists(st.sampled_from(("text", "signed", "unsigned", "blank")), max_size=2))
    call = Said("assistant", (*((kind, "") for kind in before), *(("use", id) for id in called)), draw(models))
    answered = draw(st.permutations(called))[: draw(st.integers(0, len(called)))]
    if draw(st.booleans()):
        answered = [*answered, *answered[:1]]
    after: list[Said] = []
    while answered:
        size = draw(st.integers(1, len(answered)))
        here = [("result", id) for id in answered[:size]]
        answered = answered[size:]
        words = draw(st.sampled_from(((), (), ("text",), ("blank",))))
        spoken = [(kind, "") for kind in words]
        after.append(Said("user", tuple(spoken + here if draw(st.booleans()) else here + spoken)))
    for at in draw(st.sets(st.integers(0, len(after)), max_size=1)):
        after.insert(at, draw(wild_messages))
    return [call, *after]


server_turns = st.sampled_from(
    (
        [Said("assistant", (("server_use", "call_1"), ("server_result", "call_1"), ("text", "")))],
        [
            Said("assistant", (("server_use", "call_1"),)),
            Said("assistant", (("server_result", "call_1"), ("text", ""))),
        ],
        [Said("assistant", (("text", ""), ("server_use", "call_1")))],
        [Said("assistant", (("mcp_use", "call_2"), ("mcp_result", "call_2"), ("use", "call_0")))],
    )
)
plain_turns = st.sampled_from(("user", "assistant")).map(lambda role: [Said(role, (("text", ""),))])

# From good to hostile; shrinks to the good ones.
histories = st.lists(
    st.one_of(plain_turns, turns(), server_turns, wild_messages.map(lambda one: [one])), max_size=6
).map(lambda parts: [one for part in parts for one in part])
