"""What a change of overrides does, in lines. Pure: snapshots before and after in, lines and notes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from hango.cli.output import Line, Span, Style
from hango.cli.override_sets import Change, Level, Saved, level_of
from hango.cli.replies import GROUPS, Overrides, Part, SavedOverride, Snapshot
from hango.cli.text import cells, cut, number, one_line, pad

MOST_ROWS = 50  # of parts that change; `hango context show` has them all
MOST_ALIKE = 3  # ids shown beside one that is not there
GAP = "  "
LEAST_TEXT = 12  # columns of a replacement that are worth showing


def lines(before: Snapshot, after: Snapshot, width: int) -> Iterator[Line]:
    """A row for each part that changes, then what it costs or saves."""
    old = _by_id(before)
    changed = [part for part in _parts(after) if _state(part) != _state(old.get(part.id))]
    shown = changed[:MOST_ROWS]
    ids = max((cells(one_line(part.id)) for part in shown), default=0)
    digits = max((len(number(part.tokens)) for part in shown), default=0)
    for part in shown:
        box, words, style = _words(part)
        head = f" {box} {pad(one_line(part.id), ids)}  {number(part.tokens):>{digits}}  "
        yield Line.of(Span(head, style), Span(cut(words, max(LEAST_TEXT, width - cells(head))), style))
    if len(changed) > MOST_ROWS:
        yield Line.of(f" … and {number(len(changed) - MOST_ROWS)} more")
    yield Line.of(Span(f"total {effect(before.total_after, after.total_after)}", Style.STRONG), " (estimated)")
    cached = [part.id for part in changed if (was := old.get(part.id)) is not None and was.cached_prefix]
    if cached:
        words = f"the cached prefix changes at {one_line(cached[0])}: the next call writes it anew"
        yield Line.of(Span(words, Style.WARNING))


def notes(before: Snapshot, after: Snapshot, saved: Sequence[Saved], change: Change) -> Iterator[str]:
    """What needs attention, one sentence each."""
    old = _by_id(before)
    for one in saved:
        there = {row.part: row for row in one.before.overrides}
        for part in change.parts:
            if level_of(part) is one.level and (said := _without_effect(part, there, change, old.get(part))):
                yield said
        if one.changed:
            yield from _of_the_rest(one, change, old)
    known = {(problem.reason, problem.part) for problem in before.problems}
    for problem in after.problems:
        if (problem.reason, problem.part) not in known:
            yield problem.message if problem.part is None else f"{problem.part}: {problem.message}"


def cleared(snapshot: Snapshot, saved: Sequence[Saved], *, dry_run: bool) -> Iterator[str]:
    """How many overrides of which set are taken back, one sentence a set."""
    word = "would be taken" if dry_run else "taken"
    for one in saved:
        if not one.changed:
            continue
        texts = sum(row.replacement is not None for row in one.before.overrides)
        with_texts = f", with {_count(texts, 'replacement text')}, kept nowhere else" if texts else ""
        whose, reach = f"session {snapshot.session_id}", ""
        if one.level is Level.AGENT:
            whose, reach = f"agent {snapshot.agent_id}", "; this acts in every session of the agent"
        yield f"{word} back: {_count(len(one.before.overrides), 'override')} of {whose}{with_texts}{reach}."


def saved_lines(sets: Mapping[Level, Overrides], snapshot: Snapshot, width: int) -> Iterator[Line]:
    """The saved overrides of each level, with what becomes of them now."""
    parts = _by_id(snapshot)
    ids = max((cells(one_line(row.part)) for one in sets.values() for row in one.overrides), default=0)
    for level, one in sets.items():
        if not one.overrides:
            continue
        of_agent = f"agent {snapshot.agent_id}, in every session of it"
        head = of_agent if level is Level.AGENT else f"session {snapshot.session_id}"
        yield Line.of(Span(cut(one_line(head), width), Style.STRONG))
        for row in one.overrides:
            words = ", ".join(_states(row, one, parts.get(row.part)))
            yield _saved_line(f" {pad(one_line(row.part), ids)}  {words}", row, width)


def _states(row: SavedOverride, of: Overrides, part: Part | None) -> Iterator[str]:
    yield "excluded" if row.action == "exclude" else "replaced"
    if row.part in of.stale:
        yield "stale"
    if part is not None and part.drifted:
        yield "drifted"
    if partners := [added.part for added in of.added if added.because == row.part]:
        yield f"with {', '.join(partners)}"


def _saved_line(head: str, row: SavedOverride, width: int) -> Line:
    head = cut(head, width)
    room = width - cells(head) - len(GAP)
    text = "" if row.replacement is None or room < LEAST_TEXT else GAP + cut(one_line(row.replacement), room)
    return Line.of(head, Span(text, Style.FAINT))


def _without_effect(part: str, there: Mapping[str, SavedOverride], change: Change, was: Part | None) -> str | None:
    saved = there.get(part)
    if part in change.include:
        if saved is not None:
            return None
        if was is not None and was.paired and was.paired_with:
            return f"{part} has no override of its own: it is left out with {was.paired_with}. Include that one."
        return f"{part} has no override: there is nothing to take back."
    if saved is None:
        return None
    if part in change.replace:
        same = saved.replacement == change.replace[part]
        return f"{part} is replaced by this text already." if same else None
    return f"{part} is excluded already." if saved.action == "exclude" else None


def _of_the_rest(one: Saved, change: Change, old: Mapping[str, Part]) -> Iterator[str]:
    """Of a set that is put: parts that wait, and others of it whose text has changed since."""
    now = one.now
    for part in now.stale:
        if part in change.parts:
            near = alike(part, old)
            meant = f" Alike: {', '.join(near)}." if near else ""
            yield f"{part} is not in the context now, so nothing changes: its override waits until it is.{meant}"
    for row in now.overrides:
        was = old.get(row.part)
        if row.part not in change.parts and was is not None and was.drifted:
            yield f"{row.part} has changed since its override was saved: look at it."


def alike(part: str, there: Iterable[str]) -> list[str]:
    """Ids of the same kind whose name may be meant; messages have numbers, which all look alike."""
    kind = part.partition(":")[0] + ":"
    if level_of(part) is not Level.AGENT:
        return []
    names = [id.removeprefix(kind) for id in there if id.startswith(kind)]
    return [kind + name for name in get_close_matches(part.removeprefix(kind), names, MOST_ALIKE)]


def _words(part: Part) -> tuple[str, str, Style]:
    if part.paired:
        return "[ ]", f"left out with {one_line(part.paired_with or 'its partner')}", Style.CHANGED
    if not part.included:
        return "[ ]", "excluded", Style.CHANGED
    if part.override == "replace":
        was = "" if part.tokens_original is None else f", {number(part.tokens_original)} before"
        return "[~]", f"replaced{was}", Style.CHANGED
    return ("[x]", "included", Style.PLAIN) if part.sent else ("[!]", "included, not sent", Style.FAULT)


def effect(before: int, after: int) -> str:
    """What overrides cost or save."""
    if before == after:
        return f"{number(after)} tokens, as before"
    change = f"{number(before - after)} saved" if after < before else f"{number(after - before)} more"
    return f"{number(before)} → {number(after)} tokens, {change}"


def _count(many: int, thing: str) -> str:
    return f"{number(many)} {thing}{'s' * (many != 1)}"


def _state(part: Part | None) -> tuple[object, ...] | None:
    return None if part is None else (part.included, part.override, part.paired, part.tokens, part.paired_with)


def _parts(snapshot: Snapshot) -> Iterator[Part]:
    for group in GROUPS:
        yield from snapshot.parts(group)


def _by_id(snapshot: Snapshot) -> dict[str, Part]:
    return {part.id: part for part in _parts(snapshot)}
