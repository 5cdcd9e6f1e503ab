"""What a case gives, made through the API: an agent, its memory files, and a session with the messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from tests.cases.reading import Case
from tests.cases.world import Person, Server

MEMORY = "memory:"
SKILL = "/skills/given/SKILL.md"
THINKING = {"type": "enabled", "budget_tokens": 1024}


@dataclass(frozen=True, slots=True)
class Made:
    """A session and its owner."""

    agent_id: str
    session_id: str
    owner: Person

    def overrides(self, target: str) -> str:
        """The address of a saved set; `target` is agent or session."""
        return f"/v1/{target}s/{self.agent_id if target == 'agent' else self.session_id}/context-overrides"


def make(case: Case, model: str, server: Server, owner: Person) -> Made | httpx2.Response:
    """The session, or the answer that refused a part of what is given."""
    given = case.given
    reply = owner.send(server, "POST", "/v1/agents", agent_of(given, model))
    if not reply.is_success:
        return reply
    agent_id = str(reply.json()["id"])
    for path, text in [*memories(given), *skills(given)]:
        reply = owner.send(server, "PUT", f"/v1/agents/{agent_id}/files{quote(path)}", {"content": text})
        if not reply.is_success:
            return reply
    reply = owner.send(server, "POST", "/v1/sessions", session_of(given, agent_id))
    if not reply.is_success:
        return reply
    made = Made(agent_id, reply.json()["id"], owner)
    for target in ("agent", "session"):
        saved = [one for one in given.get("saved", ()) if of_agent(one["part"]) is (target == "agent")]
        if saved:
            owner.send(server, "PUT", made.overrides(target), {"overrides": saved}).raise_for_status()
    return made


def import_given(case: Case, model: str, server: Server, owner: Person) -> Made | httpx2.Response:
    """The same by an import, which takes names that an agent's API refuses."""
    given = case.given
    body = {
        "system": [{"type": "text", "text": block["text"]} for block in given.get("system", ())],
        "tools": given.get("tools", []),
        "messages": [{"role": said["role"], "content": said["content"]} for said in given.get("messages", ())],
    }
    raw = json.dumps(body).encode("ascii")
    reply = owner.send(server, "POST", f"/v1/imports?format=anthropic&model={quote(model)}", raw=raw)
    return Made(reply.json()["agent_id"], reply.json()["session_id"], owner) if reply.is_success else reply


def of_agent(part: str) -> bool:
    """Whether an override of the part is saved with the agent."""
    return part.startswith(("system:", "tool:"))


def memories(given: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (block["contributor"].removeprefix(MEMORY), block["text"])
        for block in given.get("system", ())
        if block["contributor"].startswith(MEMORY)
    ]


def skills(given: dict[str, Any]) -> list[tuple[str, str]]:
    """A skill that allows the tools of `skill_allowed_tools`."""
    names = given.get("settings", {}).get("skill_allowed_tools")
    if names is None:
        return []
    return [(SKILL, f"---\nname: given\ndescription: A skill.\nallowed-tools: {' '.join(names)}\n---\nDo it.\n")]


def agent_of(given: dict[str, Any], model: str) -> dict[str, Any]:
    """A block of a built-in contributor's name is an agent's own block here, with the contributor switched off."""
    settings = given.get("settings", {})
    paths = [path for path, _ in memories(given)]
    compaction = {
        ours: settings[theirs]
        for ours, theirs in (("trigger_tokens", "compact_at_tokens"), ("keep_messages", "keep_last_messages"))
        if theirs in settings
    }
    params = {name: settings[name] for name in ("temperature", "parallel_tool_calls") if name in settings}
    if "tool_choice" in settings:
        params["tool_choice"] = {"type": settings["tool_choice"]}
    if settings.get("thinking") is True:
        params["thinking"] = THINKING
    return {
        "name": "given",
        "model": model,
        "builtin": [*(["memory"] if paths else []), *(["skills"] if skills(given) else [])],
        "memory": paths,
        "system": [
            {"name": block["contributor"], "text": block["text"]}
            for block in given.get("system", ())
            if not block["contributor"].startswith(MEMORY)
        ],
        "tools": given.get("tools", []),
        "params": params,
        **({"compaction": compaction} if compaction else {}),
    }


def session_of(given: dict[str, Any], agent_id: str) -> dict[str, Any]:
    messages = [{key: said[key] for key in ("role", "content", "model") if key in said} for said in given["messages"]]
    body: dict[str, Any] = {"agent_id": agent_id, "title": "given", "messages": messages}
    if summary := given.get("summary"):
        body["summary"] = {"text": summary["text"], "through_seq": summary["covers_up_to"]}
    return body
