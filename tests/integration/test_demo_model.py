"""`./dev up --demo-model`: a real model on this machine answers tries, through the API and the worker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hango.cli.embedded.process import wait_until
from hango.cli.model_server import WINDOW
from tests.live import client
from tests.upping import SECONDS, Up, up

# The model takes what processors there are: one at a time.
pytestmark = pytest.mark.xdist_group("llama")
TEXT = "hex bolts"  # of the session, in memory and messages


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hango-home-"))
    yield folder
    shutil.rmtree(folder)


def session_of(running: Up) -> str:
    """The id in the greeting's first command, which asks the small model."""
    line = next(line for line in running.greeting.splitlines() if " context try " in line)
    return line.split("--session ")[1].split()[0]


def tried(api: httpx2.Client, session: str, **body: Any) -> dict[str, Any]:
    """A try, at its end."""
    made = api.post(f"/v1/sessions/{session}/context/try", json=body).json()
    while made["status"] in {"queued", "running"}:
        made = api.get(f"/v1/tries/{made['id']}", params={"wait": "30"}).json()
    found: dict[str, Any] = made
    return found


def test_a_real_model_answers(home: Path) -> None:
    """A second demo session runs on it: a real answer through POST try, worker and wait, with usage and no cost; it is
    started again when it ends; nothing of a request stands in its log."""
    with up(home, "--demo-model") as running:
        session = session_of(running)
        with client(running.url, str(running.written["api_key"])) as api:
            shown = api.get(f"/v1/sessions/{session}/context").json()
            first = tried(api, session)
            without = tried(api, session, exclude=["system:stock"])
            kill_model(running)
            again = tried(api, session, message="Say hello.")
        assert running.end() == 0
        assert running.all_gone()

    assert (shown["model"], shown["window"]) == ("openai/smollm2-135m-instruct", WINDOW)
    assert [outcome(made) for made in (first, without, again)] == [("succeeded", None, "end_turn", None)] * 3
    assert all(text(made) for made in (first, without, again))
    assert first["usage"]["input_tokens"] > without["usage"]["input_tokens"] > 0
    assert TEXT not in (home / "model.log").read_text()


def outcome(made: dict[str, Any]) -> tuple[Any, ...]:
    return made["status"], made["error"], made["stop_reason"], made["usage"]["cost_usd"]


def text(made: dict[str, Any]) -> str:
    return "".join(block["text"] for block in made["answer"]["content"])


def kill_model(running: Up) -> None:
    """Afterwards another process answers in its place."""
    old = running.pids["model"]
    os.kill(old, signal.SIGKILL)
    assert wait_until(lambda: json.loads((running.home / "up.json").read_text())["pids"]["model"] != old, SECONDS)
