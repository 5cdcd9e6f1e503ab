"""What another tenant has, one thing of each kind, for the tests of what a stranger gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from hango.domain import (
    Agent,
    BatchID,
    CallID,
    OverrideAction,
    PartID,
    Principal,
    Purpose,
    RunID,
    Session,
    TryID,
)
from hango.errors import QuotaExceeded
from hango.messages import Usage
from hango.runs import NewCall
from hango.store import (
    context_bases,
    context_overrides,
    files,
    idempotency_keys,
    run_calls,
    token_factors,
    try_claims,
    usage,
)
from hango.store.connection import Scope, Store
from hango.store.context_bases import ContextBase, CurrentBase
from hango.store.context_overrides import NewOverride
from hango.tries import Admission
from tests.rows import DEFINITION, make_agent, make_run, make_session, make_tenant
from tests.run_desk import RUN_QUEUE_OVER, alter_run, take_run
from tests.tries import LEASE_OVER, LOST, PLAIN, Desk, admission, admit, admit_batch, alter, take

PATH = "/memories/AGENTS.md"
NO_TOOL = NewOverride(PartID("tool:ls"), OverrideAction.EXCLUDE, None, "")
KEY = "one of the caller's keys"
NO_MESSAGE = NewOverride(PartID("message:2"), OverrideAction.EXCLUDE, None, "")


@dataclass(frozen=True, slots=True)
class Theirs:
    """What the other tenant has, by its ids."""

    tenant: Principal
    agent: Agent
    session: Session
    run_id: RunID  # of the session, waiting
    claimed_run: RunID  # of another session, claimed, with a call under way
    call_id: CallID
    current: CurrentBase
    base: ContextBase
    batch_id: BatchID
    waiting: TryID  # in the batch
    request_id: UUID  # of the waiting try
    running: TryID  # claimed, past its lease
    called: TryID
    lost: TryID
    admission: Admission


async def record_usage(scope: Scope, theirs: Theirs) -> object:
    return await usage.record(
        scope,
        purpose=Purpose.RUN,
        run_id=theirs.run_id,
        session_id=theirs.session.id,
        model="offline/extract",
        usage=Usage(1, 1),
        cost_usd=None,
    )


def run_call(theirs: Theirs) -> NewCall:
    return NewCall(
        purpose=Purpose.RUN,
        session_id=theirs.session.id,
        base_id=theirs.base.id,
        model="offline/extract",
        request_sha256="5" * 64,
        overrides=0,
        excluded_tokens=0,
        max_output_tokens=1,
        reserved=1,
    )


async def make_theirs(store: Store) -> Theirs:
    """A tenant with one thing of each kind, a try in each state that a function looks for, its quota used up."""
    tenant = await make_tenant(store, quota_tokens=501)
    async with store.begin(tenant) as scope:
        agent = await make_agent(scope, shared=True, definition=replace(DEFINITION, memory=(PATH,)))
        await files.write(scope, agent.id, PATH, "a memory")
        session = await make_session(scope, agent, ["a question", "an answer"])
        run_id = await make_run(scope, session)
        await context_overrides.replace_for_agent(scope, agent.id, [NO_TOOL])
        await context_overrides.replace_for_session(scope, session.id, [NO_MESSAGE])
        current = await context_bases.current(scope, session.id)
        assert current is not None
        base = await context_bases.get(scope, await context_bases.find_or_create(scope, current))
        assert base is not None
        desk = Desk(tenant, session.id, base.id)
        batch_id, (waiting,) = await admit_batch(scope, desk)
        running, called, lost = await admit(scope, desk, [PLAIN] * 3)
        cursor = await scope.conn.execute("select request_id from tries where id = %s", (waiting,))
        ((request_id,),) = await cursor.fetchall()
        await idempotency_keys.take(scope, KEY, b"1" * 32, waiting)
        await token_factors.learn(scope, PLAIN.model, ratio=1.0, first=1.0, weight=0.5, least=0.5, most=4.0)
        another = await make_run(scope, await make_session(scope, agent, ["a question"]))
        made = Theirs(
            tenant, agent, session, run_id, another, CallID(another), current, base, batch_id, waiting, request_id,
            running, called, lost,
            await admission(scope, 100),
        )  # fmt: skip
        begun = await run_calls.begin(scope, another, run_call(made))
        assert begun is not None
        await record_usage(scope, made)
    await take_run(store, tenant, another)
    await alter_run(store, tenant, RUN_QUEUE_OVER, run_id)
    await take(store, tenant, running)
    await alter(store, tenant, LEASE_OVER, running)
    await take(store, tenant, called, lost, called=True)
    async with store.begin(tenant) as scope:
        assert await try_claims.settle(scope, lost, 1, LOST, retention_seconds=1)
        with pytest.raises(QuotaExceeded):
            await usage.ensure_quota(scope)
    return replace(made, call_id=begun.id)
