"""The command line as a person calls it, in this process: its words, its streams, its exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hango.cli.main import main


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Call `run("context", "show", HANGO_API_URL=...)`; the environment holds nothing else of hango."""
    for name in [name for name in os.environ if name.startswith("HANGO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HANGO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: str, **env: str) -> Ended:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return call
