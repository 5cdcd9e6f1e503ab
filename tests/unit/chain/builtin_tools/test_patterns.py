"""Patterns of strangers: answered like any regular expression, or not at all, and never for long."""

from __future__ import annotations

import time

import pytest

from hango.chain.builtin_tools import patterns


@pytest.mark.parametrize(
    ("pattern", "text", "is_in"),
    [
        ("^a+$", "aaa", True),
        ("^a+$", "aab", False),
        ("b", "abc", True),
        (r"^[\w.+-]+@[\w-]+\.[\w.-]+$", "büro@example.org", True),
        (
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            "0a1b2c3d-0000-4000-8000-0123456789ab",
            True,
        ),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-30", True),
        (r"^\/a\/", "/a/b", True),
        ("^(a|b){3}$", "abab", False),
        ("^$", "", True),
    ],
)
def test_a_pattern_is_answered(pattern: str, text: str, is_in: bool) -> None:
    """The pattern may stand anywhere in the text, as JSON Schema has it."""
    assert patterns.ready(pattern).is_in(text) is is_in


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)a", r"(a)\1", "[", "(", ")", "*", "a{2", "b{}{", r"\w{1000}", "(a{1000}){1000}", "(((a{30}){30}){30}){30}",
     "a" * 1001, r"(\w{0,100}){0,5}", r"\p{L}{999}", r"[^\W_]{999}", "é{999}", r"[\w&&[^\d]]{999}", "a{99999}", "[[]"],
)  # fmt: skip
def test_what_could_take_long_is_not_answered(pattern: str) -> None:
    """Look-around, back-references, what is no pattern, and what becomes too large: nobody answers, at once."""
    before = time.process_time()

    assert patterns.ready(pattern).is_in("a" * 100) is None
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    "pattern",
    ["^(a+)+$", "(a|a)*$", "^(a|aa)+$", r"(.*a){20}$", r"^(\w+\s?)*$", "(a?){300}a{300}$", "[a-z]{0,900}" * 20,
     "(?i)[a-z]{0,900}" * 10, ".{0,900}", r"(?:.*a){20}.{500}b", "|".join(f"{'a' * n}b" for n in range(40))],
)  # fmt: skip
def test_no_pattern_takes_long(pattern: str) -> None:
    """What costs other matchers more than the age of the world takes a moment, on a million letters."""
    before = time.process_time()

    for text in ("a" * 30 + "!", "a" * 1_000_000 + "!"):
        assert patterns.ready(pattern).is_in(text) is not None

    assert time.process_time() - before < 3
