"""Reasons of imports in words."""

from __future__ import annotations

import re

from hango.cli import reasons
from hango.errors import Reason
from tools.generate_docs import ROOT


def test_every_flag_of_an_import_has_words() -> None:
    """The command line has words for each flag that docs/import-formats.md lists, and for no other."""
    page = (ROOT / "docs" / "import-formats.md").read_text(encoding="utf-8")
    flags = page.partition("## Flags")[2].partition("## Refusals")[0]

    assert list(reasons.OF_IMPORTS) == re.findall(r"^\| `(\w+)` \|", flags, re.MULTILINE)
    assert {*reasons.OF_IMPORTS, *reasons.OF_STALE} <= {reason.value for reason in Reason}
