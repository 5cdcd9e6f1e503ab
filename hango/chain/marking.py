"""Marks on a draft: what a set of overrides does to each part, and what leaves with it. Drops nothing.

Partners are worked out from the history at each use, so that a later message cannot make a stored set bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from hango.chain import estimator
from hango.chain.context_overrides import CALL, Applied
from hango.chain.draft import SUMMARY_SEQ, Draft, Mark, Stale
from hango.chain.pairs import answering, together
from hango.chain.parts import SUMMARY, message_part, message_seq
from hango.chain.replacement import check, replaced_digest, swaps_result
from hango.digests import MessageDigest
from hango.domain import PartID
from hango.errors import Invalid, Reason


def mark(draft: Draft, applied: Sequence[Applied], *, last_seq: int) -> Draft:
    """The draft with the marks of these overrides, one for one part at most.

    Raises Invalid: `unknown_part` for a message after `last_seq`, the session's end (it would come into force by itself
    later), and `replace_breaks_pair`; a saved replacement that cannot be made any more is stale instead.
    """
    here = _Here(draft)
    swaps = _Swaps(draft.messages)
    marks: dict[PartID, Mark] = {}
    stale = []
    for one in applied:
        part = one.override.part
        text = here.sha256(part)
        if text is None:
            stale.append(Stale(one.override, one.scope, _why_stale(draft, part, last_seq)))
            continue
        if one.override.replacement is not None and (refused := swaps.refusal(here.index(part))) is not None:
            if one.scope == CALL:
                raise refused
            stale.append(Stale(one.override, one.scope, Reason.REPLACE_BREAKS_PAIR))
            continue
        replacement = one.override.replacement
        tokens = estimator.text_tokens(replacement) if replacement else 0
        marks[part] = Mark(one.override, tokens=tokens, drifted=bool(one.against) and one.against != text)
    for part, because in partners(draft.messages, [part for part, mark in marks.items() if mark.excluded]).items():
        marks[part] = replace(marks.get(part, Mark()), because=because)
    swapped, originals = _swap(draft.messages, here, marks)
    seqs = (message_seq(part) for part, mark in marks.items() if mark.excluded)
    left_out = frozenset(seq for seq in seqs if seq is not None)
    return replace(draft, marks=marks, messages=swapped, originals=originals, left_out=left_out, stale=tuple(stale))


def check_included(include: Sequence[str], *, last_seq: int) -> None:
    """Raise Invalid (`unknown_part`) for a message after the session's end, as `mark` does for an override of one."""
    for text in include:
        seq = message_seq(PartID(text))
        if seq is not None and seq > last_seq:
            raise _beyond(PartID(text), last_seq)


def text_sha256(draft: Draft, part: PartID) -> str:
    """A hash of what a part holds now; "" when there is no such part."""
    return _Here(draft).sha256(part) or ""


def partners(items: Sequence[MessageDigest], gone: Sequence[PartID]) -> dict[PartID, PartID]:
    """The messages that leave because a call or a result of theirs does, each with the named part it leaves with.

    Transitive; without those in `gone`.
    """
    index = {item.seq: i for i, item in enumerate(items)} if gone else {}
    # In the history's order, so that the order of a set says nothing.
    start = sorted(index[seq] for part in gone if (seq := message_seq(part)) is not None and seq in index)
    if not start:
        return {}
    shared = together(items)
    because = {i: i for i in start}
    waiting = list(start)
    for i in waiting:  # grows while it is walked
        for other in sorted(shared.get(i, ())):
            if other not in because:
                because[other] = because[i]
                waiting.append(other)
    named = set(start)
    return {
        message_part(items[i].seq): message_part(items[cause].seq)
        for i, cause in sorted(because.items())
        if i not in named
    }


@dataclass(slots=True)
class _Here:
    """Look-ups in a draft by part."""

    draft: Draft

    def sha256(self, part: PartID) -> str | None:
        """A hash of what the part holds; None when the draft has no such part."""
        at = self.index(part)
        if at is not None:
            return self.draft.messages[at].sha256
        for block in self.draft.system:
            if block.part == part:
                return sha256(block.value.encode()).hexdigest()
        for tool in self.draft.tools:
            if tool.part == part:
                return sha256(estimator.tool_text(tool.value).encode()).hexdigest()
        return None

    def index(self, part: PartID) -> int | None:
        """The place of a message or of the summary among the items."""
        items = self.draft.messages
        seq = message_seq(part)
        if seq is None or not items:
            return None
        if seq == SUMMARY_SEQ:
            return 0 if items[0].seq == SUMMARY_SEQ else None
        start = int(items[0].seq == SUMMARY_SEQ)
        if start == len(items):
            return None
        at = start + seq - items[start].seq  # seqs have no gaps
        return at if start <= at < len(items) and items[at].seq == seq else None


class _Swaps:
    """Which messages can have their text swapped. What answers a call is worked out when a result is asked for."""

    def __init__(self, items: Sequence[MessageDigest]) -> None:
        self._items = items
        self._answering: set[int] | None = None

    def refusal(self, at: int | None) -> Invalid | None:
        """Why the item cannot; None when it can, or when the part is no message."""
        if at is None:
            return None
        answers = True
        if swaps_result(self._items[at]):
            self._answering = answering(self._items) if self._answering is None else self._answering
            answers = at in self._answering
        try:
            check(self._items[at], answers=answers)
        except Invalid as refused:
            return refused
        return None


def _swap(
    items: tuple[MessageDigest, ...], here: _Here, marks: Mapping[PartID, Mark]
) -> tuple[tuple[MessageDigest, ...], dict[int, MessageDigest]]:
    """The items with the replaced ones swapped, and those as they were, by seq."""
    made: list[MessageDigest] | None = None
    originals: dict[int, MessageDigest] = {}
    for part, mark in marks.items():
        at = here.index(part)
        if at is None or mark.replacement is None:
            continue
        made = made or list(items)
        originals[items[at].seq] = items[at]
        made[at] = replaced_digest(items[at], mark.replacement)
    return (tuple(made) if made else items), originals


def _why_stale(draft: Draft, part: PartID, last_seq: int) -> Reason:
    seq = message_seq(part)
    if part == SUMMARY or seq is None:
        return Reason.NOT_IN_CONTEXT
    if seq > last_seq:
        raise _beyond(part, last_seq)
    first = next((item.seq for item in draft.messages if item.seq > 0), last_seq + 1)
    return Reason.IN_SUMMARY if seq < first else Reason.NOT_IN_CONTEXT


def _beyond(part: PartID, last_seq: int) -> Invalid:
    message = f"The part '{part}' does not exist: the session ends with message:{last_seq}."
    return Invalid.because(Reason.UNKNOWN_PART, message, part=part)
