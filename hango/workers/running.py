"""A run under way, and the two ways out of it: an end, or a claim that is no longer in force."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from hango.chain.deps import Deps
from hango.domain import FileVersionID, RunStatus, SessionID
from hango.messages import StopReason, ToolSpec
from hango.runs import ClaimedRun, RunError, RunState
from hango.store import run_claims
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase
from hango.store.run_claims import Hold
from hango.workers.held import Held


class Stop(Exception):
    """The end of a run, from wherever it was decided."""

    def __init__(
        self, status: RunStatus, *, stop_reason: StopReason | None = None, error: RunError | None = None
    ) -> None:
        super().__init__(status.value)
        self.status = status
        self.stop_reason = stop_reason
        self.error = error


class Over(Exception):
    """The run has ended, and that is written down."""

    def __init__(self, status: RunStatus) -> None:
        super().__init__(status.value)
        self.status = status


class LetGo(Exception):
    """The claim is no longer in force: nothing more may be written."""


class Leaving(Exception):
    """The process ends: another worker goes on with the run."""


@dataclass(slots=True)
class Running:
    """`start` is the base that the run was accepted with. `compacted`: it has tried to, and would again.

    `tools` are those of the last request that this worker made for a conversation.
    """

    deps: Deps
    held: Held[ClaimedRun]
    state: RunState
    start: CurrentBase
    skill: FileVersionID | None
    compacted: bool = False
    tools: dict[SessionID, dict[str, ToolSpec]] = field(default_factory=dict)

    @property
    def claimed(self) -> ClaimedRun:
        return self.held.claimed

    @property
    def seconds_left(self) -> float:
        """Of the run's time, which began with its first start. By two clocks, the moment is PostgreSQL's."""
        return self.claimed.timeout_seconds - (datetime.now(UTC) - self.claimed.started_at).total_seconds()

    def check_time(self) -> None:
        """Raise Stop when the run's time is over."""
        if self.seconds_left <= 0:
            raise Stop(RunStatus.TIMED_OUT, error=RunError.TIMEOUT)

    async def hold(self, scope: Scope) -> Hold:
        """The claim, held until the transaction ends. Raises LetGo, and Stop when somebody cancels the run."""
        held = await run_claims.hold(scope, self.claimed.id, self.claimed.attempt)
        if held is None:
            raise LetGo
        if held.cancelled:
            raise Stop(RunStatus.CANCELLED, error=RunError.CANCELLED)
        return held
