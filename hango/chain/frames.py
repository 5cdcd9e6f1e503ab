"""Frames: what of a snapshot does not depend on the stretch of messages that is shown, kept per process.

Everything a frame is worked out from is append-only or versioned, and its key names all of it, so a kept frame is never
out of date. With one, a page of a long session costs the page and not the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from hango.chain import snapshot
from hango.chain.draft import Draft
from hango.chain.estimator import MESSAGE_OVERHEAD, scaled
from hango.chain.snapshot import Part, Snapshot
from hango.chain.window import Window
from hango.digests import MessageDigest
from hango.store.context_bases import CurrentBase

# A frame is some kilobytes, and more where a history has many faults.
MAX_FRAMES = 64

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The snapshot without messages, and what is particular about some of them.

    `odd` holds the parts that are not simply their digest: the summary, and messages of which not every block is sent.
    """

    head: Snapshot
    counts: tuple[int, int, int]  # of system, tool and message parts
    factor: float
    odd: Mapping[int, Part]  # by seq
    first_seq: int  # of the persisted messages that are not under the summary
    last_seq: int


def key_of(base: CurrentBase) -> Key:
    """All that the next request is made of, by id."""
    return (
        base.session_id,
        base.agent_version_id,
        base.through_seq,
        base.summary.id if base.summary else None,
        base.override_key,
        *(file.version_id for file in base.files),
    )


def frame_of(whole: Snapshot, draft: Draft, factor: float) -> Frame:
    """The frame of a whole snapshot."""
    odd = {
        item.seq: part
        for item, part in zip(draft.messages, whole.messages, strict=True)
        if item.seq <= 0 or not part.sent or part.override != "none" or part.tokens != _tokens(item, factor)
    }
    first = next((item.seq for item in draft.messages if item.seq > 0), 1)
    head = replace(whole, messages=[])
    counts = (len(whole.system), len(whole.tools), len(whole.messages))
    return Frame(head, counts, factor, odd, first, draft.messages[-1].seq if draft.messages else 0)


def stretch(frame: Frame, window: Window) -> tuple[int, int]:
    """The persisted messages of a window: after the first seq, through the second."""
    shows_summary = 0 in frame.odd and window.after is None
    after = max(window.after or 0, frame.first_seq - 1)
    count = (window.limit or 0) - shows_summary
    return after, min(after + count, frame.last_seq)


def fill(frame: Frame, window: Window, items: Sequence[MessageDigest]) -> Snapshot:
    """The snapshot of a window from its frame and the digests of the stretch."""
    parts = [frame.odd.get(item.seq) or snapshot.message_part_of(item, _tokens(item, frame.factor)) for item in items]
    if 0 in frame.odd and window.after is None:
        parts.insert(0, frame.odd[0])
    last = items[-1].seq if items else 0  # the summary alone
    made = replace(frame.head, messages=parts, next_after=last if parts and last < frame.last_seq else None)
    if not window.shows("system"):
        made.system, made.tools = [], []
    return made


def _tokens(item: MessageDigest, factor: float) -> int:
    return scaled(item.tokens + MESSAGE_OVERHEAD, factor)
