"""The sizes of a draft: tokens of each part, each rounded once, and sums that add up by construction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.estimator import MESSAGE_OVERHEAD, scaled
from hango.chain.parts import message_part
from hango.chain.refusal import sendable_tokens
from hango.chain.size import GroupSize, Size
from hango.dialect import Dialect
from hango.domain import MessageDigest

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
    excluded: list[int] = []
    if draft.marks:
        excluded = [i for i, item in enumerate(draft.messages) if draft.mark(message_part(item.seq)).excluded]
    kept: Sequence[int] = range(len(tokens))
    if excluded:
        out = set(excluded)
        kept = [i for i in kept if i not in out]
        for i in excluded:
            tokens[i] = _alone(draft.messages[i], dialect, model, factor)
    for at, count in draft.repair.tokens.items():
        tokens[kept[at]] = scaled(count + MESSAGE_OVERHEAD, factor)
    for at in draft.repair.unsent:
        tokens[kept[at]] = 0
    before, after = sum(tokens), sum(tokens) - sum(tokens[i] for i in excluded)
    originals = {}
    if draft.originals:
        for i, item in enumerate(draft.messages):
            if item.seq in draft.originals:
                originals[i] = _alone(draft.originals[item.seq], dialect, model, factor)
                before += originals[i] - tokens[i]
    return GroupSize(tokens, originals, before, after)


def _alone(item: MessageDigest, dialect: Dialect, model: str, factor: float) -> int:
    """Tokens of an item as it would be sent, looking at it alone."""
    count = sendable_tokens(item, dialect, model)
    return scaled(count + MESSAGE_OVERHEAD, factor) if count else 0


def _sum(tokens: list[int], marks: Mapping[int, Mark], factor: float) -> GroupSize:
    """Sums of system blocks or tools, with the replaced ones at their new size."""
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
