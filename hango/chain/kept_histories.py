"""What a process has read of the histories that it works on, for the next call of the same session.

A persisted message never changes, so what was read stays right; whether there are more is asked anew for every call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hango.digests import MessageDigest
from hango.domain import SessionID, TenantID
from hango.messages import Block

# Of all histories together; read, a message takes about three times its text.
MAX_CHARS: Final = 16 * 1024 * 1024
# What the digest of a message takes, in characters.
CHARS_A_MESSAGE: Final = 1_024

Key = tuple[TenantID, SessionID]


@dataclass(slots=True)
class KeptHistory:
    """Digests and bodies by seq, and about how many characters they take."""

    digests: dict[int, MessageDigest] = field(default_factory=dict)
    bodies: dict[int, Sequence[Block]] = field(default_factory=dict)
    chars: int = 0

    def add_digests(self, found: Sequence[MessageDigest]) -> None:
        self.digests |= {digest.seq: digest for digest in found}
        self.chars += CHARS_A_MESSAGE * len(found)

    def add_bodies(self, found: Mapping[int, Sequence[Block]]) -> None:
        self.bodies |= found
        self.chars += sum(len(block.json) for blocks in found.values() for block in blocks)


def missing(known: Container[int], seqs: Iterable[int]) -> tuple[int, int] | None:
    """The stretch to read, after one seq and through another, so that all are known."""
    unknown = [seq for seq in seqs if seq not in known]
    return (unknown[0] - 1, unknown[-1]) if unknown else None


class KeptHistories:
    """Keeps those that were used last, as long as all of them are short enough together."""

    def __init__(self, most_chars: int = MAX_CHARS) -> None:
        self._most = most_chars
        self._kept: OrderedDict[Key, KeptHistory] = OrderedDict()

    def get(self, key: Key) -> KeptHistory:
        """What is known of a history; empty when nothing is."""
        return self._kept.get(key) or KeptHistory()

    def put(self, key: Key, history: KeptHistory) -> None:
        self._kept[key] = history
        self._kept.move_to_end(key)
        while sum(one.chars for one in self._kept.values()) > self._most:
            self._kept.popitem(last=False)
