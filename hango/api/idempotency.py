"""`Idempotency-Key`: which request a POST is, so that a repeated one starts nothing twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from hango.api.endpoint import Call
from hango.errors import Invalid, Reason

HEADER = "idempotency-key"
_KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request with a key. `request_hash` is over what it asks for and where."""

    key: str
    request_hash: bytes


def read(call: Call[Any, Any]) -> Repeatable | None:
    """None without the header. Raises Invalid (`bad_field`) for a key that is none."""
    keys = call.request.headers.getlist(HEADER)
    if not keys:
        return None
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        message = "An Idempotency-Key is one text of 1 to 255 printable ASCII characters, such as a new UUID."
        raise Invalid.because(Reason.BAD_FIELD, message)
    body = "" if call.body is None else call.body.model_dump_json(fallback=_as_it_came)
    asked = f"{call.request.method} {call.request.url.path}\n{body}"
    return Repeatable(keys[0], sha256(asked.encode()).digest())


def _as_it_came(value: msgspec.Raw) -> str:
    """A field that is kept as the bytes that came."""
    return bytes(value).decode()
