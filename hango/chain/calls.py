"""One model call of a run: what it is made of now, its request, and the base that says so later.

A run's base was fixed when it was accepted. What grows with it is the history, the summary and the skill in force; the
agent's version, its files and the overrides stay, so that no run sees its context change between turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hango.chain import base as bases
from hango.chain import context, summaries
from hango.chain.context import Drafted, draft_state, load_bodies, request_of
from hango.chain.deps import Deps
from hango.chain.draft import Bodies
from hango.chain.kept_histories import KeptHistory
from hango.chain.stack import build_chain
from hango.chain.state import Trunk
from hango.chain.tries import RESERVED_SHARE
from hango.domain import BaseID, FileVersionID, OverrideScope, Purpose, SessionID
from hango.errors import NotFound
from hango.messages import Request
from hango.runs import NewCall
from hango.store import context_bases, sessions
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase


@dataclass(frozen=True, slots=True)
class Conversation:
    """Whose turn it is: the run's own session, or a subagent's."""

    session_id: SessionID
    purpose: Purpose = Purpose.RUN

    @property
    def is_child(self) -> bool:
        return self.purpose is Purpose.SUBAGENT


@dataclass(frozen=True, slots=True)
class NextCall:
    """A call that may be made. `bodies` are those of its messages."""

    base: CurrentBase
    drafted: Drafted
    bodies: Bodies

    @property
    def request(self) -> Request:
        return request_of(self.drafted, self.bodies)

    @property
    def would_compact(self) -> bool:
        return self.drafted.draft.would_compact

    @property
    def model(self) -> str:
        return self.drafted.state.agent.model

    @property
    def raw_tokens(self) -> int:
        """Tokens of the counting encoding: what a lesson for the estimates is learnt from."""
        size = self.drafted.draft.size
        return 0 if size is None else round(size.after / self.drafted.state.factor)


async def start_base(scope: Scope, base_id: BaseID) -> CurrentBase:
    """What a run was accepted with. Raises NotFound when its session is gone."""
    kept = await context_bases.get(scope, base_id)
    loaded = None if kept is None else await context_bases.load(scope, kept)
    if loaded is None:
        raise NotFound
    return loaded


async def base_now(
    scope: Scope, start: CurrentBase, conversation: Conversation, skill: FileVersionID | None
) -> CurrentBase:
    """The run's base with the history, the summary and the skill of now. Raises NotFound."""
    if conversation.is_child:
        # Overrides of messages are of the run's own session; a subagent's has other messages of these numbers.
        own = tuple(one for one in start.overrides if one.scope is OverrideScope.AGENT)
        end = await sessions.end_of(scope, conversation.session_id)
        made = replace(start, session_id=conversation.session_id, through_seq=end, summary=None, skill_version_id=skill)
        return context_bases.with_overrides(made, own)
    session = await sessions.get(scope, conversation.session_id)
    if session is None:
        raise NotFound
    return replace(start, through_seq=session.last_seq, summary=session.summary, skill_version_id=skill)


async def next_call(scope: Scope, deps: Deps, base: CurrentBase, *, is_child: bool) -> NextCall:
    """As `read_call`, in a conversation that goes on: of its history only what is new to this process is read."""
    key = (scope.tenant_id, base.session_id)
    known = deps.histories.get(key)
    made = await read_call(scope, deps, base, is_child=is_child, known=known)
    deps.histories.put(key, known)
    return made


async def read_call(
    scope: Scope, deps: Deps, base: CurrentBase, *, is_child: bool = False, known: KeptHistory | None = None
) -> NextCall:
    """The call that the base makes, whether or not a provider would take it. Raises NotFound."""
    drafted = await draft(scope, deps, base, is_child=is_child, known=known)
    return NextCall(base, drafted, await load_bodies(scope, drafted, known))


def compacts(drafted: Drafted) -> bool:
    """Whether a run summarizes the history before this call."""
    keep = drafted.state.agent.compaction.keep_messages
    return drafted.draft.would_compact and summaries.cut_of(drafted.draft, keep) is not None


async def draft(
    scope: Scope, deps: Deps, base: CurrentBase, *, is_child: bool = False, known: KeptHistory | None = None
) -> Drafted:
    """The call of a base, drafted through the real chain; of a subagent's without the tool that starts one."""
    async with context.bounded(deps.settings.before_run_max):
        state = await bases.build_trunk(
            scope, deps, base, Trunk(is_child=is_child), through=base.through_seq, known=known
        )
        await build_chain(state.agent.builtin).before_run(state, scope)
    return await draft_state(base, state)


def new_call(call: NextCall, base_id: BaseID, purpose: Purpose) -> NewCall:
    """What is written down of a call before it is made."""
    state, draft = call.drafted.state, call.drafted.draft
    size = draft.size
    assert size is not None, "the summarization slot sets the sizes"
    most = state.agent.max_output_tokens
    return NewCall(
        purpose=purpose,
        session_id=call.base.session_id,
        base_id=base_id,
        model=state.agent.model,
        request_sha256=call.drafted.sha256,
        overrides=sum(mark.override is not None for mark in draft.marks.values()),
        excluded_tokens=size.before - size.after,
        max_output_tokens=most,
        reserved=math.ceil(RESERVED_SHARE * size.after) + most,
    )
