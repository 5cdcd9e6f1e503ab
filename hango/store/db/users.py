"""Made by sqlc from users.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['create_user', 'get_user', 'list_users', 'lock_admins', 'update_user']


GET_USER = """\
select id, name, role, disabled, created_at
from users
where tenant_id = %(tenant_id)s and id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class GetUserRow:
    id: UUID
    name: str
    role: str
    disabled: bool
    created_at: datetime


async def get_user(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetUserRow | None:
    """One user of the tenant."""
    cursor = conn.cursor(row_factory=args_row(GetUserRow))
    await cursor.execute(GET_USER, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_USERS = """\
select id, name, role, disabled, created_at
from users
where tenant_id = %(tenant_id)s
  and (%(before)s::uuid is null or id < %(before)s::uuid)
order by id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListUsersRow:
    id: UUID
    name: str
    role: str
    disabled: bool
    created_at: datetime


async def list_users(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    before: UUID | None,
    most: int,
) -> list[ListUsersRow]:
    """The tenant's users, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListUsersRow))
    await cursor.execute(LIST_USERS, {"tenant_id": tenant_id, "before": before, "most": most})
    return await cursor.fetchall()


CREATE_USER = """\
insert into users (tenant_id, id, name, role)
values (%(tenant_id)s, %(id)s, %(name)s, %(role)s)
returning id, name, role, disabled, created_at
"""


@dataclass(frozen=True, slots=True)
class CreateUserRow:
    id: UUID
    name: str
    role: str
    disabled: bool
    created_at: datetime


async def create_user(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    name: str,
    role: str,
) -> CreateUserRow | None:
    """A new user, enabled."""
    cursor = conn.cursor(row_factory=args_row(CreateUserRow))
    await cursor.execute(CREATE_USER, {"tenant_id": tenant_id, "id": id, "name": name, "role": role})
    return await cursor.fetchone()


LOCK_ADMINS = """\
select id
from users
where tenant_id = %(tenant_id)s and role = 'admin' and not disabled
order by id
for update
"""


async def lock_admins(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> list[UUID]:
    """The tenant's working admins, held until the transaction ends, so that two changes cannot each leave the other's."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(LOCK_ADMINS, {"tenant_id": tenant_id})
    return await cursor.fetchall()


UPDATE_USER = """\
update users
set
  name = coalesce(%(name)s, name),
  role = coalesce(%(role)s, role),
  disabled = coalesce(%(disabled)s, disabled)
where tenant_id = %(tenant_id)s and id = %(id)s
returning id, name, role, disabled, created_at
"""


@dataclass(frozen=True, slots=True)
class UpdateUserRow:
    id: UUID
    name: str
    role: str
    disabled: bool
    created_at: datetime


async def update_user(
    conn: AsyncConnection[Any],
    *,
    name: str | None,
    role: str | None,
    disabled: bool | None,
    tenant_id: UUID,
    id: UUID,
) -> UpdateUserRow | None:
    """Change what is given."""
    cursor = conn.cursor(row_factory=args_row(UpdateUserRow))
    await cursor.execute(UPDATE_USER, {"name": name, "role": role, "disabled": disabled, "tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()

