"""Long files of an agent: what a part may have of them."""

from __future__ import annotations

from tests.people import Person

MOST = 262_144  # characters of a part


async def test_of_a_long_skill_only_its_head_matters(caller: Person) -> None:
    """The index lists a skill by its front matter, however long the skill is, and no fault is told of its length."""
    skill = "---\nname: count\ndescription: How to count.\n---\n" + "Count the shelf again. " * 20_000
    agent = await caller.agent(builtin=["skills"], system=[])
    await caller.put(f"/v1/agents/{agent['id']}/files/skills/count/SKILL.md", json={"content": skill})
    session = await caller.session(agent["id"], messages=[{"role": "user", "content": "How many?"}])

    path = f"/v1/sessions/{session['id']}/context"
    found = (await caller.get(path)).json()
    index = (await caller.get(f"{path}?full=system:skills")).json()

    assert [part["id"] for part in found["system"]] == ["system:skills"]
    assert found["problems"] == []
    assert index["content"].endswith("\n- count: How to count.")


async def test_a_long_memory_is_cut_and_told_of(caller: Person) -> None:
    """A memory file over what a part may have is cut there, and `problems` says so; a skill path that is memory too is
    read as memory."""
    text = "---\nname: count\ndescription: How to count.\n---\n" + "x" * MOST
    agent = await caller.agent(builtin=["memory", "skills"], memory=["/skills/count/SKILL.md"], system=[])
    await caller.put(f"/v1/agents/{agent['id']}/files/skills/count/SKILL.md", json={"content": text})
    session = await caller.session(agent["id"], messages=[{"role": "user", "content": "How many?"}])

    path = f"/v1/sessions/{session['id']}/context"
    found = (await caller.get(path)).json()
    memory = (await caller.get(f"{path}?full=system:memory:/skills/count/SKILL.md")).json()

    assert [part["id"] for part in found["system"]] == ["system:memory:/skills/count/SKILL.md", "system:skills"]
    assert [(one["reason"], one["part"]) for one in found["problems"]] == [
        ("file_cut", "system:memory:/skills/count/SKILL.md")
    ]
    assert memory["content"] == text[:MOST]
