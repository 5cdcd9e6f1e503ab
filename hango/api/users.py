"""Users of the tenant, for its admins. The last admin stays one."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from hango.api.endpoint import Call, Reply, created
from hango.api.fields import Body, Moment, Name, PageQuery, Patch
from hango.api.listing import Listing
from hango.domain import AuditAction, Role, User
from hango.errors import NotFound
from hango.store import audit, users


class UserIn(Body):
    """A new user; a key for them is made apart."""

    name: Name
    role: Literal["admin", "member"]


class UserPatch(Patch):
    """What is not given stays as it is. The keys of a disabled user open nothing."""

    name: Name = ""
    role: Literal["admin", "member"] = "member"
    disabled: bool = False


class UserOut(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    role: Role
    disabled: bool
    created_at: Moment

    @classmethod
    def of(cls, user: User) -> UserOut:
        return cls(user.id, user.name, user.role, user.disabled, user.created_at)


async def list_users(call: Call[None, None, PageQuery]) -> Listing[UserOut]:
    async with call.deps.store.read(call.principal) as scope:
        page = await users.list_all(scope, limit=call.query.limit, cursor=call.query.cursor)
    return Listing([UserOut.of(user) for user in page.data], page.next_cursor)


async def create_user(call: Call[None, UserIn]) -> Reply[UserOut]:
    async with call.deps.store.begin(call.principal) as scope:
        user = await users.create(scope, call.body.name, Role(call.body.role))
        await audit.record(scope, AuditAction.USER_CREATE, "user", user.id, {"role": user.role.value})
    return created(f"/v1/users/{user.id}", UserOut.of(user))


async def update_user(call: Call[User, UserPatch]) -> UserOut:
    wanted = call.body
    given = wanted.model_fields_set
    async with call.deps.store.begin(call.principal) as scope:
        changed = await users.update(
            scope,
            call.target.id,
            name=wanted.name if "name" in given else None,
            role=Role(wanted.role) if "role" in given else None,
            disabled=wanted.disabled if "disabled" in given else None,
        )
        if changed is None:
            raise NotFound
        await audit.record(scope, AuditAction.USER_UPDATE, "user", changed.id, {"fields": sorted(given)})
    return UserOut.of(changed)
