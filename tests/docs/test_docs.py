"""Documentation that cannot go stale: every closed table of the code has its rows, every link leads somewhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hango import config
from hango.api.routes import ROUTES
from hango.api.run_errors import SENTENCES
from hango.chain.stack import STACK
from hango.cli.exits import ExitCode
from hango.domain import AuditAction
from hango.errors import Reason
from hango.logs import Fields, Log
from hango.runs import RunError
from hango.telemetry.names import Attr, Content, Event, Metric, Span

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_cells(text: str, heading: str) -> list[str]:
    """The first cell of each row of the tables whose first column has this heading, without marks."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            found += re.findall(r"`([^`]+)`", cells[0]) or [cells[0]]
        elif cells[0] == heading:
            inside = True
    return found


def test_every_variable_is_documented() -> None:
    """docs/configuration.md lists every variable, and none that does not exist."""
    assert first_cells(page("docs/configuration.md"), "variable") == [row.name for row in config.table()]


def test_generated_blocks_are_fresh() -> None:
    """What is generated from the code equals what is committed."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate_docs", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_of_telemetry_is_documented() -> None:
    """docs/telemetry.md lists every span, event, attribute, metric, log event and log field, and no other."""
    text = page("docs/telemetry.md")
    added = {"error", "at", "sqlstate", "constraint", "logger", "text"}  # by hango.logs itself, not by a caller

    assert {
        "span": first_cells(text, "span"),
        "span event": first_cells(text, "span event"),
        "attribute": sorted(first_cells(text, "attribute")),
        "attribute with content": first_cells(text, "attribute with content"),
        "metric": first_cells(text, "metric"),
        "event": first_cells(text, "event"),
        "field": sorted(first_cells(text, "field")),
    } == {
        "span": [name.value for name in Span],
        "span event": [name.value for name in Event],
        "attribute": sorted(name.value for name in Attr),
        "attribute with content": [name.value for name in Content],
        "metric": [name.value for name in Metric],
        "event": [name.value for name in Log],
        "field": sorted({*Fields.__annotations__, *added}),
    }


def test_every_audit_action_is_documented() -> None:
    """docs/audit.md lists the closed set of actions."""
    assert first_cells(page("docs/audit.md"), "action") == [action.value for action in AuditAction]


def test_every_route_is_documented() -> None:
    """docs/http-api.md has every row of the table of routes."""
    text = page("docs/http-api.md")

    missing = [f"{row.method} {row.path}" for row in ROUTES if row.path.replace(":path", "") not in text]

    assert missing == []


def test_every_reason_is_documented() -> None:
    """Codes and reasons are closed sets, listed in docs/http-api.md."""
    text = page("docs/http-api.md")

    assert [reason.value for reason in Reason if f"`{reason.value}`" not in text] == []


def test_every_run_error_is_documented_with_its_sentence() -> None:
    """docs/http-api.md lists the errors of runs, in their order, each with the sentence that the API says."""
    text = page("docs/http-api.md")

    assert first_cells(text, "run error") == [error.value for error in RunError]
    assert [error for error, sentence in SENTENCES.items() if f"| `{error}` | {sentence} |" not in text] == []


def test_every_exit_code_is_documented() -> None:
    """docs/cli.md lists the exit codes."""
    assert first_cells(page("docs/cli.md"), "exit code") == [str(code.value) for code in ExitCode]


def test_every_slot_is_documented_in_its_order() -> None:
    """docs/system-architecture.md lists the slots as the stack has them."""
    rows = first_cells(page("docs/system-architecture.md"), "slot")

    assert rows == ["the agent's own blocks", *(slot.name for slot in STACK)]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """A link between pages names a file that is there, and a heading that it has."""
    here = (ROOT / name).parent
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (here / path).resolve() if path else ROOT / name
        if not found.exists() or (anchor and anchor not in anchors(found)):
            dead.append(target)

    assert dead == []


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_files_that_a_page_names_exist(name: str) -> None:
    """A path of the project in a page leads to a file or folder."""
    named = set(re.findall(r"`((?:hango|tests|tools|docs|deploy)/[\w./*-]*)`", page(name)))

    assert [path for path in sorted(named) if not list(ROOT.glob(path))] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_page_names_a_machine(name: str) -> None:
    """Pages speak about the project alone: no path of a machine, no address inside a network."""
    folders, networks = r"/(?:work|home|root|Users|tmp)/", r"\b(?:10|192\.168|172\.\d{2})(?:\.\d{1,3}){2,3}\b"

    assert re.findall(f"{folders}|{networks}|TODO|FIXME", page(name)) == []


def test_decisions_are_short_complete_and_listed() -> None:
    """A record has Context, Decision, Consequences and Alternatives in at most 60 lines, and a row in the list."""
    records = sorted((ROOT / "docs/decisions").glob("0*.md"))
    index = page("docs/decisions/README.md")
    found = {}
    for record in records:
        text = record.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix(f"# {record.name[:4]} ")
        assert len(text.splitlines()) <= 60, record.name
        assert f"[{record.name[:4]}]({record.name}) | {title} |" in index, record.name
        found[record.name[:4]] = re.findall(r"^## (\w+)$", text, re.MULTILINE)

    assert found == {
        f"{number:04}": ["Context", "Decision", "Consequences", "Alternatives"] for number in range(1, len(records) + 1)
    }


def test_the_glossary_is_in_order() -> None:
    """One line a word, in alphabetical order, no word twice."""
    words = first_cells(page("docs/glossary.md"), "word")

    assert words == sorted(set(words), key=str.lower)


def test_the_changelog_starts_with_what_is_unreleased() -> None:
    """CHANGELOG.md has [Unreleased] on top."""
    assert re.findall(r"^## (.+)$", page("CHANGELOG.md"), re.MULTILINE)[0] == "[Unreleased]"


def test_only_the_settings_read_the_environment() -> None:
    """Configuration is read once; another module that names a variable must be one that starts processes."""
    cli = {"up", "services", "output", "text", "editor"}
    starts_processes = {f"hango/cli/{name}.py" for name in cli}
    readers = set()
    for path in ROOT.glob("hango/**/*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"} for node in ast.walk(tree)):
            readers.add(str(path.relative_to(ROOT)))

    assert readers - starts_processes == {"hango/config/__init__.py"}
