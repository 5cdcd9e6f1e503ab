"""API keys: a member sees the own ones, an admin the tenant's; a secret is shown once."""

from __future__ import annotations

from uuid import UUID

import msgspec

from hango.api.authz import is_admin
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import Body, IdText, Moment, Name, PageQuery, parse_id
from hango.api.listing import Listing
from hango.domain import ApiKey, AuditAction, UserID
from hango.errors import Conflict, NotFound
from hango.store import api_keys, audit, users


class KeyIn(Body):
    """`user_id`: for whom; admins only."""

    name: Name
    user_id: IdText | None = None


class KeyOut(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    user_id: UUID
    created_at: Moment


class NewKeyOut(msgspec.Struct, frozen=True):
    """`key` is shown here and never again."""

    id: UUID
    name: str
    user_id: UUID
    key: str
    created_at: Moment


async def list_keys(call: Call[None, None, PageQuery]) -> Listing[KeyOut]:
    whose = None if is_admin(call.principal) else call.principal.user_id
    async with call.deps.store.read(call.principal) as scope:
        page = await api_keys.list_all(scope, user_id=whose, limit=call.query.limit, cursor=call.query.cursor)
    return Listing([KeyOut(key.id, key.name, key.user_id, key.created_at) for key in page.data], page.next_cursor)


async def create_key(call: Call[None, KeyIn]) -> Reply[NewKeyOut]:
    own = call.principal.user_id
    user_id = UserID(parse_id(call.body.user_id)) if call.body.user_id is not None else own
    if user_id != own and not is_admin(call.principal):
        raise NotFound
    async with call.deps.store.begin(call.principal) as scope:
        user = await users.get(scope, user_id)
        if user is None:
            raise NotFound
        if user.disabled:
            raise Conflict("The user is disabled. Enable the user first, then make a key.")
        key, text = await api_keys.create(scope, user_id, call.body.name)
        await audit.record(scope, AuditAction.KEY_CREATE, "api_key", key.id, {"user_id": str(user_id)})
    return created(f"/v1/api-keys/{key.id}", NewKeyOut(key.id, key.name, key.user_id, text, key.created_at))


async def revoke_key(call: Call[ApiKey, None]) -> None:
    async with call.deps.store.begin(call.principal) as scope:
        if not await api_keys.revoke(scope, call.target.id):
            raise NotFound
        await audit.record(scope, AuditAction.KEY_REVOKE, "api_key", call.target.id, {})
