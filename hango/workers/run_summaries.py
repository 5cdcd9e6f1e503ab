"""Compaction in a run: one model call for a summary, put in force when there is one. A failure changes nothing."""

from __future__ import annotations

from hango import logs
from hango.chain import estimator, summaries
from hango.chain.calls import NextCall
from hango.chain.summary_calls import summary_call, summary_of
from hango.domain import Purpose, RunStatus
from hango.logs import Log
from hango.messages import Response
from hango.store import sessions
from hango.store.connection import Scope
from hango.workers import run_calls
from hango.workers.running import Running, Stop

# Ends that a run shares with its summary call: everything else is the summary's own failure.
SHARED = frozenset({RunStatus.CANCELLED, RunStatus.TIMED_OUT})


async def compact(running: Running, planned: NextCall) -> bool:
    """Whether a new summary is in force. Raises Stop (cancelled, out of time or quota), LetGo, Leaving, Ended."""
    drafted = planned.drafted
    through = summaries.cut_of(drafted.draft, drafted.state.agent.compaction.keep_messages)
    if through is None:
        return False
    asked = summary_call(planned, through)
    saved = False

    async def write(scope: Scope, response: Response) -> None:
        nonlocal saved
        text = summary_of(response, planned.drafted.state.window)
        if text is not None:
            await sessions.set_summary(scope, planned.base.session_id, text, through, estimator.text_tokens(text))
            saved = True

    try:
        await run_calls.make(running, asked, Purpose.SUMMARY, write)
    except Stop as ended:
        if ended.status in SHARED or ended.error in run_calls.LIMITS:
            raise
        logs.warning(Log.SUMMARY_FAILED, ended, process="worker", run_id=running.claimed.id)
    return saved
