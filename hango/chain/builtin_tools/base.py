"""A built-in tool carried out: what it may touch, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hango.domain import AgentID, FileVersionID
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase

# Of one result: what is longer is cut, and says so.
MAX_RESULT_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a tool works: the agent's files, in the transaction that keeps the tool's result.

    `base` is the run's: the skills that it may load are those of its beginning.
    """

    scope: Scope
    base: CurrentBase

    @property
    def agent_id(self) -> AgentID:
        return self.base.agent_id


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool's result as the model reads it. `skill` is the version of a skill that was loaded."""

    text: str
    is_error: bool = False
    skill: FileVersionID | None = None


Arguments = Mapping[str, Any]
Work = Callable[[Workplace, Arguments], Awaitable[Outcome]]


def failed(sentence: str) -> Outcome:
    """A result that tells the model what went wrong and what to do."""
    return Outcome(sentence, is_error=True)


def cut(text: str) -> str:
    """The text, cut at the bound and marked so."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[cut: {len(text) - MAX_RESULT_CHARS:,} more characters]"
