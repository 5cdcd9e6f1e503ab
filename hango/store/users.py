"""Users of the tenant."""

from __future__ import annotations

from uuid import UUID

from hango.domain import Role, User, UserID
from hango.errors import NotFound
from hango.store.connection import Scope, one
from hango.store.db import users as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page


async def get(scope: Scope, user_id: UUID) -> User | None:
    row = await rows.get_user(scope.conn, tenant_id=scope.tenant_id, id=user_id)
    return _user(row) if row else None


async def list_all(scope: Scope, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page[User]:
    """The newest first."""
    found = await rows.list_users(scope.conn, tenant_id=scope.tenant_id, before=id_of(cursor), most=limit + 1)
    return page(found, limit, _user, lambda user: user.id)


async def create(scope: Scope, name: str, role: Role) -> User:
    return _user(one(await rows.create_user(scope.conn, tenant_id=scope.tenant_id, id=new_id(), name=name, role=role)))


async def lock_admins(scope: Scope) -> list[UserID]:
    """The tenant's working admins, held until the transaction ends: two changes cannot each rely on the other's."""
    return [UserID(id) for id in await rows.lock_admins(scope.conn, tenant_id=scope.tenant_id)]


async def update(
    scope: Scope,
    user_id: UUID,
    *,
    name: str | None = None,
    role: Role | None = None,
    disabled: bool | None = None,
) -> User:
    """Change what is given. Raises NotFound."""
    row = await rows.update_user(
        scope.conn, tenant_id=scope.tenant_id, id=user_id, name=name, role=role, disabled=disabled
    )
    if row is None:
        raise NotFound
    return _user(row)


def _user(row: rows.GetUserRow | rows.ListUsersRow | rows.CreateUserRow | rows.UpdateUserRow) -> User:
    return User(UserID(row.id), row.name, Role(row.role), row.disabled, row.created_at)
