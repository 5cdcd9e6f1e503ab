"""A person's own editor on a text: opened in a private file, read back when it is closed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from hango.cli.exits import Failure

FALLBACK = "vi"


def edit(text: str) -> str:
    """The text as it was saved. VISUAL or EDITOR names the program. Raises Failure when it cannot be run, or fails."""
    words = os.environ.get("VISUAL") or os.environ.get("EDITOR")  # noqa: TID251  the person's, no setting
    if not words and not sys.stdin.isatty():  # it would wait for keys that nobody can press
        raise Failure(f"there is no terminal for the editor {FALLBACK}. Set EDITOR, or use --text or --file.")
    words = words or FALLBACK
    with tempfile.TemporaryDirectory(prefix="hango-") as folder:
        file = Path(folder) / "part.txt"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(words), str(file)], check=False)
        except (OSError, ValueError):
            raise Failure(f"the editor {words!r} cannot be run. Set EDITOR, or use --text or --file.") from None
        if done.returncode:
            raise Failure(f"the editor {words!r} ended with {done.returncode}. Nothing was changed.")
        return decoded(file.read_bytes(), "what the editor saved")


def decoded(raw: bytes, what: str) -> str:
    """The text of a file. Raises Failure when it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Failure(f"{what} is not UTF-8. Write it again as UTF-8.") from None
