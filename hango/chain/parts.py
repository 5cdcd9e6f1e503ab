"""Part ids: made and read in one place; labels and previews of parts.

`system:<contributor>`, `system:memory:<path>`, `tool:<name>`, `message:<seq>`, `summary`, and `extra`, the text of a
try or preview. A part id is a key into an assembled request; it is never opened as a path.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from hango.domain import PartID
from hango.errors import Invalid, Reason

PREVIEW_CHARS = 200  # code points, nothing added
SHOWN_CHARS = 80  # of what is no part id, in the sentence that says so
MAX_NAME = 1100  # a memory path of 1,024 characters with its prefix
MAX_NAME_BYTES = 2200  # the same in UTF-8; what is saved is a key of an index, which takes 2,700
MAX_SEQ = 2**63 - 1  # Postgres bigint

SUMMARY = PartID("summary")
EXTRA = PartID("extra")

_SEQ = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_CONTRIBUTOR = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
# Controls, formats (bidirectional marks among them), surrogates, line and paragraph separators.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class PartKind(StrEnum):
    SYSTEM = "system"
    TOOL = "tool"
    MESSAGE = "message"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ParsedPart:
    """A well-formed part id, taken apart; `seq` only for messages."""

    id: PartID
    kind: PartKind
    name: str = ""
    seq: int | None = None


def system_part(contributor: str) -> PartID:
    return PartID(f"system:{contributor}")


def memory_part(path: str) -> PartID:
    return PartID(f"system:memory:{path}")


def tool_part(name: str) -> PartID:
    return PartID(f"tool:{name}")


def message_part(seq: int) -> PartID:
    """The part of a history item; 0 is the summary, -1 the extra text (see `draft.py`)."""
    if seq > 0:
        return PartID(f"message:{seq}")
    return SUMMARY if seq == 0 else EXTRA


def message_seq(part: PartID) -> int | None:
    """The number of a history's item, as in `message_part`; None for system and tool parts."""
    if part.startswith("message:"):
        return int(part[8:])
    return {SUMMARY: 0, EXTRA: -1}.get(part)


def parse(text: str) -> ParsedPart:
    """Take a part id apart. Raises Invalid (`bad_part_id`) when it is not well formed."""
    kind, colon, name = text.partition(":")
    if text == SUMMARY:
        return ParsedPart(SUMMARY, PartKind.SUMMARY)
    if colon and kind == "message" and _SEQ.fullmatch(name) and int(name) <= MAX_SEQ:
        return ParsedPart(PartID(text), PartKind.MESSAGE, name, int(name))
    if colon and kind == "system" and _is_contributor(name):
        return ParsedPart(PartID(text), PartKind.SYSTEM, name)
    if colon and kind == "tool" and _is_name(name):
        return ParsedPart(PartID(text), PartKind.TOOL, name)
    raise Invalid.because(
        Reason.BAD_PART_ID,
        f"'{_shown(text)}' is no part id: one is system:<name>, system:memory:<path>, tool:<name>, message:<number>"
        " or summary.",
        part=text[:200] if _is_name(text[:200]) else None,
    )


def label(kind: PartKind, name: str, seq: int = 0, role: str = "") -> str:
    """What a person reads: the contributor or memory path, the tool's name, `#seq role`."""
    if kind is PartKind.MESSAGE:
        return f"#{seq} {role}" if seq > 0 else "extra text"
    if kind is PartKind.SUMMARY:
        return "summary"
    return name.removeprefix("memory:")


def preview(text: str) -> str:
    """The first 200 code points."""
    return text[:PREVIEW_CHARS]


def _shown(text: str) -> str:
    """Its beginning, without what a terminal would obey."""
    more = "…" if len(text) > SHOWN_CHARS else ""
    return (
        "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text[:SHOWN_CHARS])
        + more
    )


def _is_contributor(name: str) -> bool:
    if name.startswith("memory:"):
        return name.startswith("memory:/") and _is_name(name)
    return _CONTRIBUTOR.fullmatch(name) is not None


def _is_name(name: str) -> bool:
    if not 0 < len(name) <= MAX_NAME:
        return False
    if name.isascii():
        return name.isprintable()
    # Halves of surrogate pairs go by their category: they cannot be encoded.
    return (
        not any(unicodedata.category(letter) in _REFUSED_CATEGORIES for letter in name)
        and len(name.encode()) <= MAX_NAME_BYTES
    )
