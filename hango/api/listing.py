"""One page of a list, as every list route answers it."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class Listing(msgspec.Struct, Generic[Item], frozen=True):
    """`next_cursor` is null on the last page."""

    data: list[Item]
    next_cursor: str | None
