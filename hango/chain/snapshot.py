"""The snapshot: a draft as its readers get it. Tokens are estimates unless counted by a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hango.chain.draft import EXTRA_SEQ, Draft, Mark, Sourced, Stale
from hango.chain.parts import PREVIEW_CHARS, PartKind, label, message_part, message_seq
from hango.chain.size import GroupSize
from hango.digests import MessageDigest
from hango.domain import PartID
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
    calibrated_from: int  # billed calls of the tenant from which the model's estimates were learnt
    problems: list[Problem]
    stale: list[StaleOverride]
    request_sha256: str
    next_after: int | UnsetType | None = UNSET


def system_parts(draft: Draft, sizes: GroupSize) -> list[Part]:
    kept = {part for part, _ in draft.kept_system()}
    cached = draft.breakpoint is not None and draft.breakpoint.startswith("system:")
    made = []
    for at, item in enumerate(draft.system):
        text = draft.mark(item.part).replacement or item.value
        sent = item.part in kept
        made.append(_part_of(item.part, PartKind.SYSTEM, text, sizes.parts[at], sent=sent, cached=sent and cached))
    return _noted(made, draft, draft.system, sizes)


def tool_parts(draft: Draft, sizes: GroupSize) -> list[Part]:
    kept = {item.part for item in draft.kept_tools()}
    cached = draft.breakpoint is not None
    made = []
    for at, item in enumerate(draft.tools):
        text, sent = tool_shown(item.value), item.part in kept
        made.append(_part_of(item.part, PartKind.TOOL, text, sizes.parts[at], sent=sent, cached=sent and cached))
    return _noted(made, draft, draft.tools, sizes)


def tool_shown(tool: ToolSpec) -> str:
    """What a list shows of a tool: what it is for."""
    return tool.description or tool.definition or tool.input_schema


def message_parts(draft: Draft, sizes: GroupSize, start: int = 0, stop: int | None = None) -> list[Part]:
    """Parts of the history's items from `start` to `stop` (indexes)."""
    assert draft.repair is not None
    items = draft.messages[start:stop]
    tokens = sizes.parts[start:stop]
    made = list(map(message_part_of, items, tokens))
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


def _part_of(part: PartID, kind: PartKind, text: str, tokens: int, *, sent: bool, cached: bool) -> Part:
    """A system block or a tool that nothing has touched.

    `cached`: providers read tools, then system, and cache up to the mark, which stands on the last block that is sent.
    """
    name = label(kind, part.partition(":")[2])
    return Part(
        part, kind.value, name, text[:PREVIEW_CHARS], tokens, True, sent, "none",
        cached, False, False, len(text),
    )  # fmt: skip


def _noted(parts: list[Part], draft: Draft, items: Sequence[Sourced[Any]], sizes: GroupSize) -> list[Part]:
    for at, part in enumerate(parts) if draft.marks else ():
        _note(part, draft.mark(items[at].part))
        part.tokens_original = sizes.originals.get(at, UNSET)
    return parts
