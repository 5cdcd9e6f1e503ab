"""What the chain needs from outside, built once per process."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import AgentDefinition, AgentVersionID
from hango.errors import NotFound
from hango.store import agents
from hango.store.connection import Scope, Store

# Definitions are read at every inspect and never change: the last used ones stay in memory.
MAX_DEFINITIONS = 256


@dataclass(frozen=True, slots=True)
class Deps:
    settings: Settings
    store: Store
    providers: Providers
    models: Models
    counts: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict)  # of providers, see counting.py
    _definitions: OrderedDict[AgentVersionID, AgentDefinition] = field(default_factory=OrderedDict)

    async def definition(self, scope: Scope, version: AgentVersionID) -> AgentDefinition:
        """The definition of an agent's version. The id comes from a scoped look-up, so it is the caller's to see."""
        known = self._definitions.get(version)
        if known is None:
            known = await agents.definition(scope, version)
            if known is None:
                raise NotFound
            self._definitions[version] = known
            while len(self._definitions) > MAX_DEFINITIONS:
                self._definitions.popitem(last=False)
        else:
            self._definitions.move_to_end(version)
        return known
