"""docs/learning/context-inspector.md: its outline, and its commands typed in a clone with `hango up`."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from hango.cli.demo import seed
from hango.cli.serve import make_tenant
from hango.config import Settings
from tests.docs.shown_commands import Reader, Shown, matches, section, shown
from tests.docs.test_docs import page
from tests.live import client, serving
from tests.upping import up

PAGE = "docs/learning/context-inspector.md"
# The specification's outline of this page, point for point.
OUTLINE = [
    "Concept",
    "Design choices",
    "Why overrides must keep the request valid",
    "The cost of editing the prefix",
    "Trade-offs",
    "Compared with AICoworker",
    "Compared with goclaw",
    "Compared with deepagents",
    "How to debug this layer",
    "Exercises",
    "Time budget",
]
EXERCISES = [
    "Exclude the skills index and ask about a skill",
    "Exclude an old tool result and watch its partner go with it",
    "Compare an answer with and without memory",
]
REFUSED = ["./dev context exclude --session ID message:1"]  # shown because it is


@contextmanager
def reading() -> Iterator[Reader]:
    """A reader after `./dev up --fresh`."""
    with tempfile.TemporaryDirectory(prefix="hango-home-") as home, up(Path(home)) as running:
        with client(running.url, str(running.written["api_key"])) as api:
            (session,) = api.get("/v1/sessions").raise_for_status().json()["data"]
        yield Reader(running, session["id"])


def differences(reader: Reader, commands: Sequence[Shown]) -> list[tuple[str, int, list[str]]]:
    """Of the commands, typed one after another, those that print or end otherwise than the page says."""
    wrong = []
    for one in commands:
        code, lines = reader.types(one.command)
        if code != (1 if one.command in REFUSED else 0) or not matches(lines, one.lines):
            wrong.append((one.command, code, lines))
    return wrong


def test_the_page_follows_its_outline() -> None:
    """docs/learning/context-inspector.md has every point of the outline, in its order, and the three exercises."""
    assert re.findall(r"^## (.+)$", page(PAGE), re.MULTILINE) == OUTLINE
    assert re.findall(r"^### (.+)$", page(PAGE), re.MULTILINE) == EXERCISES


def test_what_the_sources_cost(settings: Settings) -> None:
    """The table of sources has every token of the demo's next request, each source with its own."""
    key = make_tenant(settings, "learner").api_key
    with serving(settings) as url, client(url, key) as api:
        snapshot = api.get(f"/v1/sessions/{seed(url, key)}/context").raise_for_status().json()
    sizes = Counter[str]()
    for part in [*snapshot["system"], *snapshot["tools"], *snapshot["messages"]]:
        sizes[part["id"] if part["kind"] == "system" else part["kind"]] += part["tokens"]

    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([\d,]+) \|$", section(page(PAGE), "Concept"), re.MULTILINE)
    named = {re.sub(r"^`(tool|message):.*", r"\1", cell.strip()).replace("`", ""): total for cell, total in rows}
    told = {cell: int(total.replace(",", "")) for cell, total in named.items()}
    assert told == {cell: sum(sizes[part] for part in cell.split(", ")) for cell in named}
    assert sum(told.values()) == snapshot["total_after"]


@pytest.mark.parametrize("headings", [OUTLINE[:9], OUTLINE[9:]], ids=["up to debugging", "exercises"])
def test_what_the_commands_of_the_page_print(headings: list[str]) -> None:
    """Each command that the page shows, typed after `./dev up --fresh`, prints what stands below it."""
    text = "\n".join(section(page(PAGE), heading) for heading in headings)
    commands = shown(text)
    with reading() as reader:
        wrong = differences(reader, commands)

    assert [f"$ {one.command}" for one in commands] == re.findall(r"^\$ .*$", text, re.MULTILINE)
    assert wrong == []


def test_each_exercise_shows_what_it_is_about() -> None:
    """Its own words: the index gone and back, the partner that was not named, an answer with and without memory."""
    skill, pair, memory = (text for text in section(page(PAGE), "Exercises").split("\n### ")[1:])

    asked = [one.lines[0] for one in shown(skill) if " run " in one.command]
    assert ["load_skill" in line for line in asked] == [False, True]
    assert " [ ] message:4     13  left out with message:5" in shown(pair)[0].lines
    answers = [one.lines[0] for one in shown(memory) if " try " in one.command]
    assert ["away on Mondays" in line for line in answers] == [True, False]


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (["a", "b", "c"], True),
        (["a", "..."], True),
        (["...", "b", "..."], True),
        (["...", "c", "..."], True),
        (["a", "...", "c"], True),
        (["a", "b"], False),
        (["...", "d", "..."], False),
        (["a", "...", "b"], False),
        ([], False),
    ],
)
def test_what_a_line_of_dots_stands_for(wanted: list[str], holds: bool) -> None:
    """Any lines, also none; everything else has to be there, and in this order."""
    assert matches(["a", "b", "c"], wanted) is holds
