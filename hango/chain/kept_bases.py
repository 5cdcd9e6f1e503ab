"""A base that a process has read already, for the tries that share it. What a base names never changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hango.chain.state import State, Trunk
from hango.messages import Block
from hango.store.context_bases import CurrentBase

MAX_BASES = 4  # each may hold the bodies of a long history


@dataclass(slots=True)
class KeptBase:
    """`lock` is held while something is read: the tries of a batch start at once and read it once."""

    base: CurrentBase
    trunks: dict[Trunk, State] = field(default_factory=dict)
    bodies: dict[int, Sequence[Block]] = field(default_factory=dict)  # by seq, of the messages that were sent
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
