"""The strict reader itself: one broken example a rule, and good requests that it lets through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hango.dialect import Dialect
from hango.messages import Message, Request
from tests.histories import FOREIGN_MODEL, OWN_MODEL, Said, build
from tests.strict_wire import faults

ANY_BLOCK = Dialect("anthropic", None, True, False, False, True)
FEW_BLOCKS = replace(
    ANY_BLOCK, name="openai", block_types=frozenset({"text", "tool_use", "tool_result"}), thinking=False
)

HI = Said("user", (("text", ""),))
CALL = Said("assistant", (("use", "a"),))
ANSWER = Said("user", (("result", "a"),))
WORDS = Said("assistant", (("text", ""),))


def request(*history: Said) -> Request:
    messages: list[Message] = build(history)
    return Request("m", (), (), tuple(messages), 10)


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([HI, Said("assistant", ())], ["empty message in 1"]),
        ([HI, Said("assistant", (("text", ""), ("blank", "")))], ["blank text in 1"]),
        ([Said("user", (("no_text", ""),))], ["blank text in 0"]),
        ([HI, Said("assistant", (("unsigned", ""), ("text", "")))], ["unsigned thinking in 1"]),
        ([HI, Said("assistant", (("redacted_empty", ""),))], ["unsigned thinking in 1"]),
        ([HI, Said("assistant", (("signed", ""),), FOREIGN_MODEL)], ["foreign thinking in 1"]),
        ([Said("user", (("signed", ""),))], ["thinking not by the assistant in 0"]),
        ([HI, CALL], ["call without result in 1"]),
        ([HI, CALL, HI, ANSWER], ["call without result in 1", "result without call in 3"]),
        ([HI, CALL, WORDS, ANSWER], ["call without result in 1", "result without call in 3"]),
        ([ANSWER], ["result without call in 0"]),
        ([HI, CALL, ANSWER, ANSWER], ["result without call in 3"]),
        ([HI, CALL, Said("user", (("result", "a"), ("result", "a")))], ["doubled result in 2"]),
        ([HI, CALL, Said("user", (("text", ""), ("result", "a")))], ["result after other blocks in 2"]),
        ([HI, CALL, Said("assistant", (("result", "a"),))], ["result not by the user in 2"]),
        ([Said("user", (("use", "a"),)), ANSWER], ["call not by the assistant in 0"]),
        ([HI, Said("assistant", (("use", "a"), ("use", "a"))), ANSWER], ["doubled call in 1"]),
        ([HI, Said("assistant", (("server_use", "a"),)), HI], ["provider's call without result in 1"]),
        ([HI, Said("assistant", (("mcp_result", "a"),))], ["provider's result without call in 1"]),
        (
            [HI, Said("assistant", (("server_use", "a"), ("mcp_result", "a")))],
            ["provider's result without call in 1"],
        ),
        (
            [HI, Said("assistant", (("server_use", "a"),)), Said("user", (("server_result", "a"),))],
            ["provider's block not by the assistant in 2"],
        ),
    ],
)  # fmt: skip
def test_each_rule_finds_its_fault(history: list[Said], found: list[str]) -> None:
    """One broken example a rule; nothing else is found in it."""
    assert faults(request(*history), ANY_BLOCK, OWN_MODEL) == found


@pytest.mark.parametrize("kind", ["signed", "redacted", "image", "unknown", "server_use"])
def test_a_block_that_the_wire_does_not_take(kind: str) -> None:
    """A wire that takes few types of blocks refuses all others."""
    history = request(HI, Said("assistant", ((kind, "a"),)))

    assert faults(history, FEW_BLOCKS, OWN_MODEL) == ["block not taken in 1"]
    assert faults(history, ANY_BLOCK, OWN_MODEL) == []


def test_good_requests_pass() -> None:
    """Parallel calls, ids that come back, a provider's tools and signed thinking are fine."""
    both = Said("assistant", (("signed", ""), ("text", ""), ("use", "a"), ("use", "b")), OWN_MODEL)
    good = request(
        HI,
        both,
        Said("user", (("result", "b"), ("result", "a"), ("text", ""))),
        CALL,
        ANSWER,
        Said("assistant", (("server_use", "a"), ("server_result", "a"), ("redacted", ""))),
        Said("system", (("text", ""),)),
        Said("assistant", (("server_use", "c"), ("use", "d"))),
        Said("user", (("result", "d"),)),
    )

    assert faults(good, ANY_BLOCK, OWN_MODEL) == []
