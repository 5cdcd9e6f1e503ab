"""The caller's tenant: its quota, its rate limit, its switch for traces; and who the caller is."""

from __future__ import annotations

from datetime import date
from typing import Annotated
from uuid import UUID

import msgspec
from pydantic import Field

from hango.api.endpoint import Call
from hango.api.fields import Name, Patch
from hango.domain import AuditAction, Role, Tenant
from hango.errors import NotFound
from hango.store import audit, tenants, users
from hango.store.connection import Scope

# The bound keeps sums of tokens far inside a database integer.
QUOTA_MOST = 10**15
RATE_MOST = 1_000_000


class TenantPatch(Patch):
    """What is not given stays as it is; null means no quota, no rate limit."""

    name: Name = ""
    quota_tokens: Annotated[int, Field(ge=0, le=QUOTA_MOST)] | None = None
    rate_per_minute: Annotated[int, Field(ge=1, le=RATE_MOST)] | None = None
    trace_llm_content: bool = False


class TenantOut(msgspec.Struct, frozen=True):
    """`quota_used` and `quota_reserved` are of the calendar month (UTC) that starts at `period_start`."""

    id: UUID
    name: str
    quota_tokens: int | None
    quota_used: int
    quota_reserved: int
    period_start: date
    rate_per_minute: int | None
    trace_llm_content: bool

    @classmethod
    def of(cls, tenant: Tenant) -> TenantOut:
        return cls(
            id=tenant.id,
            name=tenant.name,
            quota_tokens=tenant.quota_tokens,
            quota_used=tenant.quota_used,
            quota_reserved=tenant.quota_reserved,
            period_start=tenant.period_start,
            rate_per_minute=tenant.rate_per_minute,
            trace_llm_content=tenant.trace_llm_content,
        )


class MyTenantOut(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    quota_tokens: int | None
    quota_used: int
    quota_reserved: int


class MyUserOut(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    role: Role


class MeOut(msgspec.Struct, frozen=True):
    """Whom the key stands for."""

    tenant: MyTenantOut
    user: MyUserOut
    key_id: UUID


async def show_me(call: Call[None, None]) -> MeOut:
    async with call.deps.store.read(call.principal) as scope:
        tenant = await _tenant(scope)
        user = await users.get(scope, call.principal.user_id)
    if user is None:
        raise NotFound
    return MeOut(
        MyTenantOut(tenant.id, tenant.name, tenant.quota_tokens, tenant.quota_used, tenant.quota_reserved),
        MyUserOut(user.id, user.name, user.role),
        call.principal.key_id,
    )


async def show_tenant(call: Call[None, None]) -> TenantOut:
    async with call.deps.store.read(call.principal) as scope:
        return TenantOut.of(await _tenant(scope))


async def update_tenant(call: Call[None, TenantPatch]) -> TenantOut:
    given = call.body.model_fields_set
    changes = {name: getattr(call.body, name) for name in given}
    async with call.deps.store.begin(call.principal) as scope:
        await tenants.update(scope, **changes)
        tenant = await _tenant(scope)
        await audit.record(scope, AuditAction.TENANT_UPDATE, "tenant", tenant.id, {"fields": sorted(given)})
    return TenantOut.of(tenant)


async def _tenant(scope: Scope) -> Tenant:
    tenant = await tenants.get(scope)
    if tenant is None:
        raise NotFound
    return tenant
