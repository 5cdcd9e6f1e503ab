"""Sizes of system blocks and tools; those of messages are held in test_history.py and test_context_overrides.py."""

from __future__ import annotations

from dataclasses import replace

from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.measure import measure
from hango.chain.parts import system_part, tool_part
from hango.chain.size import GroupSize
from hango.domain import Override, OverrideAction, PartID
from hango.messages import ToolSpec
from tests.drafts import mended

DRAFT = replace(
    mended([]),
    system=(Sourced(system_part("a"), "A.", 10), Sourced(system_part("b"), " \n\x1f", 3)),
    tools=(Sourced(tool_part("ls"), ToolSpec("ls"), 7), Sourced(tool_part("own"), ToolSpec("own", definition="{}"), 5)),
    untaken=frozenset({tool_part("own")}),
)


def marked(*overrides: Override, tokens: int = 0) -> Draft:
    return replace(DRAFT, marks={one.part: Mark(one, tokens=tokens) for one in overrides})


def test_what_is_not_sent_costs_nothing() -> None:
    """Counted is what is sent: neither blank blocks nor tools that only another provider knows."""
    size = measure(DRAFT, 1.1)

    assert size.system == GroupSize([11, 0], {}, 11, 11)
    assert size.tools == GroupSize([8, 0], {}, 8, 8)
    assert (size.before, size.after) == (19, 19)


def test_what_is_left_out_keeps_its_tokens() -> None:
    """`before` has no override applied, `after` has all; unticking shows what it saves."""
    size = measure(marked(Override(PartID("system:a"), OverrideAction.EXCLUDE)), 1.0)

    assert size.system == GroupSize([10, 0], {}, 10, 0)


def test_a_replacement_has_both_sizes() -> None:
    """`tokens` is the replacement's, the original's is kept; also where the original is blank."""
    changed = marked(*(Override(PartID(f"system:{name}"), OverrideAction.REPLACE, "New.") for name in "ab"), tokens=4)

    assert measure(changed, 1.0).system == GroupSize([4, 4], {0: 10, 1: 0}, 10, 8)
