"""What one run knows: the agent's version, the history, the files, and each middleware's private state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from hango.dialect import Dialect
from hango.domain import AgentDefinition, FileVersion, MessageDigest, SessionID, Summary
from hango.errors import Detail

P = TypeVar("P")


@dataclass(slots=True)
class State:
    """Built afresh from a base for each inspect, try and run. `messages` are those after the summary.

    `before_run` fills the private states and `problems`; after it nothing here changes.
    """

    session_id: SessionID
    agent: AgentDefinition
    dialect: Dialect
    messages: tuple[MessageDigest, ...]
    summary: Summary | None = None
    files: Mapping[str, FileVersion] = field(default_factory=dict)
    extra_text: str | None = None
    window: int = 200_000
    factor: float = 1.0
    prefill: bool = False
    problems: list[Detail] = field(default_factory=list)
    _private: dict[type[Any], Any] = field(default_factory=dict)

    def put(self, value: object) -> None:
        """Keep a middleware's private state, by its type."""
        self._private[type(value)] = value

    def get(self, type: type[P]) -> P | None:
        return cast("P | None", self._private.get(type))
