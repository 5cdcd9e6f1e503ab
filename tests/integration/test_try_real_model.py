"""A small real model answers tries: POST, queue, worker, another maker's server, and a wait for the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hango.config import Settings
from tests.cases.try_world import TryWorld, a_try_world
from tests.conftest import Database
from tests.llama import serving

# The model takes what processors there are: one at a time.
pytestmark = pytest.mark.xdist_group("llama")
MODELS = ("anthropic/smollm2", "openai/smollm2")
MEMORY = "system:memory:/memories/AGENTS.md"


def test_a_real_model_answers_on_both_wires(settings: Settings, fresh_database: Database, tmp_path: Path) -> None:
    """The answer comes back with stop reason and usage; less context is fewer tokens read; the same context at
    temperature 0 gives the same words, however often and on which wire it is asked; the session is as it was."""
    with serving() as llama:
        addresses = {"HANGO_ANTHROPIC_BASE_URL": llama, "HANGO_OPENAI_BASE_URL": f"{llama}/v1"}
        with a_try_world(settings, fresh_database, tmp_path / "world", **addresses) as world:
            told = [tried(world, model) for model in MODELS]

    for whole, again, less in told:
        assert [made["status"] for made in (whole, again, less)] == ["succeeded"] * 3, (whole, again, less)
        assert {made["stop_reason"] for made in (whole, again, less)} <= {"max_tokens", "end_turn"}
        assert read_by(whole) == read_by(again) > read_by(less) > 0
        assert all(1 <= made["usage"]["output_tokens"] <= 9 for made in (whole, again, less))
    assert len({text_of(made) for whole, again, _ in told for made in (whole, again)}) == 1
    assert text_of(told[0][0])


def tried(world: TryWorld, model: str) -> list[dict[str, Any]]:
    """Three tries of one session, the last without memory."""
    server, owner = world.server, world.admin
    agent = {
        "name": "stock",
        "model": model,
        "builtin": ["memory"],
        "memory": ["/memories/AGENTS.md"],
        "params": {"temperature": 0, "top_k": 1} if model.startswith("anthropic") else {"temperature": 0},
        "max_output_tokens": 8,
    }
    agent_id = owner.make(server, "/v1/agents", agent)["id"]
    path = f"/v1/agents/{agent_id}/files/memories/AGENTS.md"
    owner.send(server, "PUT", path, {"content": "Forty bolts are in drawer 3. " * 5}).raise_for_status()
    messages = [{"role": "user", "content": "How many bolts are in drawer 3?"}]
    session = owner.make(server, "/v1/sessions", {"agent_id": agent_id, "messages": messages})
    path = f"/v1/sessions/{session['id']}"
    made = []
    for body in ({}, {}, {"exclude": [MEMORY]}):
        accepted = owner.send(server, "POST", f"{path}/context/try", body).raise_for_status().json()
        made.append(world.until(owner, accepted["id"]))
    assert owner.send(server, "GET", path).json() == session
    return made


def read_by(made: dict[str, Any]) -> int:
    """Tokens of the context, from its cache or not."""
    return int(made["usage"]["input_tokens"] + made["usage"]["cache_read_tokens"])


def text_of(made: dict[str, Any]) -> str:
    return "".join(block["text"] for block in made["answer"]["content"])
