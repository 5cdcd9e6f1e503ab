"""Blocks that no provider ever made: an import may hold anything, and no adapter may fall over it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hango import jsontext
from hango.chain.providers.offline import answer
from hango.errors import Invalid
from hango.messages import Block, Request
from tests.unit.chain.providers.making import ANTHROPIC, COMPATIBLE, OFFLINE, OPENAI, assistant, request, user

# What the door lets in: NUL and halves of surrogate pairs are refused there.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=4,
)
TYPES = [
    "text",
    "image",
    "document",
    "search_result",
    "tool_use",
    "tool_result",
    "thinking",
    "server_tool_use",
    "web_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "new_block",
]
MEMBERS = [
    "text",
    "title",
    "context",
    "source",
    "content",
    "input",
    "cache_control",
    "id",
    "name",
    "tool_use_id",
    "url",
]


def members(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda type, more: {**more, "type": type},
        st.sampled_from(TYPES),
        st.dictionaries(st.sampled_from([*MEMBERS, "data", "media_type"]), values, max_size=5),
    )


odd_members = members(st.one_of(json_values, members(json_values), st.lists(members(json_values), max_size=3)))


@settings(max_examples=100, deadline=None)
@given(st.lists(odd_members, min_size=1, max_size=3), st.sampled_from([user, assistant]))
def test_no_block_breaks_an_adapter(given_blocks: list[dict[str, Any]], role: Any) -> None:
    """Whatever stands in a block that was taken, every body is strict JSON, and the offline answerer answers."""
    taken = []
    for one in given_blocks:
        try:
            taken.append(Block.of(json.dumps(one)))
        except Invalid:  # refused at the door: it never reaches an adapter
            continue
    made = request(user("Hi."), role(*taken), user("Well?"))

    for provider in (ANTHROPIC, OPENAI, COMPATIBLE, OFFLINE):
        assert jsontext.read(provider.body(made))["messages"]
    assert answer(made).content


@pytest.mark.parametrize("provider", [ANTHROPIC, OPENAI, COMPATIBLE, OFFLINE], ids=lambda one: one.name)
def test_an_empty_request_has_a_body(provider: Any) -> None:
    """A session without messages can be looked at."""
    assert jsontext.read(provider.body(Request("m", (), (), (), 1)))["messages"] == []
