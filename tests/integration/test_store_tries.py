"""Tries as their owners see them: accepted, read, listed, cancelled, told of; and their texts taken out in time."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest

from hango.domain import AuditAction, Principal, Purpose, TryID, UsageRecord
from hango.errors import NotFound
from hango.messages import StopReason
from hango.store import audit, retention, sessions, tries, try_claims, usage
from hango.store.connection import Store
from hango.tries import Changes, Texts, Try, TryError, TryStatus, TryUsage
from tests.conftest import Database
from tests.rows import make_member
from tests.tries import (
    ACTUAL,
    ACTUAL_TOKENS,
    MODEL,
    PLAIN,
    REFUSED,
    RESERVED,
    RETENTION_SECONDS,
    SUCCEEDED,
    Desk,
    Ledger,
    admit,
    admit_batch,
    alter,
    ledger,
    make_desk,
    one_try,
    rows_of,
    take,
    variant,
)

CHANGED = variant(
    "shorter",
    Changes(exclude=("tool:b", "tool:a"), replace=("system:agent",), include=("message:1",), until=2),
    reserved=70,
)


@pytest.fixture
async def desk(store: Store, admin: Principal) -> Desk:
    return await make_desk(store, admin)


async def found(store: Store, desk: Desk, try_id: UUID) -> Try:
    async with store.read(desk.principal) as scope:
        made = await tries.get(scope, try_id)
    assert made is not None
    return made


async def told(store: Store, desk: Desk) -> list[tuple[AuditAction, UUID | None, object]]:
    """What the audit log says of tries, the oldest first."""
    async with store.read(desk.principal) as scope:
        events = (await audit.list_all(scope)).data
    return [(e.action, e.target_id, e.detail) for e in reversed(events) if e.target_kind == "try"]


def finished(desk: Desk, try_id: UUID, outcome: TryStatus, error: TryError | None) -> tuple[AuditAction, UUID, object]:
    detail = {"session_id": str(desk.session_id), "model": MODEL, "outcome": outcome, "error": error}
    return AuditAction.CONTEXT_TRY_FINISHED, try_id, detail


async def test_a_new_try_waits_with_what_it_was_asked(store: Store, desk: Desk) -> None:
    """A try that was accepted is queued, with its changes in the caller's order, its texts, and what it holds."""
    async with store.begin(desk.principal) as scope:
        (try_id,) = await admit(scope, desk, [CHANGED])
        made = await tries.get(scope, try_id)
        outstanding = await tries.count_outstanding(scope)

    assert made is not None
    assert made == Try(
        id=try_id,
        session_id=desk.session_id,
        session_owner=desk.principal.user_id,
        batch_id=None,
        variant=None,
        label="shorter",
        status=TryStatus.QUEUED,
        base_id=desk.base_id,
        model=MODEL,
        changes=Changes(("tool:b", "tool:a"), ("system:agent",), ("message:1",), 2),
        texts=Texts({"system:agent": "instead of system:agent"}, "and now?"),
        sent='["system:base"]',
        excluded="[]",
        request_sha256="5" * 64,
        tokens_before=60,
        tokens_after=50,
        answer=None,
        said=None,
        stop_reason=None,
        usage=None,
        error=None,
        provider_status=None,
        attempts=0,
        created_at=made.created_at,
        started_at=None,
        finished_at=None,
        purged=False,
    )
    assert outstanding == 1
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=70)


async def test_a_try_is_told_to_the_audit_log_by_ids_alone(store: Store, desk: Desk) -> None:
    """context.try has the excluded and replaced part ids and the model, context.try_finished the outcome; no text."""
    try_id = await one_try(store, desk, CHANGED)
    await take(store, desk.principal, try_id, called=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, try_id, 1, REFUSED, retention_seconds=RETENTION_SECONDS)

    asked = {
        "session_id": str(desk.session_id),
        "excluded": ["tool:b", "tool:a"],
        "replaced": ["system:agent"],
        "included": ["message:1"],
        "model": MODEL,
    }
    assert await told(store, desk) == [
        (AuditAction.CONTEXT_TRY, try_id, asked),
        finished(desk, try_id, TryStatus.FAILED, TryError.PROVIDER_REFUSED),
    ]


async def test_a_settled_try_has_its_answer_and_its_bill(store: Store, desk: Desk) -> None:
    """After a call: answer, stop reason and usage; one record of purpose context_try; what was held is used."""
    try_id = await one_try(store, desk)
    waiting = await found(store, desk, try_id)
    await take(store, desk.principal, try_id, called=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, try_id, 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)
    made = await found(store, desk, try_id)
    async with store.read(desk.principal) as scope:
        (record,) = (await usage.records(scope)).data

    assert made == replace(
        waiting,
        status=TryStatus.SUCCEEDED,
        answer=SUCCEEDED.answer,
        stop_reason=StopReason.END_TURN,
        usage=ACTUAL,
        provider_status=200,
        attempts=1,
        started_at=made.started_at,
        finished_at=made.finished_at,
    )
    assert record == UsageRecord(
        record.id,
        Purpose.CONTEXT_TRY,
        None,
        try_id,
        desk.session_id,
        MODEL,
        10,
        5,
        3,
        2,
        0.25,
        False,
        record.created_at,
    )
    assert await ledger(store, desk.principal) == Ledger(used=ACTUAL_TOKENS, reserved=0)


async def test_a_list_has_no_texts_and_no_answers(store: Store, desk: Desk) -> None:
    """Lists of a session come newest first, in pages, each try as it is read alone but without content."""
    made = [await one_try(store, desk, request) for request in (PLAIN, CHANGED, PLAIN)]
    other = await make_desk(store, desk.principal)
    await one_try(store, other)
    await take(store, desk.principal, made[1], called=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, made[1], 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)
    async with store.read(desk.principal) as scope:
        first = await tries.list_all(scope, desk.session_id, limit=2)
        rest = await tries.list_all(scope, desk.session_id, limit=2, cursor=first.next_cursor)

    whole = [await found(store, desk, try_id) for try_id in reversed(made)]
    assert [*first.data, *rest.data] == [replace(one, texts=None, sent=None, answer=None, said=None) for one in whole]
    assert (len(first.data), rest.next_cursor) == (2, None)


async def test_a_try_of_a_deleted_session_is_not_there(store: Store, desk: Desk) -> None:
    """With its session a try is gone for its owner, and none can be added to it."""
    try_id = await one_try(store, desk)
    async with store.begin(desk.principal) as scope:
        await tries.hold_session(scope, desk.session_id)
        await sessions.delete(scope, desk.session_id)
        assert await tries.get(scope, try_id) is None
        assert (await tries.list_all(scope, desk.session_id)).data == ()
        with pytest.raises(NotFound):
            await tries.hold_session(scope, desk.session_id)


async def test_a_waiting_try_is_cancelled_at_once(store: Store, desk: Desk) -> None:
    """What no worker has ends at once, costs nothing and gives its reservation back; cancelling again does nothing."""
    try_id = await one_try(store, desk)
    for _ in range(2):
        async with store.begin(desk.principal) as scope:
            await tries.cancel(scope, try_id=try_id)
    made = await found(store, desk, try_id)

    assert (made.status, made.error, made.usage) == (TryStatus.CANCELLED, TryError.CANCELLED, None)
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=0)
    assert (await told(store, desk))[1:] == [finished(desk, try_id, TryStatus.CANCELLED, TryError.CANCELLED)]


async def test_a_running_try_is_cancelled_by_its_worker(store: Store, desk: Desk, database: Database) -> None:
    """What a worker has goes on until the worker ends it; its call is not begun any more."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=try_id)
    (asked,) = rows_of(database.superuser_dsn, "select status, cancel_requested_at from tries where id = %s", try_id)
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=try_id)
        assert not await try_claims.mark_all_called(scope, [(try_id, attempt)])
    again = rows_of(database.superuser_dsn, "select status, cancel_requested_at from tries where id = %s", try_id)

    assert asked["status"] == TryStatus.RUNNING
    assert asked["cancel_requested_at"] is not None
    assert again == [asked]
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=RESERVED)


async def test_what_a_session_or_an_agent_has_open_is_cancelled_together(store: Store, desk: Desk) -> None:
    """By session, or by agent over all its sessions; tries elsewhere and those that have ended stay as they are."""
    other = await make_desk(store, desk.principal)
    ended, waiting, running = [await one_try(store, desk) for _ in range(3)]
    elsewhere = await one_try(store, other)
    await take(store, desk.principal, ended, called=True)
    await take(store, desk.principal, running)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, ended, 1, SUCCEEDED, retention_seconds=RETENTION_SECONDS)
        await tries.cancel(scope, session_id=desk.session_id)
        agent = await sessions.get(scope, other.session_id)
        assert agent is not None
    before = [(await found(store, desk, one)).status for one in (ended, waiting, running, elsewhere)]
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, agent_id=agent.agent_id)

    assert before == [TryStatus.SUCCEEDED, TryStatus.CANCELLED, TryStatus.RUNNING, TryStatus.QUEUED]
    assert (await found(store, desk, elsewhere)).status is TryStatus.CANCELLED


async def test_another_member_may_cancel_for_the_tenant(store: Store, desk: Desk) -> None:
    """The audit log names whose try it was, whoever ends it."""
    try_id = await one_try(store, desk)
    member = await make_member(store, desk.principal)
    async with store.begin(member) as scope:
        await tries.cancel(scope, try_id=try_id)
    async with store.read(desk.principal) as scope:
        event = (await audit.list_all(scope, limit=1)).data[0]

    assert (event.action, event.target_id, event.user_id) == (
        AuditAction.CONTEXT_TRY_FINISHED,
        try_id,
        desk.principal.user_id,
    )


async def test_waiting_tries_end_together_once(store: Store, desk: Desk) -> None:
    """The end of waiting tries names how many ended; one that a worker has, or that has ended, is left alone."""
    first, second, running = [await one_try(store, desk) for _ in range(3)]
    await take(store, desk.principal, running)
    counts = []
    for _ in range(2):
        async with store.begin(desk.principal) as scope:
            ended = [first, second, running, TryID(uuid4())]
            counts.append(await tries.end_waiting(scope, ended, TryStatus.EXPIRED, TryError.QUEUE_EXPIRED))

    assert counts == [{Purpose.CONTEXT_TRY: 2}, {}]
    assert (await found(store, desk, first)).error is TryError.QUEUE_EXPIRED
    assert (await found(store, desk, running)).status is TryStatus.RUNNING
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=RESERVED)


async def test_texts_and_answer_are_taken_out_together(store: Store, desk: Desk) -> None:
    """After their time the texts, the answer and what the provider said are gone; the part ids, the figures and the
    bill stay."""
    changed, refused, fresh = [await one_try(store, desk, CHANGED, retention_seconds=-1) for _ in range(3)]
    for one, settlement, seconds in ((changed, SUCCEEDED, -1), (refused, REFUSED, -1), (fresh, SUCCEEDED, 60)):
        await take(store, desk.principal, one, called=True)
        async with store.begin(desk.principal) as scope:
            await try_claims.settle(scope, one, 1, settlement, retention_seconds=seconds)
    before = [await found(store, desk, one) for one in (changed, refused, fresh)]
    async with store.begin(desk.principal) as scope:
        more = await retention.purge(scope)
    after = [await found(store, desk, one) for one in (changed, refused, fresh)]

    assert not more
    assert after == [
        replace(before[0], texts=None, answer=None, purged=True),
        replace(before[1], texts=None, said=None, purged=True),
        before[2],
    ]


async def test_a_try_under_way_keeps_its_texts(store: Store, desk: Desk) -> None:
    """However short the time, what a worker still has to send is not taken out."""
    waiting, running = [await one_try(store, desk, retention_seconds=-1) for _ in range(2)]
    await take(store, desk.principal, running, called=True)
    async with store.begin(desk.principal) as scope:
        await retention.purge(scope)

    assert [(await found(store, desk, one)).purged for one in (waiting, running)] == [False, False]


async def test_a_try_is_forgotten_but_its_bill_is_not(store: Store, desk: Desk, database: Database) -> None:
    """90 days after its end a try is gone with its request; its usage record stays, without a try."""
    old, young = [await one_try(store, desk, retention_seconds=-1) for _ in range(2)]
    for one in (old, young):
        await take(store, desk.principal, one, called=True)
        async with store.begin(desk.principal) as scope:
            await try_claims.settle(scope, one, 1, SUCCEEDED, retention_seconds=-1)
    await alter(store, desk.principal, "finished_at = finished_at - interval '90 days 1 s'", old)
    await alter(store, desk.principal, "finished_at = finished_at - interval '89 days 23 h'", young)
    async with store.begin(desk.principal) as scope:
        await retention.purge(scope)
        gone = await tries.get(scope, old)
        records = (await usage.records(scope)).data
    left = rows_of(
        database.superuser_dsn,
        "select (select count(*) from tries where tenant_id = %s) as tries,"
        " (select count(*) from try_requests where tenant_id = %s) as requests",
        desk.principal.tenant_id,
        desk.principal.tenant_id,
    )

    assert gone is None
    assert [(record.try_id, record.input_tokens) for record in records] == [(young, 10), (None, 10)]
    assert left == [{"tries": 1, "requests": 1}]
    assert await ledger(store, desk.principal) == Ledger(used=2 * ACTUAL_TOKENS, reserved=0)


async def test_a_transaction_takes_out_no_more_than_so_much(store: Store, desk: Desk, database: Database) -> None:
    """However much has piled up, a purge is done in steps: whole requests, and batches with their last one."""
    async with store.begin(desk.principal) as scope:
        _, batch = await admit_batch(scope, desk, [PLAIN, PLAIN], repeats=2)
    every = [*batch, await one_try(store, desk)]
    await take(store, desk.principal, *every, called=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle_all(scope, dict.fromkeys([(id, 1) for id in every], SUCCEEDED), retention_seconds=-1)
    with psycopg.connect(database.superuser_dsn) as conn:
        tenant_id = desk.principal.tenant_id
        conn.execute("update try_requests set expires_at = now() - interval '1 s' where tenant_id = %s", [tenant_id])
    await alter(store, desk.principal, "finished_at = finished_at - interval '91 days'", *every)
    left = "(select count(*) from {0} where tenant_id = %s) as {0}"
    counts = "select " + ", ".join(
        left.format(table) for table in ("tries", "try_requests", "try_batches", "try_payloads")
    )

    steps = []
    more = True
    while more:
        async with store.begin(desk.principal) as scope:
            more = await retention.purge(scope, most=2)
        steps.append([*rows_of(database.superuser_dsn, counts, *[tenant_id] * 4)[0].values(), more])

    assert [step[0] for step in steps] == [3, 1, 0]
    assert steps[-1] == [0, 0, 0, 0, False]


async def test_a_bill_of_unknown_price_has_no_price(store: Store, desk: Desk) -> None:
    """An estimate is marked as one, and a cost that nobody knows is None, not 0."""
    try_id = await one_try(store, desk)
    await take(store, desk.principal, try_id, called=True)
    bill = TryUsage(try_claims.reservation(RESERVED, 40), None, estimated=True)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, try_id, 1, replace(REFUSED, usage=bill), retention_seconds=RETENTION_SECONDS)
    made = await found(store, desk, try_id)

    assert (made.usage, made.said) == (bill, REFUSED.said)
    assert await ledger(store, desk.principal) == Ledger(used=RESERVED, reserved=0)
