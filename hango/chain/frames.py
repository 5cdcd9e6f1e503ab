"""Frames: what of a snapshot does not depend on the stretch of messages that is shown, kept per process.

Everything a frame is worked out from is append-only or versioned, and its key names all of it, so a kept frame is never
out of date. With one, an inspect costs no more than reading the messages that it shows.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Encoder
from msgspec.structs import replace

from hango.chain import snapshot
from hango.chain.draft import Draft
from hango.chain.measure import plain_tokens
from hango.chain.size import Size
from hango.chain.snapshot import Part, Snapshot
from hango.chain.window import Window
from hango.digests import MessageDigest
from hango.store.context_bases import CurrentBase

LONG = 16_384  # messages of a stretch whose parts are written piece by piece
PIECE = 1024

# A frame is some kilobytes, and more where a history has many faults.
MAX_FRAMES = 64

Key = tuple[Any, ...]

_encoder = Encoder()


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


def key_of(base: CurrentBase, factor: float | None) -> Key:
    """All that the next request is made of, by id, and the factor that was learnt for its model."""
    return (
        factor,
        base.session_id,
        base.agent_version_id,
        base.through_seq,
        base.summary.id if base.summary else None,
        base.override_key,
        *(file.version_id for file in base.files),
    )


def frame_of(head: Snapshot, draft: Draft, factor: float) -> Frame:
    """The frame of a draft; `head` is its snapshot with all system blocks and tools."""
    assert draft.size is not None, "the summarization slot sets the sizes"
    counts = (len(head.system), len(head.tools), len(draft.messages))
    first = next((item.seq for item in draft.messages if item.seq > 0), 1)
    last = draft.messages[-1].seq if draft.messages else 0
    return Frame(replace(head, messages=[]), counts, factor, _odd(draft, draft.size, factor), first, last)


def _odd(draft: Draft, size: Size, factor: float) -> dict[int, Part]:
    """The parts that are not simply their digest, by seq."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    touched = draft.marks or draft.repair.tokens or draft.repair.unsent
    # Without that only the summary is odd, and it comes first.
    shown = draft.messages if touched else draft.messages[:1]
    parts = snapshot.message_parts(draft, size.messages, 0, len(shown))
    return {
        item.seq: part
        for item, part, tokens in zip(shown, parts, plain_tokens(shown, factor), strict=True)
        if item.seq <= 0 or not part.sent or part.override != "none" or part.tokens != tokens
    }


def calibrated(frame: Frame, calls: int) -> Frame:
    """The same frame after more calls that taught no other factor."""
    return dataclasses.replace(frame, head=replace(frame.head, calibrated_from=calls))


def stretch(frame: Frame, window: Window) -> tuple[int, int]:
    """The persisted messages of a window: after the first seq, through the second."""
    after = max(window.after or 0, frame.first_seq - 1)
    if not window.shows("messages"):
        return after, after
    if window.limit is None:
        return after, frame.last_seq
    shows_summary = 0 in frame.odd and window.after is None
    return after, min(after + window.limit - shows_summary, frame.last_seq)


def fill(frame: Frame, window: Window, items: list[MessageDigest]) -> Snapshot:
    """The snapshot of a window from its frame and the digests of the stretch.

    Of a long stretch the parts are JSON text already, and `items` is empty afterwards: a snapshot of 100,000 messages
    and what it is made from are never in memory together.
    """
    last = items[-1].seq if items else 0
    parts = _parts(frame, items) if len(items) <= LONG else _written(frame, items)
    if 0 in frame.odd and window.after is None and window.shows("messages"):
        parts.insert(0, frame.odd[0])
    made = replace(frame.head, messages=parts, next_after=_next_after(frame, window, last if parts else None))
    if not window.shows("system"):
        made.system = []
    if not window.shows("tools"):
        made.tools = []
    return made


def _parts(frame: Frame, items: Sequence[MessageDigest]) -> list[Part]:
    parts = list(map(snapshot.message_part_of, items, plain_tokens(items, frame.factor)))
    if items and frame.odd:
        first, last = items[0].seq, items[-1].seq  # seqs have no gaps
        for seq, part in frame.odd.items():
            if first <= seq <= last:
                parts[seq - first] = part
    return parts


def _written(frame: Frame, items: list[MessageDigest]) -> list[Part]:
    """The parts as JSON text, many to a piece, which stands in the reply's list as it is. Takes `items` apart."""
    pieces: list[bytes] = []
    buffer = bytearray()
    items.reverse()  # what is done with goes from the end
    while items:
        piece = [items.pop() for _ in range(min(PIECE, len(items)))]
        _encoder.encode_into(_parts(frame, piece), buffer)
        pieces.append(bytes(memoryview(buffer)[1:-1]))
    # A small object that stays, made among those that go, keeps a megabyte of their memory in use. So the pieces are
    # dressed now, and the interpreter lets go of the lists that it holds for the next use.
    gc.collect()
    return cast("list[Part]", list(map(Raw, pieces)))


def _next_after(frame: Frame, window: Window, last: int | None) -> int | UnsetType | None:
    if window.limit is None:
        return UNSET
    return last if last is not None and last < frame.last_seq else None
