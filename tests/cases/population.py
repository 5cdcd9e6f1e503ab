"""Agents and sessions as people make them, and odder ones; and what their next request must list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from hango.messages import content_json
from tests.cases.making import Made
from tests.cases.world import Person, Server
from tests.histories import Said, build, histories

MODELS = ("offline/extract", "anthropic/claude-sonnet-4-5", "anthropic/no-such-model", "openai/gpt-4o")
# The tools of the built-in contributors, by the order of their blocks.
BUILTIN_TOOLS = {
    "todo": ["write_todos"],
    "filesystem": ["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
    "subagent": ["task"],
    "memory": [],
    "skills": ["load_skill"],
}
SKILL = "---\nname: {0}\ndescription: What {0} is for.\n---\nThe text of {0}.\n"


@dataclass(frozen=True, slots=True)
class Given:
    """An agent, its files, and a session's history with perhaps a summary."""

    agent: dict[str, Any]
    files: dict[str, str]
    history: list[Said]
    summary_through: int | None

    def expected_system(self) -> list[str]:
        """The agent's blocks as listed, then todo, filesystem, subagent, memory (one part a path), skills."""
        listed = [block["name"] for block in self.agent["system"]]
        for name in BUILTIN_TOOLS:
            if name not in self.agent["builtin"]:
                continue
            if name == "memory":
                paths = dict.fromkeys(self.agent["memory"])
                listed += [f"memory:{path}" for path in paths if path in self.files]
            elif name != "skills" or any(text.startswith("---") for text in self.files.values()):
                listed.append(name)
        return [f"system:{name}" for name in listed]

    def expected_tools(self) -> list[str]:
        """The agent's tools as listed, then those of the contributors; only what the agent allows."""
        names = [tool["name"] for tool in self.agent["tools"]]
        names += [tool for name, tools in BUILTIN_TOOLS.items() if name in self.agent["builtin"] for tool in tools]
        allowed = self.agent.get("allowed_tools")
        return [f"tool:{name}" for name in names if allowed is None or name in allowed]

    def expected_messages(self) -> list[str]:
        """The summary, then every message after it."""
        through = self.summary_through or 0
        head = ["summary"] if self.summary_through else []
        return head + [f"message:{seq}" for seq in range(through + 1, len(self.history) + 1)]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
names = st.from_regex(r"\A[a-z][a-z0-9_.-]{0,9}\Z").filter(lambda name: name not in BUILTIN_TOOLS)
tool_names = st.from_regex(r"\A[a-zA-Z0-9_-]{1,12}\Z").map(lambda name: f"t_{name}")
paths = st.sampled_from(("/memories/AGENTS.md", "/memories/材料.md", "/notes/a b.md", "/gone.md"))
builtins = st.sets(st.sampled_from(sorted(BUILTIN_TOOLS))).map(sorted)
schemas = st.sampled_from(
    ({"type": "object"}, {"type": "object", "properties": {"é": {"enum": [1.10, 10**20]}}, "required": ["é"]})
)


@st.composite
def agents(draw: st.DrawFn) -> dict[str, Any]:
    builtin = draw(builtins)
    tools = [
        {"name": name, "description": draw(texts), "input_schema": draw(schemas)}
        for name in draw(st.lists(tool_names, max_size=4, unique=True))
    ]
    known = [tool["name"] for tool in tools] + [tool for name in builtin for tool in BUILTIN_TOOLS[name]]
    made: dict[str, Any] = {
        "name": "made",
        "model": draw(st.sampled_from(MODELS)),
        "system": [{"name": name, "text": draw(texts)} for name in draw(st.lists(names, max_size=4, unique=True))],
        "tools": tools,
        "builtin": builtin,
        "memory": draw(st.lists(paths, max_size=4, unique=True)) if "memory" in builtin else [],
        "cache": {"enabled": draw(st.booleans()), "ttl": draw(st.sampled_from(("5m", "1h")))},
    }
    allowed = st.lists(st.sampled_from(known), unique=True) if known else st.just([])
    if (chosen := draw(st.none() | allowed)) is not None:
        made["allowed_tools"] = chosen
    return made


@st.composite
def populations(draw: st.DrawFn) -> Given:
    files = draw(st.dictionaries(paths.filter(lambda path: path != "/gone.md"), texts, max_size=3))
    files |= {f"/skills/{name}/SKILL.md": SKILL.format(name) for name in draw(st.sets(st.sampled_from("ab")))}
    history = draw(histories)
    through = st.none() | st.integers(1, len(history)) if history else st.none()
    return Given(draw(agents()), files, history, draw(through))


def create(given: Given, server: Server, owner: Person) -> Made:
    """Everything through the API."""
    agent_id = owner.make(server, "/v1/agents", given.agent)["id"]
    for path, text in given.files.items():
        owner.send(server, "PUT", f"/v1/agents/{agent_id}/files{quote(path)}", {"content": text}).raise_for_status()
    body: dict[str, Any] = {"agent_id": agent_id, "messages": bodies(given.history)}
    if given.summary_through is not None:
        body["summary"] = {"text": "What was said before.", "through_seq": given.summary_through}
    return Made(agent_id, owner.make(server, "/v1/sessions", body)["id"], owner)


def bodies(history: Sequence[Said]) -> list[dict[str, Any]]:
    return [
        {"role": message.role.value, "content": json.loads(content_json(message.content))}
        | ({"model": message.model} if message.model else {})
        for message in build(history)
    ]
