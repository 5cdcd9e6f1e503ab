"""What an agent's file may be: its path, a name in a store that is never opened on a disk, and its size.

One rule for the API, for memory and for the tools of a run.
"""

from __future__ import annotations

import unicodedata

# Over four times what a part of the context may have; a larger file belongs elsewhere.
CONTENT_CHARS = 1024 * 1024
PATH_CHARS = 1024
PATH_BYTES = 2048  # of UTF-8: an index of PostgreSQL takes keys of 2,700 bytes
# Controls, formats (bidirectional marks among them), halves of surrogate pairs, line and paragraph separators.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What a server puts for bytes of an address that are not UTF-8: two addresses must not name one file.
_NOT_UTF8 = "\ufffd"


def check_path(path: str) -> str | None:
    """What is wrong with a path, in a sentence; None when it is a path."""
    if not path.startswith("/") or path == "/":
        return "A path starts with a slash and names a file, such as /memories/AGENTS.md."
    if len(path) > PATH_CHARS:
        return f"A path has at most {PATH_CHARS} characters."
    if _NOT_UTF8 in path or any(unicodedata.category(letter) in _REFUSED_CATEGORIES for letter in path):
        return "A path holds no control, direction or invisible characters."
    if len(path.encode()) > PATH_BYTES:  # after the halves of surrogate pairs, which cannot be encoded
        return f"A path has at most {PATH_BYTES} bytes of UTF-8."
    if any(segment in {"", ".", ".."} for segment in path[1:].split("/")):
        return "A path has no empty segment, no '.' and no '..'."
    return None
