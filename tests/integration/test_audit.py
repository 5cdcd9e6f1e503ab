"""The audit log through HTTP."""

from __future__ import annotations

from tests.people import Person


async def test_an_event_says_who_did_what_to_which_thing(caller: Person) -> None:
    """GET /v1/audit lists {id, action, target_kind, target_id, user_id, detail, created_at}, the newest first."""
    member = await caller.member()
    agent = await member.agent()

    newest = (await caller.get("/v1/audit?limit=1")).json()["data"][0]

    assert newest == {
        "id": newest["id"],
        "action": "agent.create",
        "target_kind": "agent",
        "target_id": agent["id"],
        "user_id": member.user_id,
        "detail": {"fields": ["model", "name"]},
        "created_at": newest["created_at"],
    }


async def test_the_log_goes_page_by_page(caller: Person) -> None:
    """The log is listed with limit and cursor, nothing twice and nothing left out."""
    await caller.member()
    whole = (await caller.get("/v1/audit?limit=500")).json()["data"]
    pages, cursor = [], None
    while True:
        page = (await caller.get("/v1/audit", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        pages += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert pages == whole
    assert [row["action"] for row in whole] == [
        "api_key.create",
        "user.create",
        "api_key.create",
        "user.create",
        "tenant.create",
    ]


async def test_a_refused_write_leaves_no_event(caller: Person) -> None:
    """What did not happen is not in the log."""
    before = await caller.audit()
    await caller.post("/v1/agents", json={"name": "x", "model": "nobody/x"})
    await caller.post("/v1/users", json={"name": "x", "role": "king"})
    await caller.patch(f"/v1/users/{caller.user_id}", json={"disabled": True})

    assert await caller.audit() == before
