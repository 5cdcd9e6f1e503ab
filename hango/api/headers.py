"""The headers that routes take and give, as the documents describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STRING: Mapping[str, Any] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a request or of an answer."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: STRING)


LOCATION = Header("Location", "Where the new thing is.")
RETRY_AFTER = Header("Retry-After", "Seconds after which to ask again.", {"type": "integer"})
PREFER = Header(
    "Prefer", "`wait=N` (RFC 7240): answer when the work has ended, or after N seconds, at most HANGO_LONG_WAIT_MAX."
)
PREFERENCE_APPLIED = Header("Preference-Applied", "`wait=N`: the work ended within the wait that was asked for.")
IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    "A text of your own, such as a new UUID: for 24 hours the same key and body give the same thing again.",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
)
ETAG = Header("ETag", "A strong tag of the stored set.")
IF_MATCH = Header("If-Match", "The ETag of the set that was read: the change is done only when it still holds.")
