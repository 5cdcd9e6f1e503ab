"""A question to the person at the terminal."""

from __future__ import annotations

import sys

from hango.cli import output


def someone_there() -> bool:
    """Somebody reads stderr and can answer on stdin."""
    return output.stderr_is_terminal() and sys.stdin is not None and sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Ask for yes or no on stderr; everything but yes is no. Somebody must be there."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
