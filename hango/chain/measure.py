"""The sizes of a draft: tokens of each part, each rounded once, and sums that add up by construction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.estimator import MESSAGE_OVERHEAD, scaled
from hango.chain.history import sendable_tokens
from hango.chain.parts import message_part
from hango.chain.size import GroupSize, Size
from hango.dialect import Dialect

T = TypeVar("T")

# Keeps a product such as 100 x 1.1 = 110.00000000000001 from being rounded up.
_EPSILON = 1e-9


def measure(draft: Draft, dialect: Dialect, model: str, factor: float) -> Size:
    """Sizes of a draft whose history is repaired. One pass over the messages, no body read."""
    return Size(
        _sum([scaled(part.tokens, factor) for part in draft.system], _marks(draft, draft.system), factor),
        _sum([scaled(part.tokens, factor) for part in draft.tools], _marks(draft, draft.tools), factor),
        _messages(draft, dialect, model, factor),
    )


def _marks(draft: Draft, parts: Sequence[Sourced[T]]) -> dict[int, Mark]:
    return {i: draft.marks[part.part] for i, part in enumerate(parts) if part.part in draft.marks}


def _messages(draft: Draft, dialect: Dialect, model: str, factor: float) -> GroupSize:
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    ceil = math.ceil
    tokens = [ceil((item.tokens + MESSAGE_OVERHEAD) * factor - _EPSILON) for item in draft.messages]
    marks: dict[int, Mark] = {}
    if draft.marks:
        marks = {
            i: mark
            for i, item in enumerate(draft.messages)
            if (mark := draft.marks.get(message_part(item.seq))) is not None
        }
    kept: Sequence[int] = range(len(tokens))
    if any(mark.excluded for mark in marks.values()):
        kept = [i for i in kept if i not in marks or not marks[i].excluded]
        for i, mark in marks.items():
            if mark.excluded:
                alone = sendable_tokens(draft.messages[i], dialect, model)
                tokens[i] = scaled(alone + MESSAGE_OVERHEAD, factor) if alone else 0
    for at, count in draft.repair.tokens.items():
        tokens[kept[at]] = scaled(count + MESSAGE_OVERHEAD, factor)
    for at in draft.repair.unsent:
        tokens[kept[at]] = 0
    return _sum(tokens, marks, factor)


def _sum(tokens: list[int], marks: Mapping[int, Mark], factor: float) -> GroupSize:
    before = after = sum(tokens)
    originals = {}
    for i, mark in marks.items():
        if mark.excluded:
            after -= tokens[i]
        elif mark.replacement is not None:
            originals[i] = tokens[i]
            after -= tokens[i]
            tokens[i] = scaled(mark.tokens, factor)
            after += tokens[i]
    return GroupSize(tokens, originals, before, after)
