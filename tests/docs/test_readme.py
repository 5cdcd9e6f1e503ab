"""The first page shows what the product really prints."""

from __future__ import annotations

from hango.cli.demo import seed
from hango.cli.serve import make_tenant
from hango.config import Settings
from tests.live import serving
from tools.record_readme import BLOCK, README, record


def test_the_recording_is_what_the_command_prints(settings: Settings) -> None:
    """README shows a real recording of `context show` (made again by tools/record_readme.py)."""
    api_key = make_tenant(settings, "readme").api_key
    with serving(settings) as url:
        made = record(url, api_key, seed(url, api_key))

    assert [block["text"] for block in BLOCK.finditer(README.read_text(encoding="utf-8"))] == [made]
