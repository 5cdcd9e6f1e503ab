"""Users of a tenant through HTTP, for its admins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.people import Person


async def users_of(person: Person) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = (await person.get("/v1/users")).json()["data"]
    return data


async def test_a_user_is_made_listed_and_changed(caller: Person) -> None:
    """POST answers 201 {id, name, role, disabled, created_at}; PATCH changes what it names."""
    reply = await caller.post("/v1/users", json={"name": "Ngọc", "role": "member"})
    made = reply.json()

    assert (reply.status_code, reply.headers["location"]) == (201, f"/v1/users/{made['id']}")
    assert made == {
        "id": made["id"],
        "name": "Ngọc",
        "role": "member",
        "disabled": False,
        "created_at": made["created_at"],
    }
    changed = await caller.patch(f"/v1/users/{made['id']}", json={"role": "admin"})
    assert (changed.status_code, changed.json()) == (200, {**made, "role": "admin"})
    assert [user["id"] for user in await users_of(caller)] == [made["id"], caller.user_id]


async def test_a_list_of_users_goes_page_by_page(caller: Person) -> None:
    """Users are listed the newest first, with limit and cursor."""
    made = [await caller.make("/v1/users", name=f"user {n}", role="member") for n in range(3)]

    first = (await caller.get("/v1/users?limit=2")).json()
    second = (await caller.get("/v1/users", params={"cursor": first["next_cursor"]})).json()

    assert first["data"] == [made[2], made[1]]
    assert [user["id"] for user in second["data"]] == [made[0]["id"], caller.user_id]


async def test_the_keys_of_a_disabled_user_open_nothing(caller: Person) -> None:
    """Disabling holds from the next call; enabling brings the keys back."""
    member = await caller.member()

    await caller.patch(f"/v1/users/{member.user_id}", json={"disabled": True})
    refused = await member.get("/v1/me")
    await caller.patch(f"/v1/users/{member.user_id}", json={"disabled": False})

    assert (refused.status_code, (await member.get("/v1/me")).status_code) == (401, 200)


@pytest.mark.parametrize("change", [{"role": "member"}, {"disabled": True}, {"role": "admin", "disabled": True}])
async def test_the_last_admin_stays(change: dict[str, Any], caller: Person) -> None:
    """409 for the change that would leave a tenant without an admin; a disabled admin does not count."""
    second = await caller.member("admin")
    await caller.patch(f"/v1/users/{second.user_id}", json={"disabled": True})

    reply = await caller.patch(f"/v1/users/{caller.user_id}", json=change)

    assert (reply.status_code, reply.json()["code"]) == (409, "conflict")
    assert (await caller.get("/v1/me")).json()["user"]["role"] == "admin"
    assert (await caller.patch(f"/v1/users/{caller.user_id}", json={"name": "boss"})).status_code == 200


async def test_two_admins_cannot_step_down_at_once(caller: Person) -> None:
    """However the requests meet, an admin is left."""
    second = await caller.member("admin")

    replies = await asyncio.gather(
        caller.patch(f"/v1/users/{second.user_id}", json={"role": "member"}),
        second.patch(f"/v1/users/{caller.user_id}", json={"role": "member"}),
    )

    # The later one may be refused as the last admin's, or because its sender is no admin any more.
    assert sorted(reply.status_code for reply in replies) in ([200, 404], [200, 409])
    roles = [(await person.get("/v1/me")).json()["user"]["role"] for person in (caller, second)]
    assert sorted(roles) == ["admin", "member"]


async def test_changes_of_users_are_audited_without_names(caller: Person) -> None:
    """The audit row holds the role and the names of the changed fields."""
    user = await caller.make("/v1/users", name="secret name", role="member")
    await caller.patch(f"/v1/users/{user['id']}", json={"name": "other name", "disabled": True})

    assert (await caller.audit())[-2:] == [
        ("user.create", user["id"], {"role": "member"}),
        ("user.update", user["id"], {"fields": ["disabled", "name"]}),
    ]
