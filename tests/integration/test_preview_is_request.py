"""The preview is the request: over agents, sessions and overrides that hypothesis makes, byte for byte."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hango.config import Secret, Settings
from tests.asked import previewed_wire
from tests.people import Api, Person, serve
from tests.providers_server import chat, fake_provider, message, says
from tests.runs import run

# Worlds of one test run; a deeper search is a number away.
WORLDS = int(os.environ.get("HANGO_TEST_WORLDS", "40"))
WIRES = {"anthropic/claude-sonnet-4-5": says(message("Yes.")), "openai/gpt-5": says(chat("Yes."))}
WORDS = st.sampled_from(["Bolts?", "In drawer 3.", "12 of them", "ünï 🔩", "1.10", "a\nb", "   x"])
BUILTIN = ("todo", "filesystem", "subagent", "memory", "skills")
MEMORY, SKILL = "/memories/AGENTS.md", "/skills/sort/SKILL.md"
SKILL_TEXT = "---\nname: sort\ndescription: Sorts screws.\n---\nBy size."

agents = st.fixed_dictionaries(
    {
        "model": st.sampled_from(sorted(WIRES)),
        "system": st.lists(st.sampled_from(["agent", "house", "tone"]), unique=True).flatmap(
            lambda names: st.tuples(*[st.builds(dict, name=st.just(name), text=WORDS) for name in names]).map(list)
        ),
        "builtin": st.lists(st.sampled_from(BUILTIN), unique=True),
        "memory": st.sampled_from([[], [MEMORY], [MEMORY, "/missing.md"]]),
        "max_output_tokens": st.integers(1, 4096),
        "cache": st.builds(dict, enabled=st.booleans(), ttl=st.sampled_from(["5m", "1h"])),
        "tools": st.sampled_from([[], [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]]),
    }
)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns of user and assistant with calls and results, the user's words last."""
    found: list[dict[str, Any]] = []
    for n in range(draw(st.integers(0, 3))):
        found.append({"role": "user", "content": draw(WORDS)})
        if draw(st.booleans()):
            call = {"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {"n": n}}
            result = {"type": "tool_result", "tool_use_id": f"call_{n}", "content": draw(WORDS)}
            found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        found.append({"role": "assistant", "content": draw(WORDS)})
    return [*found, {"role": "user", "content": draw(WORDS)}]


def override(part: str, text: str | None) -> dict[str, str]:
    if text is None:
        return {"part": part, "action": "exclude"}
    return {"part": part, "action": "replace", "replacement": text}


async def ids(person: Person, session_id: str) -> list[str]:
    found = (await person.get(f"/v1/sessions/{session_id}/context?count=estimate")).json()
    return [part["id"] for group in ("system", "tools", "messages") for part in found[group]]


def drawn(data: st.DataObject, parts: list[str]) -> list[dict[str, str]]:
    """Some of the parts left out or replaced; tools are left out only."""
    chosen = data.draw(st.lists(st.sampled_from(parts), unique=True, max_size=3)) if parts else []
    texts = [None if part.startswith("tool:") else data.draw(st.none() | WORDS) for part in chosen]
    return [override(part, text) for part, text in zip(chosen, texts, strict=True)]


async def lay(api: Api, person: Person, agent: dict[str, Any], history: list[dict[str, Any]], data: Any) -> str:
    """The world's session, with its files and its overrides; what would be refused is not saved."""
    made = await person.agent(**agent)
    for path, text in ((MEMORY, "Be kind."), (SKILL, SKILL_TEXT)):
        assert (await person.put(f"/v1/agents/{made['id']}/files{path}", json={"content": text})).is_success
    session_id = str((await person.session(made["id"], messages=history))["id"])
    parts = await ids(person, session_id)
    wanted = {
        f"/v1/agents/{made['id']}/context-overrides": [one for one in parts if not one.startswith("message:")],
        f"/v1/sessions/{session_id}/context-overrides": [one for one in parts if one.startswith("message:")],
    }
    for path, of_scope in wanted.items():
        saved = await person.put(path, json={"overrides": drawn(data, of_scope)})
        assert saved.status_code in (200, 422)
    return session_id


def test_the_preview_is_the_request(settings: Settings) -> None:
    """`GET context?format=provider` is, byte for byte, the body of the first call of a run started with no message, and
    `POST preview` with a message that of a run with the same message."""
    with asyncio.Runner() as runner:
        faking = fake_provider(says(message("Yes.")))
        fake = runner.run(faking.__aenter__())
        key = Secret("a key")
        told = replace(
            settings,
            anthropic_base_url=fake.url,
            anthropic_api_key=key,
            openai_base_url=f"{fake.url}/v1",
            openai_api_key=key,
        )
        serving = serve(told)
        api = runner.run(serving.__aenter__())
        person = runner.run(api.admin())

        worlds: list[str] = []

        async def first_call(session_id: str, model: str, **body: Any) -> bytes:
            fake.answer = WIRES[model]
            fake.seen.clear()
            ended = await run(api, person, session_id, **body)
            assert ended["status"] == "succeeded"
            return fake.seen[0].body

        async def shown(session_id: str) -> bytes:
            reply = await person.get(f"/v1/sessions/{session_id}/context?format=provider")
            return bytes(msgspec.json.decode(reply.content, type=dict[str, msgspec.Raw])["request"])

        @examples(max_examples=WORLDS, deadline=None, database=None, suppress_health_check=[*HealthCheck])
        @given(agents, histories(), WORDS, st.data())
        def one_world(agent: dict[str, Any], history: list[dict[str, Any]], said: str, data: st.DataObject) -> None:
            session_id = runner.run(lay(api, person, agent, history, data))
            asked = runner.run(person.post(f"/v1/sessions/{session_id}/runs?wait=0", json={}))
            assume(asked.status_code == 202)  # a world that a provider would refuse is none
            runner.run(person.post(f"/v1/runs/{asked.json()['id']}/cancel"))

            preview = runner.run(shown(session_id))
            assert runner.run(first_call(session_id, agent["model"])) == preview

            wanted = runner.run(previewed_wire(person, session_id, message=said))
            assert runner.run(first_call(session_id, agent["model"], message=said)) == wanted
            worlds.append(agent["model"])

        try:
            one_world()
        finally:
            runner.run(serving.__aexit__(None, None, None))
            runner.run(faking.__aexit__(None, None, None))

    # Most worlds can be sent, on both wires: the equality above was looked at.
    assert len(worlds) >= WORLDS // 2
    assert set(worlds) == set(WIRES)
