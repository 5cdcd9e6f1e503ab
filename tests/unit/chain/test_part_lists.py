"""Lists of part ids as text: short, in their order, and the same again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain import part_lists
from hango.domain import PartID

NAMES = st.sampled_from(["system:agent", "tool:look", "summary", "extra", "system:memory:/a b/\u00e9.md"])


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "[]"),
        ([PartID("system:agent"), PartID("tool:look")], '["system:agent","tool:look"]'),
        ([1, 2, 3], "[[1,3]]"),
        ([PartID("summary"), 7, 8, 10, PartID("extra")], '["summary",[7,8],[10,10],"extra"]'),
        ([3, 2, 1], "[[3,3],[2,2],[1,1]]"),
        ([1, PartID("tool:look"), 2], '[[1,1],"tool:look",[2,2]]'),
    ],
)
def test_messages_that_follow_each_other_are_one_pair(parts: list[PartID | int], text: str) -> None:
    """A run of messages is written as its first and its last."""
    assert part_lists.encode(parts) == text


def test_ten_thousand_messages_are_a_few_letters() -> None:
    """However long the history is, what is sent of it is named in a few letters."""
    assert part_lists.encode(range(1, 10_001)) == "[[1,10000]]"


@given(st.lists(NAMES | st.integers(1, 30) | st.integers(2**62, 2**63 - 1)))
def test_a_list_comes_back_as_it_was(parts: list[PartID | int]) -> None:
    """decode(encode(list)) is the list, in its order, messages by their ids."""
    ids = [part if isinstance(part, str) else f"message:{part}" for part in parts]

    assert part_lists.decode(part_lists.encode(parts)) == ids
