"""What the chain needs from outside, built once per process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hango.chain.frames import MAX_FRAMES, Frame
from hango.chain.kept import Kept
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import AgentDefinition, AgentVersionID
from hango.errors import NotFound
from hango.store import agents
from hango.store.connection import Scope, Store

# Definitions are read at every inspect and never change: the last used ones stay in memory.
MAX_DEFINITIONS = 256
MAX_COUNTS = 4096


@dataclass(frozen=True, slots=True)
class Deps:
    settings: Settings
    store: Store
    providers: Providers
    models: Models
    counts: Kept[str, tuple[int, int]] = field(default_factory=lambda: Kept(MAX_COUNTS))  # by providers' counters
    frames: Kept[tuple[Any, ...], Frame] = field(default_factory=lambda: Kept(MAX_FRAMES))
    _definitions: Kept[AgentVersionID, AgentDefinition] = field(default_factory=lambda: Kept(MAX_DEFINITIONS))

    async def definition(self, scope: Scope, version: AgentVersionID) -> AgentDefinition:
        """The definition of an agent's version. The id comes from a scoped look-up, so it is the caller's to see."""
        known = self._definitions.get(version)
        if known is None:
            known = await agents.definition(scope, version)
            if known is None:
                raise NotFound
            self._definitions.put(version, known)
        return known
