"""What a model answered: its text, the tools it called, and what makes two answers the same one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from hango.cli.context_part import fields, string
from hango.cli.text import one_line
from hango.cli.try_replies import Answer

ARROW = "→"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that was called. `input` is its JSON text, with the digits of its numbers as they came."""

    name: str
    input: str

    def __str__(self) -> str:
        return f"{ARROW} {self.name}({self.input})"


def kind(block: msgspec.Raw) -> str:
    """A block's type; empty for what is no block."""
    return string(fields(block).get("type")) if bytes(block).lstrip()[:1] == b"{" else ""


def texts(answer: Answer) -> Iterator[str]:
    for block in answer.content:
        if kind(block) == "text":
            yield string(fields(block).get("text"))


def calls(answer: Answer) -> Iterator[Call]:
    """The calls of tools, in order; what the provider itself carried out is none of them."""
    yield from calls_of(answer.content)


def calls_of(blocks: Iterable[msgspec.Raw]) -> Iterator[Call]:
    for block in blocks:
        if kind(block) == "tool_use":
            of = fields(block)
            given = bytes(of.get("input", msgspec.Raw(b"{}")))
            yield Call(string(of.get("name")), msgspec.json.format(given, indent=-1).decode())


def as_text(answer: Answer) -> str:
    """The answer in one text: what it says, then a line a call. Two answers are the same when this is.

    Thinking does not count: models seldom think the same thing twice.
    """
    said = "\n".join(texts(answer)).strip()
    return "\n".join(part for part in (said, *map(str, calls(answer))) if part)


def first_line(text: str) -> str:
    """The first line that holds something, safe for a terminal."""
    return one_line(next((line for line in text.splitlines() if line.strip()), "").strip())
