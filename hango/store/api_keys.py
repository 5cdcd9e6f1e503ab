"""API keys: `hango_<8 characters shown>_<43 characters secret>`. Of the secret only a SHA-256 is kept."""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from hango.domain import ApiKey, KeyID, UserID
from hango.errors import NotFound
from hango.store.connection import Scope
from hango.store.db import api_keys as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page

_FORM = re.compile(r"hango_([a-z0-9]{8})_([A-Za-z0-9_-]{43})", re.ASCII)
_PREFIX_LETTERS = string.ascii_lowercase + string.digits
_SECRET_BYTES = 32  # 43 characters of base64


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as its owner has it, apart into its shown half and its secret. `repr` shows no secret."""

    prefix: str
    secret: str

    def __repr__(self) -> str:
        return f"KeyText({self.prefix!r}, ***)"

    def __str__(self) -> str:
        return f"hango_{self.prefix}_***"

    def reveal(self) -> str:
        """The whole key: shown to its owner once."""
        return f"hango_{self.prefix}_{self.secret}"

    @property
    def secret_hash(self) -> bytes:
        # No slow hash: the secret is 256 random bits, which nobody can try out.
        return sha256(self.secret.encode()).digest()


def make_key() -> KeyText:
    prefix = "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(8))
    return KeyText(prefix, secrets.token_urlsafe(_SECRET_BYTES))


def parse_key(text: str) -> KeyText | None:
    """None for text that is not of a key's form."""
    match = _FORM.fullmatch(text)
    return KeyText(match[1], match[2]) if match else None


async def get(scope: Scope, key_id: UUID) -> ApiKey | None:
    """A key that is not revoked."""
    row = await rows.get_api_key(scope.conn, tenant_id=scope.tenant_id, id=key_id)
    return _api_key(row) if row else None


async def list_all(
    scope: Scope, user_id: UUID | None = None, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Page[ApiKey]:
    """Keys that are not revoked, of one user or (None) of all, the newest first."""
    found = await rows.list_api_keys(
        scope.conn, tenant_id=scope.tenant_id, user_id=user_id, before=id_of(cursor), most=limit + 1
    )
    return page(found, limit, _api_key, lambda key: key.id)


async def create(scope: Scope, user_id: UUID, name: str) -> tuple[ApiKey, str]:
    """A new key and its text, which cannot be had again. Raises NotFound when there is no such user."""
    text = make_key()
    row = await rows.create_api_key(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=new_id(),
        user_id=user_id,
        name=name,
        prefix=text.prefix,
        secret_hash=text.secret_hash,
    )
    if row is None:
        raise NotFound
    return _api_key(row), text.reveal()


async def revoke(scope: Scope, key_id: UUID) -> bool:
    """From the commit on the key opens nothing. False when there is no such key, or it is revoked already."""
    return await rows.revoke_api_key(scope.conn, tenant_id=scope.tenant_id, id=key_id) == 1


def _api_key(row: rows.GetApiKeyRow | rows.ListApiKeysRow | rows.CreateApiKeyRow) -> ApiKey:
    return ApiKey(KeyID(row.id), row.name, UserID(row.user_id), row.created_at)
