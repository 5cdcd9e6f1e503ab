"""One claimed run, seen through: calls and tools in turn, each written down before the next begins.

What to do next is read from the history, so that a worker that takes a run over goes on where the last one stopped. No
transaction is open during a call.
"""

from __future__ import annotations

from functools import partial

from hango import logs, telemetry
from hango.chain import calls as planning
from hango.chain.builtin_tools.base import Outcome, cut
from hango.chain.builtin_tools.task import task_of
from hango.chain.calls import Conversation
from hango.chain.deps import Deps
from hango.chain.middleware.subagent import TASK
from hango.chain.turns import Need
from hango.domain import Purpose, RunStatus
from hango.errors import HangoError, NotFound, Unavailable
from hango.logs import Log
from hango.messages import Block, MessageRole, StopReason, read_content, text_block
from hango.runs import ClaimedRun, RunError
from hango.store import messages, run_claims, runs
from hango.telemetry import Attr, Seen, Span
from hango.workers import counting, run_calls, run_steps, run_summaries
from hango.workers.absences import again
from hango.workers.held import Held
from hango.workers.outcomes import Ended, Ending
from hango.workers.run_ends import lose_call
from hango.workers.run_steps import Step
from hango.workers.running import Leaving, LetGo, Over, Running, Stop


async def see_through(deps: Deps, held: Held[ClaimedRun]) -> None:
    """One claim to the run's end. Raises nothing; what cannot be written down is left to the reconciler."""
    claimed, seconds = held.claimed, deps.settings.context_try_lease
    with telemetry.job_span(Span.RUN, claimed.traceparent, counting.of_run(claimed)) as seen:
        try:
            ended = await again(held, seconds, partial(_to_its_end, deps, held, seen))
            await again(held, seconds, partial(_write_end, deps, claimed, ended))
            _tell(seen, ended.status, ended.error)
        except Over as over:
            _tell(seen, over.status, None)
        except LetGo:
            return
        except Leaving:
            await _give_back(deps, claimed)
            seen.set_all(counting.of_run_end(RunStatus.QUEUED, None))
        except HangoError as error:
            _log(Log.UNAVAILABLE, error, claimed)


def _tell(seen: Seen, status: RunStatus, error: RunError | None) -> None:
    seen.set_all(counting.of_run_end(status, error))
    counting.run_ended(status)


async def _write_end(deps: Deps, claimed: ClaimedRun, ended: Stop) -> None:
    async with deps.store.begin(claimed.principal) as scope:
        if await run_claims.hold(scope, claimed.id, claimed.attempt) is None:
            raise LetGo
        # None is under way here, but for one whose end could not be written down.
        await lose_call(scope, deps, claimed.id, ended.error or RunError.INTERNAL)
        await runs.end(
            scope, claimed.id, claimed.attempt, ended.status, stop_reason=ended.stop_reason, error=ended.error
        )


async def _give_back(deps: Deps, claimed: ClaimedRun) -> None:
    """Another worker goes on with it; where that cannot be written down, its lease ends."""
    try:
        async with deps.store.begin(claimed.principal) as scope:
            await run_claims.give_back(scope, claimed.id, claimed.attempt)
    except HangoError as error:
        _log(Log.UNAVAILABLE, error, claimed)


async def _to_its_end(deps: Deps, held: Held[ClaimedRun], seen: Seen) -> Stop:
    """Raises Over, LetGo, Leaving, Unavailable."""
    try:
        running = await _begin(deps, held)
        seen.set(Attr.SESSION_ID, running.state.session_id)
        return await _converse(running, Conversation(running.state.session_id))
    except Stop as ended:
        return ended
    except NotFound:  # its session or its agent was deleted
        return Stop(RunStatus.CANCELLED, error=RunError.CANCELLED)
    except Ended as ended:
        if ended.why is Ending.GIVEN_UP:
            raise LetGo from None
        return Stop(RunStatus.CANCELLED, error=RunError.CANCELLED)
    except (Over, LetGo, Leaving, Unavailable):
        raise
    except Exception as error:
        _log(Log.UNEXPECTED, error, held.claimed)
        return Stop(RunStatus.FAILED, error=RunError.INTERNAL)


async def _begin(deps: Deps, held: Held[ClaimedRun]) -> Running:
    async with deps.store.read(held.claimed.principal) as scope:
        state = await run_claims.state(scope, held.claimed.id)
        if state is None:
            raise LetGo
        start = await planning.start_base(scope, state.base_id)
    return Running(deps, held, state, start, state.skill_version_id, state.has_compacted)


async def _converse(running: Running, conversation: Conversation) -> Stop:
    """Calls and tools in turn until the model stops. Raises Stop, Over, LetGo, Leaving, Ended."""
    known: Step | None = None
    while True:
        if running.held.leaving.done():
            raise Leaving
        step = known or await run_steps.next_step(running, conversation)
        if step.next.need is Need.NOTHING:
            return Stop(RunStatus.SUCCEEDED, stop_reason=step.stop_reason)
        if step.next.need is Need.ACTION:
            return Stop(RunStatus.REQUIRES_ACTION, stop_reason=step.stop_reason)
        if step.next.need is Need.CALL:
            known = await _call(running, conversation)
            continue
        tools = await run_steps.tools_of(running, conversation)
        answers: dict[int, Outcome] = {}
        for at, block in enumerate(step.next.calls):
            # A task that an override or a skill leaves out starts nothing: its result says so.
            if block.view.name == TASK.name and TASK.name in tools:
                with counting.tool(TASK.name, tools) as seen:
                    # By its place: a model's ids are doubled, come back in every turn, and are of any length.
                    answers[at] = await _delegate(running, f"{step.seq}:{at}", block)
                    counting.tool_ended(seen, answers[at])
        await run_steps.carry_out(running, conversation, step, tools, answers)
        known = run_steps.CALL_NEXT


async def _call(running: Running, conversation: Conversation) -> Step | None:
    planned = await run_calls.plan(running, conversation)
    if not conversation.is_child:
        may = planned.would_compact and not running.compacted
        if may and await run_summaries.compact(running, planned):
            planned = await run_calls.plan(running, conversation)
        running.compacted = planned.would_compact  # what has not helped is not done again
    if conversation.is_child:
        return await run_calls.converse(running, conversation, planned)
    with telemetry.span(Span.TURN):
        return await run_calls.converse(running, conversation, planned)


async def _delegate(running: Running, call: str, block: Block) -> Outcome:
    """A subagent's answer to its task, in a conversation of its own that is found again by its call after a crash."""
    task = task_of(block, TASK)
    if isinstance(task, Outcome):
        return task
    run_id, agent_id = running.claimed.id, running.start.agent_id
    async with running.deps.store.begin(running.claimed.principal) as scope:
        await running.hold(scope)
        session_id = await run_claims.child_session(scope, run_id, agent_id, call)
        child = Conversation(session_id, Purpose.SUBAGENT)
        if await messages.last(scope, session_id) is None:
            await run_steps.append(scope, running, child, MessageRole.USER, [text_block(task)])
    ended = await _converse(running, child)
    if ended.status is RunStatus.REQUIRES_ACTION:
        return Outcome("The subagent wants a tool that only the client has. Do that part yourself.", is_error=True)
    async with running.deps.store.read(running.claimed.principal) as scope:
        last = await messages.last(scope, session_id)
    said = [one.view.text or "" for one in read_content(last.content) if one.type == "text"] if last else []
    text = "\n\n".join(said).strip()
    if not text:
        return Outcome("The subagent gave no answer.", is_error=True)
    return Outcome(cut(text) if ended.stop_reason is not StopReason.MAX_TOKENS else f"{cut(text)}\n[cut: too long]")


def _log(event: Log, error: Exception, claimed: ClaimedRun) -> None:
    write = logs.warning if event is Log.UNAVAILABLE else logs.error
    write(event, error, process="worker", tenant_id=claimed.tenant_id, run_id=claimed.id)
