"""How a person calls hango, as hints print it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import hango
from hango.cli.own_command import line, own_command

CHECKOUT = Path(hango.__file__).resolve().parents[1]


def test_in_a_clone_hints_name_its_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clone no `hango` is on the PATH: hints begin with ./dev there, and with its whole path elsewhere."""
    monkeypatch.chdir(CHECKOUT)
    assert line("context", "include", "tool:a b") == "./dev context include 'tool:a b'"

    monkeypatch.chdir(tmp_path)
    assert own_command() == shlex.quote(str(CHECKOUT / "dev"))


def test_installed_hints_name_hango(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, without a launcher beside it, hango is called by its name."""
    monkeypatch.setattr(hango, "__file__", str(tmp_path / "site-packages" / "hango" / "__init__.py"))

    assert own_command() == "hango"
