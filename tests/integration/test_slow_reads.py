"""A database that lets a reader wait: an inspect ends in time, and says why."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from hango.config import SecretUrl, Settings
from tests.conftest import Database
from tests.people import serve


@pytest.mark.parametrize("table", ["messages", "file_versions"])
async def test_reading_what_a_request_is_made_of_is_bounded(
    table: str, fresh_database: Database, settings: Settings
) -> None:
    """HANGO_BEFORE_RUN_MAX bounds the reading of history, memory and skills; over it the answer is 503."""
    bounded = replace(settings, database_url=SecretUrl(fresh_database.app_dsn), before_run_max=0.2)
    async with serve(bounded) as api:
        caller = await api.admin()
        agent = await caller.agent(memory=["/memories/AGENTS.md"])
        await caller.put(f"/v1/agents/{agent['id']}/files/memories/AGENTS.md", json={"content": "Monday."})
        session = await caller.session(agent["id"], messages=[{"role": "user", "content": "When?"}])
        path = f"/v1/sessions/{session['id']}/context"

        with psycopg.connect(fresh_database.owner_dsn) as other:
            other.execute(f"lock table {table} in access exclusive mode")
            slow = await caller.get(path)
        after = await caller.get(path)

    assert (slow.status_code, slow.json()["detail"]) == (
        503,
        "Reading the session took longer than 0.2 s. Try again, or raise HANGO_BEFORE_RUN_MAX.",
    )
    assert after.status_code == 200
