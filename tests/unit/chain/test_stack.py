"""The order of the slots."""

from __future__ import annotations

from hango.agent_definition import Builtin
from hango.chain.stack import build_chain, default_stack

WHOLE = [
    "todo",
    "filesystem",
    "subagent",
    "memory",
    "skills",
    "context_overrides",
    "summarization",
    "prompt_cache",
    "tool_allowlist",
]


def test_the_order_of_the_whole_stack() -> None:
    """Overrides stand right before compaction, the cache mark after them, the tool list last."""
    assert [slot.name for slot in default_stack(frozenset(Builtin))] == WHOLE
    assert [slot.name for slot in build_chain(frozenset(Builtin)).slots] == WHOLE


def test_contributors_can_be_switched_off_and_the_other_slots_cannot() -> None:
    """`builtin` says which contributors are on; what every request passes is always there."""
    assert [slot.name for slot in default_stack(frozenset())] == WHOLE[5:]
    assert [slot.name for slot in default_stack({Builtin.SKILLS, Builtin.TODO})] == ["todo", "skills", *WHOLE[5:]]


def test_every_chain_has_slots_of_its_own() -> None:
    """Slots are fresh for each chain: none remembers another run."""
    first, second = default_stack(frozenset(Builtin)), default_stack(frozenset(Builtin))

    assert all(one is not other for one, other in zip(first, second, strict=True))
