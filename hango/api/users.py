"""Users of the tenant, for its admins. The last admin stays one."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from hango.api.endpoint import Call, Reply, created
from hango.api.fields import Body, Moment, Name, PageQuery, Patch
from hango.api.listing import Listing
from hango.domain import AuditAction, Role, User
from hango.errors import Conflict
from hango.store import audit, users
from hango.store.connection import Scope


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
    wanted, user = call.body, call.target
    given = wanted.model_fields_set
    role = Role(wanted.role) if "role" in given else None
    disabled = wanted.disabled if "disabled" in given else None
    async with call.deps.store.begin(call.principal) as scope:
        if role is Role.MEMBER or disabled:
            await _check_another_admin(scope, user)
        changed = await users.update(
            scope, user.id, name=wanted.name if "name" in given else None, role=role, disabled=disabled
        )
        await audit.record(scope, AuditAction.USER_UPDATE, "user", user.id, {"fields": sorted(given)})
    return UserOut.of(changed)


async def _check_another_admin(scope: Scope, user: User) -> None:
    """Raises Conflict for the last admin. Holds the admins' rows, so that two cannot step down at once."""
    if await users.lock_admins(scope) == [user.id]:
        raise Conflict("This is the tenant's last admin. Make another user an admin first.")
