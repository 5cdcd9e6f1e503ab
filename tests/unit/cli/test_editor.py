"""The editor of a person, where there is none to use."""

from __future__ import annotations

import io

import pytest

from hango.cli.editor import edit
from hango.cli.exits import Failure


def test_no_editor_is_started_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody named an editor and there is no terminal: it would wait for keys for ever."""
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    with pytest.raises(Failure) as caught:
        edit("text")

    assert caught.value.sentence == "there is no terminal for the editor vi. Set EDITOR, or use --text or --file."
