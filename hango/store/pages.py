"""Lists in pages: the cursor is the sort key of the last item, opaque to callers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from hango import jsontext
from hango.errors import Invalid, Reason

T = TypeVar("T")
Row = TypeVar("Row")

DEFAULT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page; `next_cursor` is None on the last."""

    data: tuple[T, ...]
    next_cursor: str | None


def page(rows: Sequence[Row], limit: int, made: Callable[[Row], T], key: Callable[[T], object]) -> Page[T]:
    """The page of `limit` items out of rows read with a limit of one more."""
    data = tuple(made(row) for row in rows[:limit])
    return Page(data, _encoded(str(key(data[-1]))) if len(rows) > limit else None)


def id_of(cursor: str | None) -> UUID | None:
    """The id in a cursor. Raises Invalid (`bad_field`) for text that no list gave."""
    text = text_of(cursor)
    if text is None:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise _not_a_cursor() from None


def number_of(cursor: str | None) -> int:
    """The number in a cursor, 0 for none. Raises Invalid (`bad_field`) for text that no list gave."""
    text = text_of(cursor)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _not_a_cursor()
    return int(text)


def text_of(cursor: str | None) -> str | None:
    """The text in a cursor. Raises Invalid (`bad_field`) for text that no list gave."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (UnicodeError, binascii.Error):
        raise _not_a_cursor() from None
    if not jsontext.is_text(text):
        raise _not_a_cursor()
    return text


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _not_a_cursor() -> Invalid:
    return Invalid.because(
        Reason.BAD_FIELD, "The cursor is not one that this list gave: leave it out to start at the beginning."
    )
