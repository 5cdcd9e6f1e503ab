"""Words that stand in content and secrets alone, and the search for them where no content may be."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redis import Redis

MESSAGE: Final = "canary-of-a-message-QZJ7"
OVERRIDE: Final = "canary-of-an-override-QZJ8"
PROVIDER_KEY: Final = "sk-canary-of-a-provider-key-QZJ9"
FIRST_CHARS: Final = 20


def forms(word: str) -> list[bytes]:
    """As it is, cut short, and as other encodings write it."""
    raw = word.encode()
    # Of base64 what does not depend on what stands before: from each of the three places in a group of bytes.
    shifted = [base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3)]
    return [raw, raw[:FIRST_CHARS], quote(word, safe="").encode(), *shifted]


class Search:
    """For all forms of the given words, by the word's name."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._patterns = {
            name: re.compile(b"|".join(re.escape(form) for form in forms(word))) for name, word in words.items()
        }

    def found(self, text: bytes) -> list[str]:
        """The names of what stands in it."""
        return [name for name, pattern in self._patterns.items() if pattern.search(text)]

    def in_files(self, files: Iterable[Path]) -> list[str]:
        """What stands where, over all lines of each file."""
        return [f"{name} in {one.name}" for one in files if one.exists() for name in self.found(one.read_bytes())]


def dump(redis: Redis) -> bytes:
    """Every key of every kind with its value."""
    redis.config_set("rdbcompression", "no")  # or a long value could not be read in the dump
    pieces: list[bytes] = []
    for key in redis.scan_iter():
        pieces += [key, redis.dump(key) or b""]
    return b"\n".join(pieces)
