"""Usage through HTTP: summed by group, listed call by call."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.conftest import Database
from tests.people import Api, Person, a_run

INSERT_USAGE = """
insert into usage_records (tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens,
  cache_read_tokens, cache_write_tokens, cost_usd, estimated, created_at)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
# purpose, model, input, output, cache read, cache write, cost, estimated, when
CALLS: list[tuple[Any, ...]] = [
    ("run", "anthropic/a", 100, 10, 1, 2, 0.25, False, "2026-11-01T00:00:00Z"),
    ("run", "openai/b", 200, 20, 0, 0, None, True, "2026-11-01T23:59:59Z"),
    ("summary", "anthropic/a", 300, 30, 0, 0, 0.5, False, "2026-11-02T00:00:00Z"),
]


@pytest.fixture
async def session_id(caller: Person) -> str:
    agent = await caller.agent()
    made: str = (await caller.session(agent["id"]))["id"]
    return made


@pytest.fixture
async def run_id(caller: Person, session_id: str) -> str:
    return str((await a_run(caller, session_id, message="Where?"))["id"])


@pytest.fixture
def record_ids(caller: Person, session_id: str, run_id: str, database: Database) -> list[str]:
    """The ids of the calls above, in their order."""
    ids = [f"01a22e00-000{n}-7000-8000-{uuid4().hex[:12]}" for n in range(len(CALLS))]
    who = (caller.tenant_id, caller.user_id)
    with psycopg.connect(database.superuser_dsn) as connection:
        for id, (purpose, *rest) in zip(ids, CALLS, strict=True):
            connection.execute(INSERT_USAGE, (who[0], id, purpose, run_id, session_id, who[1], *rest))
    return ids


def group(name: str, *calls: tuple[Any, ...]) -> dict[str, Any]:
    costs = [call[6] for call in calls if call[6] is not None]
    return {
        "group": name,
        "records": len(calls),
        "input_tokens": sum(call[2] for call in calls),
        "output_tokens": sum(call[3] for call in calls),
        "cache_read_tokens": sum(call[4] for call in calls),
        "cache_write_tokens": sum(call[5] for call in calls),
        "cost_usd": sum(costs) if costs else None,
    }


@pytest.mark.usefixtures("record_ids")
async def test_usage_is_summed_by_each_group(caller: Person, session_id: str) -> None:
    """GET /v1/usage sums by purpose, model, user, session or day; a cost that nobody knows is null."""
    first, second, third = CALLS
    expected = {
        "purpose": [group("run", first, second), group("summary", third)],
        "model": [group("anthropic/a", first, third), group("openai/b", second)],
        "user": [group(caller.user_id, *CALLS)],
        "session": [group(session_id, *CALLS)],
        "day": [group("2026-11-01", first, second), group("2026-11-02", third)],
    }
    for name, wanted in expected.items():
        found = (await caller.get(f"/v1/usage?group_by={name}")).json()["data"]
        assert sorted(found, key=lambda one: str(one["group"])) == wanted
    assert (await caller.get("/v1/usage")).json() == (await caller.get("/v1/usage?group_by=purpose")).json()


@pytest.mark.usefixtures("record_ids")
@pytest.mark.parametrize(
    ("stretch", "calls"),
    [
        ({"from": "2026-11-02"}, CALLS[2:]),
        ({"to": "2026-11-02"}, CALLS[:2]),
        ({"from": "2026-11-01T23:59:59Z", "to": "2026-11-02T00:00:00Z"}, CALLS[1:2]),
        ({"from": "2026-11-02T01:00:00+01:00"}, CALLS[2:]),
        ({"from": "2026-12-01"}, []),
    ],
)
async def test_a_stretch_is_from_on_and_before_to(
    stretch: dict[str, str], calls: list[tuple[Any, ...]], caller: Person
) -> None:
    """`from` and `to` take days in UTC or times."""
    found = (await caller.get("/v1/usage", params={**stretch, "group_by": "user"})).json()["data"]

    assert found == ([group(caller.user_id, *calls)] if calls else [])


async def test_records_are_listed_call_by_call(caller: Person, session_id: str, record_ids: list[str]) -> None:
    """GET /v1/usage/records lists each call, the newest first, by purpose and session."""
    whole = (await caller.get("/v1/usage/records")).json()["data"]

    assert whole == [
        {
            "id": id,
            "purpose": call[0],
            "run_id": whole[0]["run_id"],
            "try_id": None,
            "session_id": session_id,
            "model": call[1],
            "input_tokens": call[2],
            "output_tokens": call[3],
            "cache_read_tokens": call[4],
            "cache_write_tokens": call[5],
            "cost_usd": call[6],
            "estimated": call[7],
            "created_at": call[8],
        }
        for id, call in reversed(list(zip(record_ids, CALLS, strict=True)))
    ]
    assert str(UUID(whole[0]["run_id"])) == whole[0]["run_id"]
    of_purpose = (await caller.get("/v1/usage/records?purpose=summary")).json()["data"]
    of_session = (await caller.get(f"/v1/usage/records?session_id={session_id}&limit=1")).json()
    assert of_purpose == whole[:1]
    assert (of_session["data"], bool(of_session["next_cursor"])) == (whole[:1], True)
    assert (await caller.get(f"/v1/usage/records?session_id={uuid4()}")).json()["data"] == []


@pytest.mark.usefixtures("record_ids")
async def test_another_tenant_sees_none_of_it(api: Api, session_id: str) -> None:
    """Usage is the tenant's own."""
    stranger = await api.admin()

    assert (await stranger.get("/v1/usage")).json() == {"data": []}
    assert (await stranger.get(f"/v1/usage/records?session_id={session_id}")).json()["data"] == []
