"""Ids of calls on the wire: legal, and one for one call. Pure.

Ids like `call_0` come back in every turn, and a wire that wants each id once refuses that. A provider's own tools have
ids of a form of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from hango.dialect import clean_names, fitting
from hango.messages import Block, is_call, is_result

SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]{1,55}", re.ASCII)


class Ids:
    """Built from all blocks of a request, then asked block by block in their order."""

    def __init__(self, blocks: Iterable[Block], allowed: re.Pattern[str]) -> None:
        found = [block for block in blocks if is_call(block.type) or is_result(block.type)]
        self._allowed = allowed
        stored = [(_stored(block), _maker(block)) for block in found]
        self._cleaned = clean_names((id for id, _ in stored), allowed)
        self._taken = {self._clean(id, maker) for id, maker in stored}
        self._uses: dict[str, int] = {}
        self._waiting: dict[tuple[str, str], list[str]] = {}
        self._answered: dict[tuple[str, str], str] = {}

    def of_call(self, call: Block) -> str:
        """The call's stored id where it is legal and new in this request, else one made of it."""
        key = stored, maker = _stored(call), _maker(call)
        made = clean = self._clean(stored, maker)
        uses = self._uses[clean] = self._uses.get(clean, 0) + 1
        if uses > 1:
            tail = f"_{uses}"
            made = fitting(clean, tail, self._allowed)
            while made in self._taken:
                tail += "_"
                made = fitting(clean, tail, self._allowed)
            self._taken.add(made)
        self._waiting.setdefault(key, []).append(made)
        return made

    def of_result(self, result: Block) -> str:
        """The id of the nearest call before it that has no result, else of the one that was answered last."""
        key = stored, maker = _stored(result), _maker(result)
        if waiting := self._waiting.get(key):
            self._answered[key] = waiting.pop()
        answered = self._answered.get(key)
        return self._clean(stored, maker) if answered is None else answered

    def _clean(self, stored: str, maker: str) -> str:
        if maker != "server":
            return self._cleaned[stored]
        if SERVER_ID.fullmatch(stored):
            return stored
        base = re.sub(r"[^a-zA-Z0-9_]", "_", stored)[:40]
        return f"srvtoolu_{base}_{sha256(stored.encode()).hexdigest()[:8]}"


def _stored(block: Block) -> str:
    view = block.view
    return (view.id if is_call(view.type) else view.tool_use_id) or ""


def _maker(block: Block) -> str:
    """Whose call or result it is: the client's, an MCP server's, or the provider's own."""
    type = block.type
    if type in ("tool_use", "tool_result"):
        return "client"
    return "mcp" if type.startswith("mcp_") else "server"
