"""The only unscoped statements of the product: each says in its query why it cannot name a tenant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hango.domain import AuditAction, KeyID, Principal, Role, TenantID, UserID
from hango.store import api_keys, audit, users
from hango.store.connection import Scope, SystemScope
from hango.store.db import system as rows
from hango.store.ids import new_id


@dataclass(frozen=True, slots=True)
class NewTenant:
    """A tenant with its first admin. `api_key` cannot be had again."""

    tenant_id: TenantID
    user_id: UserID
    api_key: str = field(repr=False)


async def principal_for_key(scope: SystemScope, prefix: str) -> tuple[Principal, bytes] | None:
    """Who a key belongs to, by its shown part, and the SHA-256 that its secret must have.

    None for a key that is unknown or revoked, and for a disabled user. The caller compares the secret.
    """
    row = await rows.find_key(scope.conn, prefix=prefix)
    if row is None:
        return None
    principal = Principal(
        tenant_id=TenantID(row.tenant_id),
        user_id=UserID(row.user_id),
        key_id=KeyID(row.key_id),
        role=Role(row.role),
        rate_per_minute=row.rate_per_minute,
        trace_llm_content=row.trace_llm_content,
    )
    return principal, row.secret_hash


async def create_tenant(
    scope: SystemScope, name: str, *, quota_tokens: int | None = None, admin_name: str = "admin"
) -> NewTenant:
    """A tenant, its first admin and the admin's key."""
    tenant_id = TenantID(new_id())
    await rows.add_tenant(scope.conn, id=tenant_id, name=name, quota_tokens=quota_tokens)
    # The founder is of the tenant but is no user yet: it makes the admin, who does the rest.
    founder = Principal(tenant_id, UserID(tenant_id), KeyID(tenant_id), Role.ADMIN)
    async with scope.act_as(founder) as own:
        admin = await users.create(own, admin_name, Role.ADMIN)
    async with scope.act_as(replace(founder, user_id=admin.id)) as own:
        await audit.record(own, AuditAction.TENANT_CREATE, "tenant", tenant_id, {})
        await audit.record(own, AuditAction.USER_CREATE, "user", admin.id, {"role": Role.ADMIN.value})
        return await _create_key(own, "first key")


async def create_key(scope: SystemScope, tenant_id: TenantID, user_id: UserID, name: str) -> NewTenant:
    """A key for a user who may have lost every other one. Raises NotFound when there is no such user."""
    async with scope.act_as(Principal(tenant_id, user_id, KeyID(user_id), Role.ADMIN)) as own:
        return await _create_key(own, name)


async def _create_key(own: Scope, name: str) -> NewTenant:
    key, text = await api_keys.create(own, own.user_id, name)
    await audit.record(own, AuditAction.KEY_CREATE, "api_key", key.id, {"user_id": str(own.user_id)})
    return NewTenant(own.tenant_id, own.user_id, text)
