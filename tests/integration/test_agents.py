"""Agents through HTTP: made, read, changed, listed, deleted."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.people import Person

WHOLE: dict[str, Any] = {
    "name": "Lager",
    "model": "anthropic/claude-sonnet-5",
    "shared": True,
    "system": [{"name": "agent", "text": "Be brief. 簡潔に。"}, {"name": "house.rules", "text": ""}],
    "tools": [
        {
            "name": "look",
            "description": "Look it up.",
            "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}},
            "kind": "client",
        }
    ],
    "builtin": ["todo", "memory"],
    "memory": ["/memories/AGENTS.md"],
    "allowed_tools": ["look"],
    "max_output_tokens": 1000,
    "params": {"temperature": 0.5, "tool_choice": {"type": "any"}},
    "compaction": {"trigger_tokens": 9000, "keep_messages": 4},
    "cache": {"enabled": True, "ttl": "1h"},
}
DEFAULTS: dict[str, Any] = {
    "shared": False,
    "system": [],
    "tools": [],
    "builtin": ["todo", "filesystem", "subagent", "memory", "skills"],
    "memory": [],
    "allowed_tools": None,
    "max_output_tokens": 4096,
    "params": {},
    "compaction": {"trigger_tokens": None, "keep_messages": 20},
    "cache": {"enabled": True, "ttl": "5m"},
}


def without_times(agent: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in agent.items() if name not in ("id", "created_at", "updated_at")}


async def test_an_agent_is_what_was_written(caller: Person) -> None:
    """POST answers 201 with Location and the whole agent; GET answers the same."""
    reply = await caller.post("/v1/agents", json=WHOLE)
    made = reply.json()

    assert (reply.status_code, reply.headers["location"]) == (201, f"/v1/agents/{made['id']}")
    assert without_times(made) == {**WHOLE, "created_by": caller.user_id}
    assert made["created_at"].endswith("Z")
    assert (await caller.get(reply.headers["location"])).json() == made


async def test_name_and_model_are_enough(caller: Person) -> None:
    """The rest has defaults: all built-ins on, no tools of its own."""
    made = await caller.make("/v1/agents", name="desk", model="offline/extract")

    assert without_times(made) == {
        "name": "desk",
        "model": "offline/extract",
        "created_by": caller.user_id,
        **DEFAULTS,
    }


async def test_a_schema_keeps_its_digits_and_its_order(caller: Person) -> None:
    """Tool schemas come back as their own JSON text."""
    schema = '{"type":"object","z":123456789012345678901234567890,"a":1.10,"ü":"caf\\u00e9"}'
    body = '{"name":"x","model":"offline/extract","tools":[{"name":"t","input_schema":' + schema + "}]}"

    made = await caller.post("/v1/agents", content=body)
    shown = await caller.get(made.headers["location"])

    assert f'"input_schema":{schema}' in made.text
    assert shown.content == made.content


async def test_a_patch_changes_what_it_names(caller: Person) -> None:
    """PATCH answers the whole agent; what it does not name stays."""
    made = await caller.make("/v1/agents", **WHOLE)
    path = f"/v1/agents/{made['id']}"

    reply = await caller.patch(path, json={"shared": False, "system_prompt": "Be kind.", "allowed_tools": None})
    changed = reply.json()

    assert reply.status_code == 200
    assert changed == {
        **made,
        "shared": False,
        "system": [{"name": "agent", "text": "Be kind."}],
        "allowed_tools": None,
        "updated_at": changed["updated_at"],
    }
    assert changed["updated_at"] > made["updated_at"]
    assert (await caller.get(path)).json() == changed


async def test_a_patch_that_changes_nothing_changes_nothing(caller: Person) -> None:
    """The same agent sent back, or an empty change, leaves it as it was."""
    made = await caller.make("/v1/agents", **WHOLE)
    path = f"/v1/agents/{made['id']}"

    for body in ({}, {name: made[name] for name in WHOLE}):
        assert (await caller.patch(path, json=body)).json() == made


async def test_changes_at_once_are_all_kept(caller: Person) -> None:
    """Ten PATCHes of different fields at once: none undoes another."""
    agent = await caller.agent()
    changes: dict[str, Any] = {
        "name": "new",
        "model": "openai/gpt-6",
        "shared": True,
        "system": [{"name": "agent", "text": "x"}],
        "tools": WHOLE["tools"],
        "memory": ["/a"],
        "allowed_tools": ["look"],
        "max_output_tokens": 7,
        "params": {"seed": 1},
        "cache": {"enabled": False, "ttl": "5m"},
    }

    await asyncio.gather(
        *[caller.patch(f"/v1/agents/{agent['id']}", json={name: value}) for name, value in changes.items()]
    )

    after = (await caller.get(f"/v1/agents/{agent['id']}")).json()
    assert {name: after[name] for name in changes} == changes


async def test_a_refused_patch_changes_nothing(caller: Person) -> None:
    """All of a change or none of it."""
    made = await caller.make("/v1/agents", **WHOLE)
    path = f"/v1/agents/{made['id']}"

    reply = await caller.patch(path, json={"name": "new", "tools": [{"name": "a b"}]})

    assert (reply.status_code, reply.json()["code"]) == (422, "bad_tool_name")
    assert (await caller.get(path)).json() == made


async def test_a_deleted_agent_is_hidden_and_its_sessions_stay(caller: Person) -> None:
    """Deleting an agent hides it: it is not there, not listed, and takes no new session."""
    agent = await caller.agent()
    session = await caller.session(agent["id"])
    path = f"/v1/agents/{agent['id']}"

    reply = await caller.delete(path)

    assert (reply.status_code, reply.content) == (204, b"")
    for method in ("GET", "PATCH", "DELETE"):
        assert (await caller.call(method, path, json={})).status_code == 404
    assert (await caller.get(f"{path}/files")).status_code == 404
    assert (await caller.get("/v1/agents")).json() == {"data": [], "next_cursor": None}
    assert (await caller.post("/v1/sessions", json={"agent_id": agent["id"]})).status_code == 404
    assert (await caller.get(f"/v1/sessions/{session['id']}")).json() == session
    context = await caller.get(f"/v1/sessions/{session['id']}/context")
    assert (context.status_code, context.json()["agent_id"]) == (200, agent["id"])


async def test_a_list_goes_page_by_page_and_takes_a_text(caller: Person) -> None:
    """Lists take limit and cursor, and answer {data, next_cursor}; agents take q."""
    made = [await caller.agent(name=f"agent {n} {'Büro' if n % 2 else 'Lager'}") for n in range(5)]
    wanted = list(reversed(made))

    first = (await caller.get("/v1/agents?limit=2")).json()
    second = (await caller.get("/v1/agents", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    third = (await caller.get("/v1/agents", params={"limit": 2, "cursor": second["next_cursor"]})).json()

    assert [*first["data"], *second["data"], *third["data"]] == wanted
    assert third["next_cursor"] is None
    found = (await caller.get("/v1/agents", params={"q": "büro"})).json()["data"]
    assert [agent["name"] for agent in found] == ["agent 3 Büro", "agent 1 Büro"]
    for nothing in ("%", "_", "\\", "'; drop table agents --"):
        assert (await caller.get("/v1/agents", params={"q": nothing})).json()["data"] == []


async def test_every_write_of_an_agent_is_audited_without_content(caller: Person) -> None:
    """An audit row a write, with names of fields, never content."""
    agent = await caller.agent(system_prompt="secret words")
    await caller.patch(f"/v1/agents/{agent['id']}", json={"system_prompt": "other words", "shared": True})
    await caller.delete(f"/v1/agents/{agent['id']}")

    assert [row for row in await caller.audit() if row[0].startswith("agent.")] == [
        ("agent.create", agent["id"], {"fields": ["model", "name", "system_prompt"]}),
        ("agent.update", agent["id"], {"fields": ["shared", "system_prompt"]}),
        ("agent.delete", agent["id"], {}),
    ]
