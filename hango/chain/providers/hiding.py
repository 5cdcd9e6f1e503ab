"""Keys taken out of a provider's words: some providers repeat the key that they refuse. Pure."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from hango.config.values import Secret

MASK = "***"
# A shorter key is no secret, but a word that stands where a key is asked for; it is hidden where it stands alone.
SHORT = 8
# Keys are also repeated in part. So many letters are told from words.
BEGINNING = 12
# Forms that keys have, whoever they belong to.
KEY_LIKE = r"\b(?:sk-|gsk_|xai-|hango_|AIza|gh[pousr]_)[^\s\"'<>,;)]{4,}|\b[Bb]earer +[^\s\"'<>,;)]+"


class Hidden:
    """The keys of this process, to be taken out of texts."""

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        forms = [form for secret in secrets if secret.reveal() for form in _forms(secret.reveal())]
        # The longest first: a shorter one may be its beginning.
        self._pattern = re.compile("|".join([*sorted(set(forms), key=len, reverse=True), KEY_LIKE]))

    def without_keys(self, text: str) -> str:
        return self._pattern.sub(MASK, text)

    def one_line(self, text: str, most: int) -> str:
        """The text without keys and control characters, cut at `most` characters."""
        plain = "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in text)
        return self.without_keys(plain).strip()[:most]


def _forms(key: str) -> Iterator[str]:
    """Patterns for the key as it is, its beginning with what follows, and the ways in which a key is written down."""
    if len(key) < SHORT:
        yield rf"(?<!\w){re.escape(key)}(?!\w)"
        return
    yield re.escape(key)
    yield re.escape(quote(key, safe=""))
    yield re.escape(base64.b64encode(key.encode()).decode().rstrip("=")) + "=*"
    if len(key) > BEGINNING:
        yield re.escape(key[:BEGINNING]) + r"\S*"
