"""A small real model answers runs: POST, queue, worker, another maker's server, and the answer in the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hango.config import Settings
from tests.cases.try_world import SECONDS, TryWorld, a_try_world
from tests.conftest import Database
from tests.llama import serving

# The model takes what processors there are: one at a time.
pytestmark = pytest.mark.xdist_group("llama")
MODELS = ("anthropic/smollm2", "openai/smollm2")
QUESTIONS = ("How many bolts are in drawer 3?", "And how many nuts?")


def test_a_real_model_answers_runs_on_both_wires(settings: Settings, fresh_database: Database, tmp_path: Path) -> None:
    """Two runs of a session: each appends a question and an answer with stop reason and usage, the second one reads
    what the first one said, and the context of each call, rebuilt later, is the one that was sent."""
    with serving() as llama:
        addresses = {"HANGO_ANTHROPIC_BASE_URL": llama, "HANGO_OPENAI_BASE_URL": f"{llama}/v1"}
        with a_try_world(settings, fresh_database, tmp_path / "world", **addresses) as world:
            told = [talked(world, model) for model in MODELS]

    for first, second, messages, contexts in told:
        assert [(run["status"], run["turns"], run["error"]) for run in (first, second)] == [("succeeded", 1, None)] * 2
        assert {run["stop_reason"] for run in (first, second)} <= {"max_tokens", "end_turn"}
        assert read_by(second) > read_by(first) > 0
        assert all(1 <= run["usage"]["output_tokens"] <= 9 for run in (first, second))
        assert [one["role"] for one in messages] == ["user", "assistant"] * 2
        assert [one["run_id"] for one in messages] == [first["id"]] * 2 + [second["id"]] * 2
        assert all(text_of(one) for one in messages)
        assert [one["exact"] for one in contexts] == [True, True]
    # At temperature 0 the same context gives the same words on each wire.
    assert text_of(told[0][2][1]) == text_of(told[1][2][1])


def talked(world: TryWorld, model: str) -> tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]:
    """Two runs, the messages after them, and what the model saw in each."""
    server, owner = world.server, world.admin
    agent = {
        "name": "stock",
        "model": model,
        "builtin": [],
        "system": [{"name": "agent", "text": "Forty bolts are in drawer 3."}],
        "params": {"temperature": 0, "top_k": 1} if model.startswith("anthropic") else {"temperature": 0},
        "max_output_tokens": 8,
    }
    agent_id = owner.make(server, "/v1/agents", agent)["id"]
    session = owner.make(server, "/v1/sessions", {"agent_id": agent_id})
    path = f"/v1/sessions/{session['id']}"
    made = []
    for question in QUESTIONS:
        accepted = owner.send(server, "POST", f"{path}/runs", {"message": question}).raise_for_status().json()
        made.append(ended(world, accepted["id"]))
    messages = owner.send(server, "GET", f"{path}/messages").raise_for_status().json()["data"]
    contexts = [
        owner.send(server, "GET", f"/v1/runs/{run['id']}/calls/1/context").raise_for_status().json() for run in made
    ]
    return made[0], made[1], messages, contexts


def ended(world: TryWorld, run_id: str) -> dict[str, Any]:
    for _ in range(int(SECONDS)):
        reply = world.admin.send(world.server, "GET", f"/v1/runs/{run_id}?wait=1").raise_for_status()
        found: dict[str, Any] = reply.json()
        if found["status"] not in ("queued", "running"):
            return found
    raise AssertionError(f"the run did not end: {found}")


def read_by(run: dict[str, Any]) -> int:
    """Tokens of the context, from its cache or not."""
    return int(run["usage"]["input_tokens"] + run["usage"]["cache_read_tokens"])


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
