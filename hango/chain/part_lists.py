"""Lists of part ids as short JSON text: messages that follow each other are one pair of numbers. Pure.

A request of 10,000 messages names them in twenty bytes, however many tries there are of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hango.chain.parts import message_part
from hango.domain import PartID

_Item = str | tuple[int, int]
_decoder = msgspec.json.Decoder(list[_Item])


def encode(parts: Iterable[PartID | int]) -> str:
    """The list as text, in its order. A number is the persisted message of that seq."""
    made: list[str | list[int]] = []
    run: list[int] = []
    for part in parts:
        if isinstance(part, str):
            made.append(part)
            run = []
        elif run and run[1] == part - 1:
            run[1] = part
        else:
            run = [part, part]
            made.append(run)
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
