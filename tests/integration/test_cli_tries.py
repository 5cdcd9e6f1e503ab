"""`hango context try` and `compare` from end to end: commands, an API and a worker in processes of their own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hango.cli.own_command import own_command
from tests import cli_place, live
from tests.command_line import Hango
from tests.services import Services

MEMORY = "system:memory:/memories/AGENTS.md"
QUESTION = "How many bolts are in drawer 3?"
FORTY = "Forty bolts are in drawer 3."


@dataclass(frozen=True)
class Shop:
    """A session whose memory knows the answer, and the commands on it."""

    hango: Hango
    session_id: str

    def __call__(self, command: str, *words: str) -> tuple[int, list[str], list[str]]:
        """Exit code, lines of stdout, lines of stderr."""
        code, out, err = self.hango("context", command, *words, columns=80)
        return code, out.splitlines(), err.splitlines()

    def of_session(self, command: str, *words: str) -> tuple[int, list[str], list[str]]:
        return self(command, "--session", self.session_id, *words)

    def get(self, path: str) -> dict[str, Any]:
        return dict(json.loads(self.hango.get(path)))


@pytest.fixture(scope="module")
def place(services: Services, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with cli_place.own_place(services, redis_url, tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def hango(place: dict[str, str]) -> Iterator[Hango]:
    with cli_place.command_line(place) as made:
        yield made


@pytest.fixture
def worker(place: dict[str, str], tmp_path: Path) -> Iterator[None]:
    with cli_place.working(place, tmp_path / "log"):
        yield


@pytest.fixture
def shop(hango: Hango) -> Shop:
    agent = hango.make(
        "/v1/agents", name="stock", model="offline/extract", builtin=["memory"], memory=["/memories/AGENTS.md"]
    )
    with live.client(hango.url, hango.key) as client:
        path = f"/v1/agents/{agent}/files/memories/AGENTS.md"
        client.put(path, json={"content": f"{FORTY} The nuts are red."}).raise_for_status()
    messages = [{"role": "user", "content": QUESTION}]
    return Shop(hango, hango.make("/v1/sessions", agent_id=agent, title="Bolts", messages=messages))


@pytest.mark.usefixtures("worker")
def test_a_try_answers_and_leaves_the_session_as_it_is(shop: Shop) -> None:
    """try with and without memory gives two answers; the session gets no message and no run, usage gets a row each."""
    before = shop.get(f"/v1/sessions/{shop.session_id}")
    code, with_memory, err = shop.of_session("try")
    without = shop.of_session("try", "--exclude", MEMORY, "--label", "bare")

    assert (code, err) == (0, [])
    assert FORTY in "\n".join(with_memory)
    assert (without[0], without[2]) == (0, [])
    assert FORTY not in "\n".join(without[1])
    assert f"left out: {MEMORY}" in without[1]
    assert shop.get(f"/v1/sessions/{shop.session_id}") == before
    records = shop.get(f"/v1/usage/records?purpose=context_try&session_id={shop.session_id}")["data"]
    assert [(one["run_id"], one["estimated"]) for one in records] == [(None, False)] * 2
    listed = shop.of_session("tries")
    # At 80 columns a time is shown as month, day, hour and minute.
    rows = [line.split()[1:4] for line in listed[1][1:]]
    assert [(day, status) for day, _, status in rows] == [(records[0]["created_at"][5:10], "succeeded")] * 2
    assert listed[1][1].endswith("bare")


@pytest.mark.usefixtures("worker")
def test_a_try_is_looked_at_again(shop: Shop) -> None:
    """--no-wait prints the id at once; --show waits for the answer, and --json prints the API's reply as it came."""
    code, (try_id,), said = shop.of_session("try", "--no-wait", "--replace", f"{MEMORY}=Fifty bolts = drawer 3.")
    waited = shop("try", "--show", try_id)
    json_ = shop("try", "--show", try_id, "--json")

    assert (code, said) == (0, [f"look at it: {own_command()} context try --show {try_id}"])
    assert (waited[0], "Fifty bolts = drawer 3." in "\n".join(waited[1])) == (0, True)
    assert f"replaced: {MEMORY}" in waited[1]
    assert json.loads(json_[1][0]) == shop.get(f"/v1/tries/{try_id}")


def test_a_try_without_a_worker(shop: Shop) -> None:
    """A wait that runs out leaves the try; cancel ends it, and its sentence is told from then on."""
    code, out, err = shop.of_session("try", "--timeout", "1")
    try_id = err[1].rsplit(" ", 1)[1]
    cancelled = shop("cancel", try_id)
    shown = shop("try", "--show", try_id)

    assert (code, out, err[0]) == (3, [], "hango: the try did not end in time and goes on.")
    assert cancelled == (0, [], [f"try {try_id} is cancelled."])
    assert (shown[0], shown[2]) == (1, ["hango: The try was cancelled. (cancelled)"])
    assert shop("cancel", try_id) == cancelled


def test_a_batch_without_a_worker(shop: Shop) -> None:
    """A batch that is not waited for goes on; cancel ends all of it, and then its rows have no answers."""
    code, _, err = shop.of_session("compare", "--without", MEMORY, "--yes", "--timeout", "1")
    batch_id = err[-1].rsplit(" ", 1)[1]
    cancelled = shop("cancel", batch_id)
    shown = shop("compare", "--show", batch_id)

    assert (code, err[-2]) == (3, "hango: the batch did not end in time and goes on.")
    assert cancelled == (0, [], [f"batch {batch_id} has ended: 2 of 2 calls were cancelled."])
    assert (shown[0], shown[1][1].split()[:2]) == (1, ["base", "0/1"])
    assert shown[2] == ["hango: 2 of 2 calls brought no answer: cancelled."]


def test_refusals_of_a_try(shop: Shop) -> None:
    """What the API refuses is one sentence that names the part; nothing is queued."""
    code, out, err = shop.of_session("try", "--replace", "tool:look=x")

    assert (code, out, len(err)) == (1, [], 1)
    assert "tool:look" in err[0]
    assert shop.of_session("tries") == (0, [], [f"no tries. `{own_command()} context try` makes one."])
    listed = f"`{own_command()} context tries --session ID` lists them."
    missing = f"hango: no try or batch {shop.session_id} that you may cancel. {listed}"
    assert shop("cancel", shop.session_id)[2] == [missing]


@pytest.mark.usefixtures("worker")
def test_a_comparison(shop: Shop) -> None:
    """compare says what it would take, sends one batch, and shows the rows as a table, a diff, CSV and JSON."""
    code, out, err = shop.of_session("compare", "--without", MEMORY, "--repeats", "3", "--yes", "--diff")

    assert (code, out[0].split()) == (0, ["variant", "calls", "tokens", "in", "cost", "seconds", "stop", "tools"])
    assert out[1].split()[:2] == ["base", "3/3"]
    assert out[3].split()[:3] == ["without", "system…ories/AGENTS.md", "3/3"]
    assert err[0].startswith("2 variants × 3 = 6 calls, estimated: ")
    assert [line for line in out if line.startswith("-") and FORTY in line]

    _, (_, listed), _ = shop.of_session("tries", "--batches")
    batch_id = listed.split()[0]
    table = list(csv.DictReader(io.StringIO("\n".join(shop("compare", "--show", batch_id, "--csv")[1]))))
    made = json.loads(shop("compare", "--show", batch_id, "--json")[1][0])

    assert [(one["variant"], one["calls"], one["distinct_answers"]) for one in table] == [
        ("base", "3", "1"),
        (f"without {MEMORY}", "3", "1"),
    ]
    assert made["batch"] == shop.get(f"/v1/try-batches/{batch_id}")
    assert made["tries"] == [shop.get(f"/v1/tries/{one['id']}") for one in made["tries"]]


def test_a_comparison_that_is_refused(shop: Shop, tmp_path: Path) -> None:
    """A variant that the API refuses is named by its line; without a terminal nothing is sent unasked."""
    file = tmp_path / "variants.jsonl"
    file.write_text('{"exclude": ["tool:none"]}\n{"exclude": ["nonsense"]}\n', encoding="utf-8")
    refused = shop.of_session("compare", str(file), "--yes")
    unasked = shop.of_session("compare", "--without", MEMORY)

    assert (refused[0], refused[1], len(refused[2])) == (1, [], 1)
    assert refused[2][0].startswith(f"hango: {file}, line 2: ")
    assert (unasked[0], unasked[2][-1]) == (
        2,
        "hango: there is no terminal to ask on, so nothing was sent. --yes sends without asking.",
    )
    assert shop.of_session("tries", "--batches")[2] == [f"no batches. `{own_command()} context compare` makes one."]
