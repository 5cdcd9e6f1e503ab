"""How a person calls hango: what is printed for pasting begins with it."""

from __future__ import annotations

import shlex
from pathlib import Path

import hango


def own_command() -> str:
    """By the launcher of the checkout, where there is one: in a clone no `hango` is on the PATH."""
    launcher = Path(hango.__file__).resolve().parents[1] / "dev"
    if not launcher.exists():
        return "hango"
    return "./dev" if _is_here(launcher.parent) else shlex.quote(str(launcher))


def line(*words: str) -> str:
    """A command of hango as it can be pasted."""
    return f"{own_command()} {shlex.join(words)}"


def _is_here(folder: Path) -> bool:
    try:
        return Path.cwd().resolve() == folder
    except FileNotFoundError:  # the folder that one is in was removed
        return False
