"""API keys through HTTP: shown once, listed without their secret, revoked at once."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import uuid4

import psycopg

from tests.conftest import Database
from tests.people import Person


async def test_a_key_is_shown_once(caller: Person) -> None:
    """POST answers 201 with the key; no other answer has it."""
    reply = await caller.post("/v1/api-keys", json={"name": "laptop"})
    made = reply.json()

    assert (reply.status_code, reply.headers["location"]) == (201, f"/v1/api-keys/{made['id']}")
    assert made == {
        "id": made["id"],
        "name": "laptop",
        "user_id": caller.user_id,
        "key": made["key"],
        "created_at": made["created_at"],
    }
    assert re.fullmatch(r"hango_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", made["key"])
    listed = (await caller.get("/v1/api-keys")).json()["data"]
    assert listed[0] == {name: value for name, value in made.items() if name != "key"}
    assert (await replace(caller, key=made["key"]).get("/v1/me")).json()["key_id"] == made["id"]


async def test_a_member_sees_the_own_keys_and_an_admin_all(caller: Person) -> None:
    """A member lists the own keys, an admin the tenant's."""
    member = await caller.member()
    own = await member.make("/v1/api-keys", name="own")

    members = (await member.get("/v1/api-keys")).json()["data"]
    admins = (await caller.get("/v1/api-keys")).json()["data"]

    assert [key["name"] for key in members] == ["own", "key"]
    assert own["id"] in {key["id"] for key in admins}
    assert {key["user_id"] for key in admins} == {caller.user_id, member.user_id}


async def test_only_an_admin_makes_keys_for_others(caller: Person) -> None:
    """`user_id` is for admins; a member may name the own one. A disabled user gets no key."""
    member = await caller.member()

    assert (await member.post("/v1/api-keys", json={"name": "x", "user_id": member.user_id})).status_code == 201
    assert (await member.post("/v1/api-keys", json={"name": "x", "user_id": caller.user_id})).status_code == 404
    assert (await caller.post("/v1/api-keys", json={"name": "x", "user_id": str(uuid4())})).status_code == 404
    await caller.patch(f"/v1/users/{member.user_id}", json={"disabled": True})
    refused = await caller.post("/v1/api-keys", json={"name": "x", "user_id": member.user_id})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_a_key_is_revoked_once(caller: Person) -> None:
    """DELETE answers 204, then 404; the key opens nothing, is not listed, and may have revoked itself."""
    key = await caller.make("/v1/api-keys", name="x")
    holder = replace(caller, key=key["key"])

    assert (await holder.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
    assert (await holder.get("/v1/me")).status_code == 401
    assert (await caller.delete(f"/v1/api-keys/{key['id']}")).status_code == 404
    assert key["id"] not in {one["id"] for one in (await caller.get("/v1/api-keys")).json()["data"]}


async def test_keys_that_share_a_beginning_are_not_mixed_up(caller: Person) -> None:
    """The shown half finds a key, the secret opens it: another key's secret does not, however long it agrees."""
    member = await caller.member()
    first, second = caller.key or "", member.key or ""
    swapped = first[:15] + second[15:]

    assert (await replace(caller, key=swapped).get("/v1/me")).status_code == 401
    for cut in range(20, len(first)):
        mixed = first[:cut] + ("A" if first[cut] != "A" else "B") + first[cut + 1 :]
        assert (await replace(caller, key=mixed).get("/v1/me")).status_code == 401


async def test_the_database_holds_no_key(caller: Person, database: Database) -> None:
    """Only a SHA-256 of a secret is stored: a dump of every table holds neither key nor secret."""
    key = await caller.make("/v1/api-keys", name="x")
    secret = key["key"].split("_", 2)[2].encode()

    with psycopg.connect(database.superuser_dsn) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        for (table,) in tables:
            with connection.cursor().copy(f"copy {table} to stdout") as rows:
                for row in rows:
                    assert secret not in bytes(row)


async def test_keys_are_audited_without_secret_and_name(caller: Person) -> None:
    """The audit row names the user that the key is for."""
    member = await caller.member()
    key = await caller.make("/v1/api-keys", name="secret name", user_id=member.user_id)
    await caller.delete(f"/v1/api-keys/{key['id']}")

    assert (await caller.audit())[-2:] == [
        ("api_key.create", key["id"], {"user_id": member.user_id}),
        ("api_key.revoke", key["id"], {}),
    ]
