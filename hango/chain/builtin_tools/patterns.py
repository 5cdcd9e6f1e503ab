"""Regular expressions of strangers, matched in time that grows with the text and with nothing else. Pure.

A schema may come from anybody, and Python's own matcher can take for ever on twenty characters. The engine here has no
look-around and no back-references; a pattern with them, or one that is costly to make ready, is not answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

MAX_PATTERN_CHARS = 1000
# States of one pattern, about: making ready a thousand takes some four milliseconds.
MAX_STATES = 20_000
# What `\w` and its like stand for: hundreds of ranges of letters. A dot or an unlikeness is some bytes in turn.
LETTERS_STATES = 300
DOT_STATES = 10

_PIECE = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d{1,9}(?:,\d{0,9})?\}|.", re.DOTALL)
_LETTERS = re.compile(r"\\[wWdDsSpPbB]|[^\x00-\x7f]")
_DOTS = re.compile(r"^\.$|^\[\^")
# In a class the engine reads these as sets of sets, and the schemas' own language as letters.
_SETS = re.compile(r"^\[.*(?:(?<!\\)\[|&&|--|~~)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern made ready. `states` says what that took."""

    states: int
    engine: SchemaValidator | None

    def is_in(self, text: str) -> bool | None:
        """Whether it stands somewhere in the text; None when it is not answered."""
        return None if self.engine is None else self.engine.isinstance_python(text)


@lru_cache(maxsize=128)
def ready(pattern: str) -> Pattern:
    """The pattern, ready to be matched."""
    states = MAX_STATES if len(pattern) > MAX_PATTERN_CHARS else _states(pattern)
    if states >= MAX_STATES:
        return Pattern(MAX_PATTERN_CHARS, None)
    try:
        return Pattern(states, SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")))
    except SchemaError:
        return Pattern(states, None)


def _states(pattern: str) -> int:
    """About how many states the pattern becomes: what is repeated counts as often as it may be repeated."""
    groups, last = [0], 0
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            groups.append(0)
            last = 0
        elif piece == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif piece[0] == "{" and len(piece) > 1:
            times = max(int(bound) for bound in piece[1:-1].split(",") if bound)
            groups[-1] += last * times
            last *= times + 1
        else:
            last = 1 + LETTERS_STATES * len(_LETTERS.findall(piece)) + DOT_STATES * len(_DOTS.findall(piece))
            groups[-1] += last
        if last >= MAX_STATES or _SETS.match(piece):
            return MAX_STATES
    return min(sum(groups), MAX_STATES)
