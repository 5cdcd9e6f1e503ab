"""What a request takes from an agent: immutable, one per version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from hango.messages import ToolSpec


class Builtin(StrEnum):
    """The built-in contributors an agent may switch on, in the order of their blocks."""

    TODO = "todo"
    FILESYSTEM = "filesystem"
    SUBAGENT = "subagent"
    MEMORY = "memory"
    SKILLS = "skills"


class SystemBlock(msgspec.Struct, frozen=True):
    """One named block of an agent's system prompt: the part `system:<name>`."""

    name: str
    text: str


class Compaction(msgspec.Struct, frozen=True):
    """When a history is summarized (tokens of the filtered request) and how many messages stay as they are."""

    trigger_tokens: int | None = None  # None: 85 % of the model's window
    keep_messages: int = 20


class Cache(msgspec.Struct, frozen=True):
    enabled: bool = True
    ttl: str = "5m"  # or "1h"


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """All that a request takes from an agent: immutable, one per version."""

    model: str  # "<provider>/<model>"
    system: tuple[SystemBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    builtin: frozenset[Builtin] = frozenset(Builtin)
    memory: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] | None = None  # None: all of them
    max_output_tokens: int = 4096
    params: Mapping[str, Any] = field(default_factory=dict)
    compaction: Compaction = Compaction()
    cache: Cache = Cache()

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def model_name(self) -> str:
        """The model without its provider's prefix."""
        return self.model.partition("/")[2]
