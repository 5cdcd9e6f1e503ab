"""`./dev faults`: every fault is described, can be asked for by name, and a wrong name is told."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.faults.canaries import Search
from tests.faults.catalogue import FAULTS
from tests.faults.oracle import mann_whitney
from tests.faults.postgres_wire import Conversation
from tests.faults.programs import ROOT


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.faults", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_fault_is_described() -> None:
    """docs/faults.md has one row for each fault, by its name, and no other."""
    text = (ROOT / "docs/faults.md").read_text()
    rows = text[text.index("\n## Faults\n") : text.index("\n## Figures\n")]
    described = re.findall(r"^\| `([a-z0-9-]+)` \|", rows, re.MULTILINE)

    assert described == [*FAULTS]


def test_the_list_names_all() -> None:
    """`--list` prints every name with what it shows, and runs nothing."""
    listed = run("--list")

    assert [line.split()[0] for line in listed.stdout.splitlines()] == [*FAULTS]


def test_a_wrong_name_is_told() -> None:
    """Usage errors end with 2 and name what is wrong."""
    refused = run("thunder")

    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        2,
        "./dev faults: error: there is no fault 'thunder'; --list prints their names.",
    )


def test_canaries_are_found_in_every_form() -> None:
    """As they are, cut to 20 characters, and in base64 at any place."""
    search = Search({"it": "canary-of-a-message-QZJ7"})

    for text in (
        b"x canary-of-a-message-QZJ7 y",
        b"canary-of-a-message-...",
        b"Y2FuYXJ5LW9mLWEtbWVzc2FnZS1RWko3",  # alone
        b"YSBjYW5hcnktb2YtYS1tZXNzYWdlLVFaSjcgYg==",  # between others, at the third place
        b"eHhjYW5hcnktb2YtYS1tZXNzYWdlLVFaSjc=",  # and at the second
    ):
        assert search.found(text) == ["it"]
    assert search.found(b"canary-of-another") == []


def test_the_rank_test_tells_two_places_of_times_apart() -> None:
    """A p near one for the same times, near nothing for times that are all a little later."""
    times = [0.001 * n for n in range(2000)]

    assert mann_whitney(times, times) > 0.9
    assert mann_whitney(times, [one + 0.1 for one in times]) < 0.01


def test_a_conversation_knows_what_its_transaction_asked() -> None:
    """A statement that was prepared before is known by its name, until the transaction is over."""
    heard = Conversation()
    heard.says(b"P\0\0\0\x20_pg3_1\0select claim()\0\0\0")
    heard.hears(b"1\0\0\0\x04Z\0\0\0\x05T")
    heard.says(b"B\0\0\0\x20\0_pg3_1\0\0\0")
    heard.hears(b"Z\0\0\0\x05T")
    heard.says(b"Q\0\0\0\x0bCOMMIT\0")
    in_transaction = heard.asked
    heard.hears(b"Z\0\0\0\x05I")
    heard.says(b"Q\0\0\0\x0bBEGIN\0")

    assert in_transaction.count(b"select claim()") == 2
    assert in_transaction.endswith(b"COMMIT\0")
    assert heard.asked == b"Q\0\0\0\x0bBEGIN\0"
