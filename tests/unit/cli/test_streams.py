"""Streams that are closed or full, and arguments that are no text: one sentence, and a code of the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.api import KEY, reply, serving

AGENT = {"id": "01a22e2a-c761-7432-80f1-69e06686fc7a", "name": "stock"}
LISTED = reply({"data": [AGENT], "next_cursor": None})
CLOSED = "hango: stdout is closed, so nothing can be shown.\n"
FULL = "hango: the output cannot be written: no space left on device.\n"
NOT_UTF8 = "hango: an argument of this command is not UTF-8. Write it again as UTF-8.\n"
NO_INPUT = "hango: stdin is closed, so there is nothing to import. Name a file.\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("agents --json >&-", 1, CLOSED),
        ("agents --json >/dev/full", 1, FULL),
        ("agents >/dev/full", 1, FULL),
        ("agents --json 2>&- >/dev/null", 0, ""),
        ("import - <&-", 1, NO_INPUT),
        ("agents --q \"$(printf '\\377')\"", 1, NOT_UTF8),
        ("context show --session \"$(printf '\\377')\"", 1, NOT_UTF8),
    ],
)
def test_closed_and_full_streams(words: str, code: int, said: str, tmp_path: Path) -> None:
    """A stream that cannot be used is one sentence, never a trace of the program."""
    with serving({"GET": LISTED}) as api:
        env = {"HANGO_API_URL": api.url, "HANGO_API_KEY": KEY, "HANGO_HOME": str(tmp_path), "COLUMNS": "100"}
        ended = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m hango {words}'],
            check=False,
            env=env,
            stderr=subprocess.PIPE,
            timeout=60,
        )

    assert (ended.returncode, ended.stderr.decode()) == (code, said)
