"""The snapshot: a draft as its readers get it. Tokens are estimates unless counted by a provider."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hango.chain.draft import EXTRA_SEQ, Draft, Mark, Sourced, Stale
from hango.chain.parts import PREVIEW_CHARS, PartKind, label, message_part, message_seq
from hango.chain.size import GroupSize
from hango.domain import MessageDigest, PartID
from hango.errors import Detail
from hango.messages import ToolSpec


class Part(msgspec.Struct, gc=False):
    """One part of the request. `tokens` are of what would be sent were it included."""

    id: str
    kind: str
    label: str
    preview: str  # the first 200 code points
    tokens: int
    included: bool
    sent: bool
    override: str
    cached_prefix: bool
    paired: bool
    drifted: bool
    chars: int
    role: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    tokens_original: int | UnsetType = UNSET
    paired_with: str | UnsetType = UNSET  # the named part with which a partner leaves


class Group(msgspec.Struct):
    before: int
    after: int


class Groups(msgspec.Struct):
    system: Group
    tools: Group
    messages: Group


class Problem(msgspec.Struct, omit_defaults=True):
    reason: str
    message: str
    part: str | None = None


class StaleOverride(msgspec.Struct):
    part: str
    action: str
    scope: str
    reason: str
    stale: bool = True


class Snapshot(msgspec.Struct):
    session_id: str
    agent_id: str
    model: str
    provider: str
    system: list[Part]
    tools: list[Part]
    messages: list[Part]
    groups: Groups
    total_before: int
    total_after: int
    counted: str  # "provider" or "estimate"
    estimate_before: int
    estimate_after: int
    would_compact: bool
    compact_at: int | None
    window: int
    problems: list[Problem]
    stale: list[StaleOverride]
    request_sha256: str
    next_after: int | UnsetType | None = UNSET


def system_parts(draft: Draft, sizes: GroupSize) -> list[Part]:
    kept = {part for part, _ in draft.kept_system()}
    made = []
    for at, item in enumerate(draft.system):
        text = draft.mark(item.part).replacement or item.value
        made.append(_part(draft, item, sizes, at, text=text, kept=item.part in kept))
    return made


def tool_parts(draft: Draft, sizes: GroupSize) -> list[Part]:
    kept = {item.part for item in draft.kept_tools()}
    return [
        _part(draft, item, sizes, at, text=tool_shown(item.value), kept=item.part in kept)
        for at, item in enumerate(draft.tools)
    ]


def tool_shown(tool: ToolSpec) -> str:
    """What a list shows of a tool: what it is for."""
    return tool.description or tool.definition or tool.input_schema


def message_parts(draft: Draft, sizes: GroupSize, start: int = 0, stop: int | None = None) -> list[Part]:
    """Parts of the history's items from `start` to `stop` (indexes)."""
    assert draft.repair is not None
    items = draft.messages[start:stop]
    tokens = sizes.parts[start:stop]
    made = [message_part_of(item, count) for item, count in zip(items, tokens, strict=True)]
    if items and items[0].seq <= 0:
        _name_special(made[0], items[0].seq)
    if items and items[-1].seq == EXTRA_SEQ:
        _name_special(made[-1], EXTRA_SEQ)
    kept = draft.kept_messages()
    unsent = {kept[at].seq for at in draft.repair.unsent}
    touched = unsent.union(seq for part in draft.marks if (seq := message_seq(part)) is not None)
    for i, part in enumerate(made, start) if touched else ():
        seq = draft.messages[i].seq
        if seq in touched:
            mark = draft.mark(message_part(seq))
            part.sent = not mark.excluded and seq not in unsent
            _note(part, mark)
            if i in sizes.originals:
                part.tokens_original = sizes.originals[i]
    return made


def _note(part: Part, mark: Mark) -> None:
    part.included = not mark.excluded
    part.paired = mark.paired
    part.drifted = mark.drifted
    part.override = mark.override.action.value if mark.override else "none"
    part.paired_with = mark.because or UNSET


def message_part_of(item: MessageDigest, tokens: int) -> Part:
    """The part of a message that nothing has touched."""
    seq, role = item.seq, item.role
    # By place: this is the one line of an inspect that runs once a message.
    return Part(
        f"message:{seq}", "message", f"#{seq} {role}", item.preview, tokens, True, True, "none",
        False, False, False, item.chars, role, seq,
    )  # fmt: skip


def problem(detail: Detail) -> Problem:
    return Problem(detail.reason.value, detail.message, detail.part)


def stale_override(stale: Stale) -> StaleOverride:
    return StaleOverride(stale.override.part, stale.override.action.value, stale.scope, stale.reason.value)


def _name_special(part: Part, seq: int) -> None:
    part.id = message_part(seq)
    part.kind = PartKind.SUMMARY if part.id == "summary" else PartKind.MESSAGE
    part.label = label(PartKind(part.kind), "", seq)
    part.seq = UNSET


def _part(draft: Draft, item: Sourced[Any], sizes: GroupSize, at: int, *, text: str, kept: bool) -> Part:
    kind = PartKind(item.part.partition(":")[0])
    mark = draft.mark(item.part)
    return Part(
        id=item.part,
        kind=kind.value,
        label=label(kind, item.part.partition(":")[2]),
        preview=text[:PREVIEW_CHARS],
        tokens=sizes.parts[at],
        included=not mark.excluded,
        sent=kept,
        override=mark.override.action.value if mark.override else "none",
        cached_prefix=kept and _is_cached(draft, item.part, kind),
        paired=mark.paired,
        drifted=mark.drifted,
        chars=len(text),
        tokens_original=sizes.originals.get(at, UNSET),
    )


def _is_cached(draft: Draft, part: PartID, kind: PartKind) -> bool:
    # The mark stands on the last block that is sent, so all that is sent of tools and system is before it.
    if draft.breakpoint is None:
        return False
    return kind is PartKind.TOOL or draft.breakpoint.startswith("system:")
