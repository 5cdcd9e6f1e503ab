"""New ids: UUIDv7, so that newer ones sort after older ones and indexes grow at their end."""

from __future__ import annotations

from uuid import UUID

from uuid_utils import compat


def new_id() -> UUID:
    return compat.uuid7()
