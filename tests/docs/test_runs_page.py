"""docs/runs.md against the code: its statuses, its settings, its bodies, its commands."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from hango import config
from hango.api.runs import RunIn
from hango.api.session_messages import MessagesIn
from hango.domain import RunStatus
from hango.runs import OPEN, RunError
from tests.docs.shown_commands import Reader, section
from tests.docs.test_docs import first_cells, page
from tests.live import client
from tests.upping import up

RUNS = "docs/runs.md"
SUMMARIZED = {"trigger_tokens": 1000, "keep_messages": 2}


def test_every_status_is_documented() -> None:
    """The closed set of statuses, in its order; the drawing has each of them as a state, ends without a way out."""
    arrows = re.findall(r"^    (\w+|\[\*\]) --> (\w+)", page(RUNS), re.MULTILINE)

    assert first_cells(page(RUNS), "status") == [status.value for status in RunStatus]
    assert {end for _, end in arrows} == {status.value for status in RunStatus}
    assert {start for start, _ in arrows} == {"[*]", *(status.value for status in OPEN)}


def test_every_error_that_the_page_names_is_one() -> None:
    """What a run has `failed` with is of the closed set."""
    named = set(re.findall(r"`failed`\s+with\s+`(\w+)`", page(RUNS)))

    assert {"worker_lost", "too_many_turns", "too_many_tokens", "quota_exceeded", "queue_expired"} <= named
    assert named <= {error.value for error in RunError}


def test_every_setting_that_the_page_names_is_one() -> None:
    """A variable on the page is one of the table of settings, and all that bound a run are there."""
    known = {row.name for row in config.table()}
    named = set(re.findall(r"`(HANGO_\w+)`", page(RUNS)))

    assert named <= known
    assert {name for name in known if name.startswith("HANGO_RUN_")} <= named


def test_the_bodies_are_ones_that_the_api_takes() -> None:
    """The JSON of the page is read by the models of its routes."""
    *starts, results = re.findall(r"^(\{.*\})$", page(RUNS), re.MULTILINE)

    for start in starts:
        assert RunIn.model_validate(json.loads(start)).model_dump(exclude={"message"}) == {}
    assert len(starts) == 2
    assert len(MessagesIn.model_validate(json.loads(results)).messages) == 1


def test_the_commands_of_the_page_work() -> None:
    """Each command, those of the first page too, in its order, on a session that is long enough to be summarized."""
    first_page = section(page("README.md"), "Run, and see what the model saw")
    commands = re.findall(r"^\./dev .*$", first_page + page(RUNS), re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="hango-home-") as home, up(Path(home)) as running:
        with client(running.url, str(running.written["api_key"])) as api:
            agent = {"name": "desk", "model": "offline/extract", "builtin": [], "compaction": SUMMARIZED}
            messages = [{"role": ("user", "assistant")[i % 2], "content": f"Box {i} holds bolts."} for i in range(6)]
            agent_id = api.post("/v1/agents", json=agent).raise_for_status().json()["id"]
            body = {"agent_id": agent_id, "title": "Bolts", "messages": messages}
            session_id = api.post("/v1/sessions", json=body).raise_for_status().json()["id"]
        reader = Reader(running, session_id)
        runs = [f'./dev run --session ID "Which box is it, number {n}?"' for n in (1, 2)]
        done = {command: reader.types(command) for command in [*runs, *commands]}

    assert {command: lines for command, (code, lines) in done.items() if code != 0} == {}
    assert len(commands) == 13
