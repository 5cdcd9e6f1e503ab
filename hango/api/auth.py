"""Bearer key to Principal. One answer and the same work for every key that does not open."""

from __future__ import annotations

import hmac
import re
from hashlib import sha256

from hango.domain import Principal
from hango.errors import Unauthenticated
from hango.store import system
from hango.store.connection import Store

_BEARER = re.compile(r"(?i:bearer) +hango_([a-z0-9]{8})_([A-Za-z0-9_-]{43})", re.ASCII)
# Compared where there is no key to compare with, so that an unknown id costs what a wrong secret costs.
_NOBODY = bytes(32)


async def authenticate(store: Store, header: str | None) -> Principal:
    """Raises Unauthenticated for a missing, unknown, wrong or revoked key, and for a disabled user, all alike."""
    match = _BEARER.fullmatch(header or "")
    key_id, secret = match.groups() if match else ("", "")
    async with store.system() as scope:
        found = await system.principal_for_key(scope, key_id)
    principal, expected = found if found else (None, _NOBODY)
    equal = hmac.compare_digest(sha256(secret.encode()).digest(), expected)
    if principal is None or not equal:
        raise Unauthenticated
    return principal
