"""What the model saw then: a past call of a run, made again from its base through the same chain.

Nothing but the base is stored of a call. Whatever a base names never changes, so the request is the same one as long as
hango itself makes requests in the same way: `exact` says whether it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from hango.chain import calls, summaries
from hango.chain.context import Drafted, estimated_snapshot
from hango.chain.deps import Deps
from hango.chain.snapshot import Snapshot
from hango.chain.summary_calls import summary_call
from hango.domain import Purpose
from hango.errors import NotFound
from hango.messages import Request
from hango.runs import RunCall
from hango.store.connection import Scope


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call made again. `exact`: its request is the one that was sent, byte for byte."""

    drafted: Drafted
    request: Request
    exact: bool

    @property
    def snapshot(self) -> Snapshot:
        """By the estimates of now."""
        return estimated_snapshot(self.drafted)


async def rebuild(scope: Scope, deps: Deps, call: RunCall) -> PastCall:
    """Raises NotFound when its session is gone."""
    base = await calls.start_base(scope, call.base_id)
    made = await calls.read_call(scope, deps, base, is_child=call.purpose is Purpose.SUBAGENT)
    if call.purpose is Purpose.SUMMARY:
        through = summaries.cut_of(made.drafted.draft, made.drafted.state.agent.compaction.keep_messages)
        if through is None:  # the rules of another release cut elsewhere
            raise NotFound
        made = summary_call(made, through)
    return PastCall(made.drafted, made.request, exact=made.drafted.sha256 == call.request_sha256)
