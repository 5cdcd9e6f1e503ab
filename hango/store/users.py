"""Users of the tenant. A tenant always keeps a working admin."""

from __future__ import annotations

from uuid import UUID

from hango.domain import Role, User, UserID
from hango.errors import Conflict
from hango.store.connection import Scope
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
    row = await rows.create_user(scope.conn, tenant_id=scope.tenant_id, id=new_id(), name=name, role=role)
    assert row is not None, "an insert without a condition returns its row"
    return _user(row)


async def update(
    scope: Scope,
    user_id: UUID,
    *,
    name: str | None = None,
    role: Role | None = None,
    disabled: bool | None = None,
) -> User | None:
    """Change what is given; None when there is no such user. Raises Conflict when it is the last working
    admin's."""
    if role is Role.MEMBER or disabled:
        admins = await rows.lock_admins(scope.conn, tenant_id=scope.tenant_id)
        if admins == [user_id]:
            raise Conflict("This user is the tenant's last admin: make another user an admin first.")
    row = await rows.update_user(
        scope.conn, tenant_id=scope.tenant_id, id=user_id, name=name, role=role, disabled=disabled
    )
    return _user(row) if row else None


def _user(row: rows.GetUserRow | rows.ListUsersRow | rows.CreateUserRow | rows.UpdateUserRow) -> User:
    return User(UserID(row.id), row.name, Role(row.role), row.disabled, row.created_at)
