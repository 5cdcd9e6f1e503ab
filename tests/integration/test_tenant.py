"""The tenant and the caller through HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.people import Api, Person


async def test_me_says_whom_the_key_stands_for(caller: Person) -> None:
    """GET /v1/me names tenant, user and key."""
    member = await caller.member()
    tenant = (await caller.get("/v1/tenant")).json()
    me = (await member.get("/v1/me")).json()
    quota = ("id", "name", "quota_tokens", "quota_used", "quota_reserved")

    assert me == {
        "tenant": {name: tenant[name] for name in quota},
        "user": {"id": member.user_id, "name": me["user"]["name"], "role": "member"},
        "key_id": (await member.get("/v1/api-keys")).json()["data"][0]["id"],
    }


async def test_a_new_tenant_has_no_limits_but_those_given(api: Api) -> None:
    """quota null = none; the period is the calendar month in UTC; traces hold no content."""
    admin = await api.admin(quota_tokens=1000)
    tenant = (await admin.get("/v1/tenant")).json()

    assert tenant == {
        "id": admin.tenant_id,
        "name": tenant["name"],
        "quota_tokens": 1000,
        "quota_used": 0,
        "quota_reserved": 0,
        "period_start": datetime.now(UTC).date().replace(day=1).isoformat(),
        "rate_per_minute": None,
        "trace_llm_content": False,
    }


async def test_a_patch_changes_what_it_names_and_null_takes_a_limit_away(caller: Person) -> None:
    """PATCH /v1/tenant changes the fields that it names."""
    before = (await caller.get("/v1/tenant")).json()

    set_all = {"name": "Lager", "quota_tokens": 5, "rate_per_minute": 1000, "trace_llm_content": True}
    changed = await caller.patch("/v1/tenant", json=set_all)
    unlimited = await caller.patch("/v1/tenant", json={"quota_tokens": None, "rate_per_minute": None})

    assert (changed.status_code, changed.json()) == (200, {**before, **set_all})
    assert unlimited.json() == {**before, **set_all, "quota_tokens": None, "rate_per_minute": None}
    assert (await caller.audit())[-2:] == [
        (
            "tenant.update",
            caller.tenant_id,
            {"fields": ["name", "quota_tokens", "rate_per_minute", "trace_llm_content"]},
        ),
        ("tenant.update", caller.tenant_id, {"fields": ["quota_tokens", "rate_per_minute"]}),
    ]


@pytest.mark.parametrize(
    "body",
    [{"quota_tokens": -1}, {"quota_tokens": 10**16}, {"quota_tokens": 1.5}, {"rate_per_minute": 0}, {"name": None},
     {"name": ""}, {"trace_llm_content": 1}, {"period_start": "2026-01-01"}, {"id": "x"}],
    ids=repr,
)  # fmt: skip
async def test_a_bad_change_is_422(body: dict[str, Any], caller: Person) -> None:
    """A value out of its range, or a field that is not to be written."""
    before = (await caller.get("/v1/tenant")).json()
    reply = await caller.patch("/v1/tenant", json=body)

    assert reply.status_code == 422
    assert (await caller.get("/v1/tenant")).json() == before
