"""Override rules, pure: what a set of overrides marks, what leaves with it, what it cannot do. Saves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from hango.chain import estimator
from hango.chain.draft import Draft, Mark
from hango.chain.pairs import together
from hango.chain.parts import ParsedPart, PartKind, message_part, parse
from hango.chain.replacement import check, replaced_digest
from hango.domain import MessageDigest, Override, OverrideAction, PartID
from hango.errors import Invalid, Reason
from hango.jsontext import is_text
from hango.messages import is_blank


@dataclass(frozen=True, slots=True)
class Stale:
    """An override that does nothing now, and why."""

    override: Override
    scope: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Marked:
    """The marks of a set of overrides on one draft, and those that found no part."""

    marks: Mapping[PartID, Mark] = field(default_factory=dict)
    messages: tuple[MessageDigest, ...] = ()  # the draft's, with the replaced ones swapped
    originals: Mapping[int, MessageDigest] = field(default_factory=dict)
    stale: tuple[Stale, ...] = ()


def read(exclude: Sequence[str], replace: Mapping[str, str]) -> list[Override]:
    """Overrides from a caller's words. Raises Invalid naming the part at fault and what would mend it."""
    made: dict[PartID, Override] = {}
    for text in exclude:
        _add(made, Override(parse(text).id, OverrideAction.EXCLUDE))
    for text, replacement in replace.items():
        part = parse(text)
        check_replacement(part, replacement)
        _add(made, Override(part.id, OverrideAction.REPLACE, replacement))
    return list(made.values())


def check_replacement(part: ParsedPart, replacement: str) -> None:
    """Raise Invalid when a part cannot be replaced, or not by this text."""
    if part.kind is PartKind.TOOL:
        message = (
            f"The part '{part.id}' cannot be replaced: its arguments are validated by its schema. Exclude it instead."
        )
        raise Invalid.because(Reason.REPLACE_TOOL, message, part=part.id)
    if not is_text(replacement):
        message = f"The replacement of '{part.id}' holds NUL or half of a surrogate pair."
        raise Invalid.because(Reason.INVALID_TEXT, message, part=part.id)
    if is_blank(replacement):
        message = f"The replacement of '{part.id}' is empty or white space. Exclude the part instead."
        raise Invalid.because(Reason.EMPTY_REPLACEMENT, message, part=part.id)


def mark(draft: Draft, overrides: Sequence[Override], *, scope: str, last_seq: int) -> Marked:
    """Mark a draft. Partners of an excluded message are marked too, worked out anew from the history.

    Raises Invalid (`unknown_part`) for a message that does not exist: it would come into force by itself later.
    """
    here = {item.part for item in draft.system} | {item.part for item in draft.tools}
    here.update(message_part(item.seq) for item in draft.messages if item.seq >= 0)
    marks: dict[PartID, Mark] = {}
    stale = []
    for override in overrides:
        if override.part in here:
            tokens = estimator.count([override.replacement])[0] if override.replacement else 0
            marks[override.part] = Mark(override, tokens=tokens)
        else:
            stale.append(Stale(override, scope, _why_stale(override.part, last_seq)))
    excluded = {part for part, mark in marks.items() if mark.excluded}
    for part in partners(draft.messages, excluded):
        marks[part] = Mark(marks[part].override if part in marks else None, paired=True)
    swapped, originals = _swap(draft.messages, marks)
    return Marked(marks, swapped, originals, tuple(stale))


def _swap(
    items: tuple[MessageDigest, ...], marks: Mapping[PartID, Mark]
) -> tuple[tuple[MessageDigest, ...], dict[int, MessageDigest]]:
    """The items with the replaced ones swapped, and those as they were, by seq."""
    texts = {part: mark.replacement for part, mark in marks.items() if mark.replacement is not None}
    if not texts:
        return items, {}
    made, originals = list(items), {}
    for at, item in enumerate(items):
        if (text := texts.get(message_part(item.seq))) is not None:
            check(item)
            originals[item.seq] = item
            made[at] = replaced_digest(item, text)
    return tuple(made), originals


def partners(items: Sequence[MessageDigest], gone: Set[PartID]) -> set[PartID]:
    """The messages that leave because a call or a result of theirs does: transitive, without those in `gone`."""
    seqs = {item.seq: i for i, item in enumerate(items)}
    start = {seqs[seq] for part in gone if (seq := _seq(part)) is not None and seq in seqs}
    if not start:
        return set()
    shared = together(items)
    found, waiting = set(start), list(start)
    while waiting:
        for other in shared.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return {message_part(items[i].seq) for i in found - start}


def _add(made: dict[PartID, Override], override: Override) -> None:
    if override.part in made:
        message = f"The part '{override.part}' is named twice. Name it once."
        raise Invalid.because(Reason.DUPLICATE_PART, message, part=override.part)
    made[override.part] = override


def _seq(part: PartID) -> int | None:
    return int(part[8:]) if part.startswith("message:") else None


def _why_stale(part: PartID, last_seq: int) -> Reason:
    seq = _seq(part)
    if seq is None:
        return Reason.NOT_IN_CONTEXT
    if seq > last_seq:
        message = f"The part '{part}' does not exist: the session ends with message:{last_seq}."
        raise Invalid.because(Reason.UNKNOWN_PART, message, part=part)
    return Reason.IN_SUMMARY
