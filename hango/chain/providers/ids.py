"""Ids of calls on the wire: legal, and one for one call. Pure.

Ids like `call_0` come back in every turn, and a wire that wants each id once refuses that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hango.dialect import clean_names, fitting
from hango.messages import Block, is_call, is_result


class Ids:
    """Built from all blocks of a request, then asked block by block in their order."""

    def __init__(self, blocks: Iterable[Block], allowed: re.Pattern[str]) -> None:
        found = {_stored(block) for block in blocks if is_call(block.type) or is_result(block.type)}
        self._allowed = allowed
        self._cleaned = clean_names(found, allowed)
        self._taken = set(self._cleaned.values())
        self._uses: dict[str, int] = {}
        self._now: dict[tuple[str, str], str] = {}

    def of_call(self, call: Block) -> str:
        """The call's stored id where it is legal and new in this request, else one made of it."""
        stored = _stored(call)
        made = self._cleaned[stored]
        uses = self._uses[stored] = self._uses.get(stored, 0) + 1
        if uses > 1:
            tail = f"_{uses}"
            made = fitting(self._cleaned[stored], tail, self._allowed)
            while made in self._taken:
                tail += "_"
                made = fitting(self._cleaned[stored], tail, self._allowed)
            self._taken.add(made)
        self._now[_maker(call), stored] = made
        return made

    def of_result(self, result: Block) -> str:
        """The id of the nearest call before it."""
        stored = _stored(result)
        return self._now.get((_maker(result), stored), self._cleaned[stored])


def _stored(block: Block) -> str:
    return (block.view.id if is_call(block.type) else block.view.tool_use_id) or ""


def _maker(block: Block) -> str:
    """Whose call or result it is: the client's, an MCP server's, or the provider's own."""
    if block.type in ("tool_use", "tool_result"):
        return "client"
    return "mcp" if block.type.startswith("mcp_") else "server"
