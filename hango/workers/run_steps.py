"""Where a conversation of a run stands, and the results of its tools, written down before the next call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hango.agent_definition import AgentDefinition
from hango.chain import calls as planning
from hango.chain.builtin_tools.base import Outcome, Workplace
from hango.chain.builtin_tools.run_tool import run_tool
from hango.chain.calls import Conversation
from hango.chain.context import Drafted
from hango.chain.digest import digest
from hango.chain.turns import Need, Next, next_of
from hango.domain import RunStatus
from hango.messages import Block, MessageRole, Response, StopReason, ToolSpec, content_json, read_content, tool_result
from hango.store import messages, run_calls, run_claims, runs
from hango.store.connection import Scope
from hango.store.messages import NewMessage
from hango.workers import counting
from hango.workers.running import Over, Running


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next, and after which message."""

    next: Next
    seq: int
    stop_reason: StopReason | None


# After results there is a call to make, whoever may have written what meanwhile.
CALL_NEXT = Step(Next(Need.CALL), 0, None)


async def next_step(running: Running, conversation: Conversation) -> Step:
    """Read from the history what the conversation needs."""
    run_id, session_id = running.claimed.id, conversation.session_id
    async with running.deps.store.read(running.claimed.principal) as scope:
        last = await messages.last(scope, session_id)
        stop_reason = await run_calls.last_stop_reason(scope, run_id, session_id)
        own = await running.deps.definition(scope, running.start.agent_version_id)
    if last is None:
        return CALL_NEXT
    is_own = conversation.is_child or last.run_id == run_id
    declared = _declared(conversation, own)
    found = next_of(last.role, read_content(last.content), stop_reason, declared, is_own=is_own)
    return Step(found, last.seq, stop_reason)


def step_after(conversation: Conversation, agent: AgentDefinition, seq: int, response: Response) -> Step:
    """What `next_step` would read: after this answer, which is the message `seq`."""
    reason, declared = response.stop_reason, _declared(conversation, agent)
    return Step(next_of(MessageRole.ASSISTANT, response.content, reason, declared, is_own=True), seq, reason)


def _declared(conversation: Conversation, agent: AgentDefinition) -> frozenset[str]:
    # A subagent cannot ask the client: its calls of such tools get an error result.
    return frozenset() if conversation.is_child else frozenset(tool.name for tool in agent.tools)


async def carry_out(
    running: Running,
    conversation: Conversation,
    step: Step,
    tools: Mapping[str, ToolSpec],
    answers: Mapping[int, Outcome],
) -> None:
    """Carry out the built-in calls of a message and append their results, in one transaction.

    `answers` are those of subagents, by the places of their calls. Raises Over when the client has to answer others.
    """
    running.check_time()
    async with running.deps.store.begin(running.claimed.principal) as scope:
        await running.hold(scope)
        place, skill = Workplace(scope, running.start), running.skill
        results = []
        for at, block in enumerate(step.next.calls):
            outcome = answers.get(at)
            if outcome is None:
                with counting.tool(block.view.name or "", tools) as seen:
                    outcome = await run_tool(place, block, tools)
                    counting.tool_ended(seen, outcome)
            skill = outcome.skill or skill
            results.append(tool_result(block.view.id or "", outcome.text, is_error=outcome.is_error))
        await append(scope, running, conversation, MessageRole.USER, results)
        if skill != running.skill and skill is not None and not conversation.is_child:
            await run_claims.use_skill(scope, running.claimed.id, skill)
        if step.next.clients:
            # With the results, so that no crash comes between them and the end.
            await _end_for_client(running, scope, step.stop_reason)
    if not conversation.is_child:  # what a subagent loads is its own
        running.skill = skill
    if step.next.clients:
        raise Over(RunStatus.REQUIRES_ACTION)


async def append(
    scope: Scope,
    running: Running,
    conversation: Conversation,
    role: MessageRole,
    blocks: Sequence[Block],
    *,
    model: str | None = None,
) -> int:
    """A message of the run at the end of a conversation, and its seq; a subagent's carries no run, it has only one."""
    content = tuple(blocks)
    run_id = None if conversation.is_child else running.claimed.id
    new = NewMessage(role, content_json(content), digest(role, content, model), model=model, run_id=run_id)
    return (await messages.append(scope, conversation.session_id, [new]))[0]


async def tools_of(running: Running, conversation: Conversation) -> dict[str, ToolSpec]:
    """The tools of the request that was answered: what an override or a skill leaves out cannot be called."""
    if (known := running.tools.get(conversation.session_id)) is not None:
        return known
    async with running.deps.store.read(running.claimed.principal) as scope:
        base = await planning.base_now(scope, running.start, conversation, running.skill)
        drafted = await planning.draft(scope, running.deps, base, is_child=conversation.is_child)
    return named_tools(drafted)


def named_tools(drafted: Drafted) -> dict[str, ToolSpec]:
    return {item.value.name: item.value for item in drafted.draft.kept_tools()}


async def _end_for_client(running: Running, scope: Scope, stop_reason: StopReason | None) -> None:
    claimed = running.claimed
    await runs.end(scope, claimed.id, claimed.attempt, RunStatus.REQUIRES_ACTION, stop_reason=stop_reason)
