"""The sizes of a draft: tokens of each part, each rounded once, and sums that add up by construction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from hango.chain.draft import Draft, Mark, Sourced
from hango.chain.estimator import MESSAGE_OVERHEAD, scaled
from hango.chain.history import Repair
from hango.chain.size import GroupSize, Size
from hango.digests import MessageDigest
from hango.messages import is_blank

T = TypeVar("T")

# Keeps a product such as 100 x 1.1 = 110.00000000000001 from being rounded up.
_EPSILON = 1e-6


def measure(draft: Draft, factor: float) -> Size:
    """Sizes of a draft whose history is repaired. One pass over the messages, no body read."""
    return Size(
        # What is empty, or what only another provider knows, is not sent, and costs nothing.
        _sum(
            [0 if is_blank(part.value) else scaled(part.tokens, factor) for part in draft.system],
            _marks(draft, draft.system),
            factor,
        ),
        _sum(
            [0 if part.part in draft.untaken else scaled(part.tokens, factor) for part in draft.tools],
            _marks(draft, draft.tools),
            factor,
        ),
        _messages(draft, factor),
    )


def _marks(draft: Draft, parts: Sequence[Sourced[T]]) -> dict[int, Mark]:
    return {i: draft.marks[part.part] for i, part in enumerate(parts) if part.part in draft.marks}


def _messages(draft: Draft, factor: float) -> GroupSize:
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    assert draft.unmarked is not None, "the context_overrides slot sets the repair without overrides"
    if draft.unmarked is draft.repair:
        tokens = _of_items(draft.messages, draft.repair, factor)
        total = sum(tokens)
        return GroupSize(tokens, {}, total, total)
    # A part that is left out has the tokens that it would have without any override.
    tokens = _of_items(draft.stored_messages(), draft.unmarked, factor)
    originals = {i: tokens[i] for i, item in enumerate(draft.messages) if item.seq in draft.originals}
    kept = [i for i, item in enumerate(draft.messages) if item.seq not in draft.left_out]
    after = _of_items(draft.kept_messages(), draft.repair, factor)
    for i, count in zip(kept, after, strict=True):
        tokens[i] = count
    before = sum(tokens) + sum(original - tokens[i] for i, original in originals.items())
    return GroupSize(tokens, originals, before, sum(after))


def plain_tokens(items: Sequence[MessageDigest], factor: float) -> list[int]:
    """Tokens of messages that are sent as they stand."""
    ceil = math.ceil
    return [ceil((item.tokens + MESSAGE_OVERHEAD) * factor - _EPSILON) for item in items]


def _of_items(items: Sequence[MessageDigest], repair: Repair, factor: float) -> list[int]:
    tokens = plain_tokens(items, factor)
    for at, count in repair.tokens.items():
        tokens[at] = scaled(count + MESSAGE_OVERHEAD, factor)
    for at in repair.unsent:
        tokens[at] = 0
    return tokens


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
