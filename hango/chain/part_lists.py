"""Lists of part ids as short JSON text: messages that follow each other are one pair of numbers. Pure.

A request of 10,000 messages names them in twenty bytes, however many tries there are of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hango.chain.parts import message_part, message_seq
from hango.domain import PartID

_Item = str | tuple[int, int]
_decoder = msgspec.json.Decoder(list[_Item])


def encode(parts: Iterable[PartID]) -> str:
    """The list as text, in its order."""
    made: list[str | list[int]] = []
    for part in parts:
        seq = message_seq(part)
        last = made[-1] if made else None
        if seq is None or seq <= 0:
            made.append(part)
        elif isinstance(last, list) and last[1] == seq - 1:
            last[1] = seq
        else:
            made.append([seq, seq])
    return msgspec.json.encode(made).decode()


def decode(text: str) -> list[PartID]:
    """The list again."""
    parts: list[PartID] = []
    for item in _decoder.decode(text):
        if isinstance(item, str):
            parts.append(PartID(item))
        else:
            parts.extend(message_part(seq) for seq in range(item[0], item[1] + 1))
    return parts
