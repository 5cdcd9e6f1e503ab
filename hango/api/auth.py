"""Bearer key to Principal. One answer and the same work for every key that does not open."""

from __future__ import annotations

import hmac
import re

from hango.domain import Principal
from hango.errors import Unauthenticated
from hango.store import api_keys, system
from hango.store.api_keys import KeyText
from hango.store.connection import Store

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(\S{1,200})", re.ASCII)
# Looked up and compared where there is no key, so that every refusal costs what a wrong secret costs.
_NO_KEY = KeyText("", "")
_NO_HASH = bytes(32)


async def authenticate(store: Store, header: str | None) -> Principal:
    """Raises Unauthenticated for a missing, unknown, wrong or revoked key, and for a disabled user, all alike."""
    match = _BEARER.fullmatch(header or "")
    key = (api_keys.parse_key(match[1]) if match else None) or _NO_KEY
    async with store.system() as scope:
        found = await system.principal_for_key(scope, key.prefix)
    principal, expected = found or (None, _NO_HASH)
    equal = hmac.compare_digest(key.secret_hash, expected)
    if principal is None or not equal:
        raise Unauthenticated
    return principal
