"""Two contexts compared: which parts came, went and changed, and where the cached prefix broke. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from hango.chain.context import Drafted, estimated_snapshot
from hango.chain.draft import Draft
from hango.chain.estimator import tool_text
from hango.chain.parts import message_part, message_seq
from hango.chain.request_hash import text_sha256
from hango.chain.snapshot import Part
from hango.domain import PartID


class CacheBreak(StrEnum):
    """Why what a provider had cached of one call could not be read by the other."""

    MODEL = "model"  # a cache is of one model
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    PARAMS = "params"  # of thinking or of the choice of tools, which a cache of messages hangs on


@dataclass(frozen=True, slots=True)
class Changed:
    part: str
    before: Part
    after: Part


@dataclass(frozen=True, slots=True)
class ContextDiff:
    """From one call to another. `cache_broken_at` is the first part that differs, None when the later goes on from the
    earlier."""

    added: tuple[Part, ...]
    removed: tuple[Part, ...]
    changed: tuple[Changed, ...]
    tokens_before: int
    tokens_after: int
    cache_broken_at: str | None
    cache_reason: CacheBreak | None


def diff(before: Drafted, after: Drafted) -> ContextDiff:
    """What changed between two calls, of what was sent."""
    old, new = estimated_snapshot(before), estimated_snapshot(after)
    old_parts, new_parts = (
        _sent([*old.tools, *old.system, *old.messages]),
        _sent([*new.tools, *new.system, *new.messages]),
    )
    old_texts, new_texts = _texts(before.draft), _texts(after.draft)
    changed = [
        Changed(id, old_parts[id], part)
        for id, part in new_parts.items()
        if id in old_parts and old_texts.get(id) != new_texts.get(id)
    ]
    at, reason = _break(before, after, old_texts, new_texts)
    return ContextDiff(
        added=tuple(part for id, part in new_parts.items() if id not in old_parts),
        removed=tuple(part for id, part in old_parts.items() if id not in new_parts),
        changed=tuple(changed),
        tokens_before=old.total_after,
        tokens_after=new.total_after,
        cache_broken_at=at,
        cache_reason=reason,
    )


def _sent(parts: Sequence[Part]) -> dict[str, Part]:
    return {part.id: part for part in parts if part.sent}


def _texts(draft: Draft) -> dict[str, str]:
    """What is sent of each part, as a hash, in the order in which providers read and cache: tools, system, messages."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    found = {str(item.part): text_sha256(tool_text(item.value)) for item in draft.kept_tools()}
    found |= {str(part): text_sha256(text) for part, text in draft.kept_system()}
    for at, item in enumerate(draft.kept_messages()):
        if at not in draft.repair.unsent:
            found[str(message_part(item.seq))] = item.sha256
    return found


def _break(
    before: Drafted, after: Drafted, old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[str | None, CacheBreak | None]:
    """The first place where the later call is no continuation of the earlier one."""
    if before.state.agent.model != after.state.agent.model:
        return next(iter(new), None), CacheBreak.MODEL
    at, reason = _break_of_parts(old, new)
    if _params(before) != _params(after) and (at is None or message_seq(PartID(at)) is not None):
        # Source: Anthropic, "Prompt caching": what invalidates the cache.
        return next((part for part in new if message_seq(PartID(part)) is not None), None), CacheBreak.PARAMS
    return at, reason


def _params(drafted: Drafted) -> tuple[Any, Any]:
    params = drafted.state.agent.params
    return params.get("thinking"), params.get("tool_choice")


def _break_of_parts(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str | None, CacheBreak | None]:
    for was, now in zip_longest(old, new):
        if was is None:
            return None, None  # all of the earlier call is there
        if was == now:
            if old[was] != new[now]:
                return was, CacheBreak.CHANGED
        elif was in new:
            return now, CacheBreak.ADDED
        else:
            return was, CacheBreak.REMOVED
    return None, None
