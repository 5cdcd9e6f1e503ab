"""Small files with one job: a file that wants more lines is two nouns."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = "hango/store/db/"
MOST, MOST_OF_A_TEST = 300, 500


def test_no_file_is_longer_than_its_cap() -> None:
    """A file of the product has at most 300 lines, one of the tests 500; generated ones are not read by people."""
    listed = subprocess.run(["git", "ls-files", "*.py", "dev"], cwd=ROOT, capture_output=True, text=True, check=True)
    lengths = {
        path: len((ROOT / path).read_text().splitlines()) for path in listed.stdout.split() if (ROOT / path).exists()
    }

    assert {
        path: lines
        for path, lines in lengths.items()
        if lines > (MOST_OF_A_TEST if path.startswith("tests/") else MOST) and not path.startswith(GENERATED)
    } == {}
