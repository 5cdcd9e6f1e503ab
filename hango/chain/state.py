"""What one run knows: the agent's version, the history, the files, and each middleware's private state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from hango.agent_definition import AgentDefinition
from hango.dialect import Dialect
from hango.digests import MessageDigest
from hango.domain import FileVersion, Override, SavedOverride, SessionID, Summary
from hango.errors import Detail

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller changes for one call: unsaved overrides, saved ones lifted, extra user text, an earlier end, the
    model ("<provider>/<name>")."""

    overrides: Sequence[Override] = ()
    include: Sequence[str] = ()
    message: str | None = None
    until: int | None = None
    model: str | None = None


UNCHANGED = Wanted()


@dataclass(frozen=True, slots=True)
class Trunk:
    """What changes what a state is read from: the model, whether the summary stands, whether it is a subagent's."""

    model: str | None = None
    without_summary: bool = False
    is_child: bool = False


@dataclass(slots=True)
class State:
    """Built afresh from a base for each inspect, try and run. `messages` are those after the summary.

    `agent` is as it is called; `own_model` the model that it has by itself. `saved` are the overrides stored for the
    agent and the session, `last_seq` the session's end. `factor` was learnt from `calibrated_from` billed calls.
    `narrowed_to` are the tools that the skill in force allows, None without one. `before_run` fills the private states
    and `problems`; after it nothing here changes.
    """

    session_id: SessionID
    agent: AgentDefinition
    dialect: Dialect
    messages: tuple[MessageDigest, ...]
    summary: Summary | None = None
    files: Mapping[str, FileVersion] = field(default_factory=dict)
    saved: tuple[SavedOverride, ...] = ()
    wanted: Wanted = UNCHANGED
    last_seq: int = 0
    window: int = 200_000
    factor: float = 1.0
    calibrated_from: int = 0
    own_model: str | None = None
    narrowed_to: frozenset[str] | None = None
    prefill: bool = False
    problems: list[Detail] = field(default_factory=list)
    _private: dict[type[Any], Any] = field(default_factory=dict)

    def put(self, value: object) -> None:
        """Keep a middleware's private state, by its type."""
        self._private[type(value)] = value

    def get(self, type: type[P]) -> P | None:
        return cast("P | None", self._private.get(type))

    def with_wanted(self, wanted: Wanted) -> State:
        """The same with other wishes: the history ends where they say. Their model and summary are this state's."""
        messages = self.messages
        if wanted.until is not None and messages:
            messages = messages[: max(0, wanted.until - messages[0].seq + 1)]  # seqs have no gaps
        return replace(
            self, wanted=wanted, messages=messages, problems=list(self.problems), _private=dict(self._private)
        )
