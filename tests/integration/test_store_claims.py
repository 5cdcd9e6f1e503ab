"""What a worker and the reconciler do with a try: each a conditional change that is in force once, for one claim."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import pytest

from hango.domain import Principal, Purpose, TryID
from hango.messages import Usage
from hango.store import tries, try_claims
from hango.store.connection import Scope, Store
from hango.tries import Settlement, Try, TryError, TryStatus, TryUsage
from tests.conftest import Database
from tests.tries import (
    ACTUAL,
    ACTUAL_TOKENS,
    ESTIMATE,
    LEASE_OVER,
    LOST,
    REFUSED,
    RESERVED,
    RETENTION_SECONDS,
    SUCCEEDED,
    TIMED_OUT,
    Desk,
    Ledger,
    alter,
    ledger,
    make_desk,
    one_try,
    rows_of,
    take,
)

Done = TypeVar("Done")


@pytest.fixture
async def desk(store: Store, admin: Principal) -> Desk:
    return await make_desk(store, admin)


async def found(store: Store, desk: Desk, try_id: UUID) -> Try:
    async with store.read(desk.principal) as scope:
        made = await tries.get(scope, try_id)
    assert made is not None
    return made


async def doing(store: Store, desk: Desk, what: Callable[[Scope], Awaitable[Done]], times: int = 2) -> list[Done]:
    """The same again, each time in a transaction of its own."""
    done = []
    for _ in range(times):
        async with store.begin(desk.principal) as scope:
            done.append(await what(scope))
    return done


async def mark(scope: Scope, try_id: TryID, attempt: int) -> bool:
    return bool(await try_claims.mark_all_called(scope, [(try_id, attempt)]))


async def settle(scope: Scope, try_id: TryID, attempt: int) -> bool:
    return await try_claims.settle(scope, try_id, attempt, SUCCEEDED, retention_seconds=RETENTION_SECONDS)


async def test_a_call_is_marked_once(store: Store, desk: Desk) -> None:
    """The mark is given once for a claim: whoever does not get it does not call."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)

    assert await doing(store, desk, lambda scope: mark(scope, try_id, attempt)) == [True, False]


@pytest.mark.parametrize("change", [LEASE_OVER, "attempt = attempt + 1", "cancel_requested_at = now()"])
async def test_no_call_is_begun_that_is_not_in_force(store: Store, desk: Desk, change: str) -> None:
    """Past its lease, after another claim, or after a cancel, there is no mark."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)
    await alter(store, desk.principal, change, try_id)

    assert await doing(store, desk, lambda scope: mark(scope, try_id, attempt), 1) == [False]


async def test_settling_twice_settles_once(store: Store, desk: Desk, database: Database) -> None:
    """The second settle finds nothing: one bill, one answer, one audit event, the first outcome."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)
    first = await doing(store, desk, lambda scope: settle(scope, try_id, attempt), 1)
    made = await found(store, desk, try_id)
    again = await doing(
        store,
        desk,
        lambda scope: try_claims.settle(scope, try_id, attempt, TIMED_OUT, retention_seconds=RETENTION_SECONDS),
        1,
    )
    counts = rows_of(
        database.superuser_dsn,
        "select (select count(*) from usage_records where try_id = %s) as bills,"
        " (select count(*) from try_payloads where try_id = %s) as answers,"
        " (select count(*) from audit_events where target_id = %s and action = 'context.try_finished') as events",
        *[try_id] * 3,
    )

    assert (first, again) == ([True], [False])
    assert await found(store, desk, try_id) == made
    assert counts == [{"bills": 1, "answers": 1, "events": 1}]
    assert await ledger(store, desk.principal) == Ledger(used=ACTUAL_TOKENS, reserved=0)


async def test_what_is_done_for_many_is_done_for_each(store: Store, desk: Desk, database: Database) -> None:
    """Marks and ends of many claims in one statement: to each its bill and audit event, to the quota their sum; claims
    that are not in force are left out, an older claim of the same try among them."""
    first, second, waiting = [await one_try(store, desk) for _ in range(3)]
    claims = [(id, await take(store, desk.principal, id)) for id in (first, second)]
    old = (first, claims[0][1] - 1)
    ends = dict(zip([*claims, old, (waiting, 0)], [SUCCEEDED, REFUSED, TIMED_OUT, TIMED_OUT], strict=True))
    async with store.begin(desk.principal) as scope:
        marked = await try_claims.mark_all_called(scope, [*claims, old, (waiting, 0)])
        settled = await try_claims.settle_all(scope, ends, retention_seconds=RETENTION_SECONDS)
    told = rows_of(
        database.superuser_dsn,
        "select e.detail->>'outcome' as outcome, u.input_tokens is not null as billed from audit_events e"
        " left join usage_records u on u.try_id = e.target_id"
        " where e.target_id = any (%s) and e.action = 'context.try_finished' order by outcome",
        [first, second, waiting],
    )

    assert (marked, settled) == (frozenset(claims), frozenset(claims))
    assert [(await found(store, desk, id)).status for id in (first, second, waiting)] == [
        TryStatus.SUCCEEDED,
        TryStatus.FAILED,
        TryStatus.QUEUED,
    ]
    assert told == [{"outcome": "failed", "billed": True}, {"outcome": "succeeded", "billed": True}]
    assert await ledger(store, desk.principal) == Ledger(used=ACTUAL_TOKENS, reserved=RESERVED)


async def test_what_was_not_called_cannot_be_settled(store: Store, desk: Desk) -> None:
    """Without a mark, or with the number of another claim, a settle does nothing."""
    try_id = await one_try(store, desk)
    waiting = await doing(store, desk, lambda scope: settle(scope, try_id, 0), 1)
    attempt = await take(store, desk.principal, try_id)
    uncalled = await doing(store, desk, lambda scope: settle(scope, try_id, attempt), 1)
    await doing(store, desk, lambda scope: mark(scope, try_id, attempt), 1)
    other = await doing(store, desk, lambda scope: settle(scope, try_id, attempt + 1), 1)

    assert (waiting, uncalled, other) == ([False], [False], [False])
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=RESERVED)


async def test_the_bill_goes_to_the_month_that_holds_the_reservation(
    store: Store, desk: Desk, database: Database
) -> None:
    """A try that was accepted at the end of a month settles in that month."""
    try_id = await one_try(store, desk)
    async with store.begin(desk.principal) as scope:
        await scope.conn.execute(
            "insert into quotas (tenant_id, period, used, reserved) values (%s, '2026-01-01', 5, %s)",
            (scope.tenant_id, RESERVED),
        )
        await scope.conn.execute("update quotas set reserved = 0 where period <> '2026-01-01'")
    await alter(store, desk.principal, "quota_period = '2026-01-01'", try_id)
    attempt = await take(store, desk.principal, try_id, called=True)
    await doing(store, desk, lambda scope: settle(scope, try_id, attempt), 1)
    months = rows_of(
        database.superuser_dsn,
        "select used, reserved from quotas where tenant_id = %s order by period",
        desk.principal.tenant_id,
    )

    assert months == [{"used": 5 + ACTUAL_TOKENS, "reserved": 0}, {"used": 0, "reserved": 0}]


async def test_only_a_silent_worker_loses_its_call(store: Store, desk: Desk) -> None:
    """With `lease_over` a try is settled only when its lease is over."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)

    async def lose(scope: Scope) -> bool:
        return await try_claims.settle(scope, try_id, attempt, LOST, retention_seconds=60, lease_over=True)

    alive = await doing(store, desk, lose, 1)
    await alter(store, desk.principal, LEASE_OVER, try_id)
    silent = await doing(store, desk, lose)
    made = await found(store, desk, try_id)

    assert (alive, silent) == ([False], [True, False])
    assert (made.status, made.error, made.usage) == (TryStatus.LOST, TryError.WORKER_LOST, ESTIMATE)
    assert await ledger(store, desk.principal) == Ledger(used=RESERVED, reserved=0)


async def test_a_late_answer_corrects_the_bill_once(store: Store, desk: Desk) -> None:
    """A lost try stays lost; its estimate gives way to the true figures, once, and the quota follows."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)
    await alter(store, desk.principal, LEASE_OVER, try_id)
    async with store.begin(desk.principal) as scope:
        await try_claims.settle(scope, try_id, attempt, LOST, retention_seconds=60, lease_over=True)
    lost = await found(store, desk, try_id)
    other = await doing(store, desk, lambda scope: try_claims.correct_lost(scope, try_id, attempt + 1, ACTUAL), 1)
    done = await doing(store, desk, lambda scope: try_claims.correct_lost(scope, try_id, attempt, ACTUAL))

    assert (other, done) == ([False], [True, False])
    assert await found(store, desk, try_id) == replace(lost, usage=ACTUAL)
    assert await ledger(store, desk.principal) == Ledger(used=ACTUAL_TOKENS, reserved=0)


@pytest.mark.parametrize("settlement", [SUCCEEDED, TIMED_OUT, REFUSED])
async def test_no_other_bill_is_ever_corrected(store: Store, desk: Desk, settlement: Settlement) -> None:
    """Only a lost try's figures may come late, however its bill was made."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)
    async with store.begin(desk.principal) as scope:
        assert await try_claims.settle(scope, try_id, attempt, settlement, retention_seconds=60)
    before = await found(store, desk, try_id)
    corrected = await doing(store, desk, lambda scope: try_claims.correct_lost(scope, try_id, attempt, ESTIMATE), 1)

    assert corrected == [False]
    assert await found(store, desk, try_id) == before


async def test_an_uncalled_try_ends_without_a_bill(store: Store, desk: Desk) -> None:
    """What was claimed and not called ends once, costs nothing, and only for the claim that is in force."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)

    async def end(scope: Scope, number: int) -> Purpose | None:
        return await try_claims.end_uncalled(scope, try_id, number, TryStatus.FAILED, TryError.CONTEXT_CHANGED)

    other = await doing(store, desk, lambda scope: end(scope, attempt + 1), 1)
    done = await doing(store, desk, lambda scope: end(scope, attempt))
    made = await found(store, desk, try_id)

    assert (other, done) == ([None], [Purpose.CONTEXT_TRY, None])
    assert (made.status, made.error, made.usage) == (TryStatus.FAILED, TryError.CONTEXT_CHANGED, None)
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=0)


async def test_a_called_try_never_ends_as_uncalled(store: Store, desk: Desk) -> None:
    """When the mark is there although its confirmation was lost, nothing can say that there was no call."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=try_id)
    done = await doing(
        store,
        desk,
        lambda scope: try_claims.end_uncalled(scope, try_id, attempt, TryStatus.CANCELLED, TryError.CANCELLED),
    )

    assert done == [None, None]


async def test_a_claimed_try_is_cancelled_only_when_somebody_asked(store: Store, desk: Desk) -> None:
    """A worker whose claim is no longer good cannot cancel a try that its owner wants."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)

    async def end(scope: Scope) -> Purpose | None:
        return await try_claims.end_uncalled(scope, try_id, attempt, TryStatus.CANCELLED, TryError.CANCELLED)

    unasked = await doing(store, desk, end, 1)
    async with store.begin(desk.principal) as scope:
        await tries.cancel(scope, try_id=try_id)

    assert (unasked, await doing(store, desk, end)) == ([None], [Purpose.CONTEXT_TRY, None])


async def test_a_call_that_was_not_taken_waits_again(store: Store, desk: Desk, database: Database) -> None:
    """Deferring takes the mark back and lets the try wait for its time, five times at most."""
    try_id = await one_try(store, desk)
    done = []
    for _ in range(6):
        attempt = await take(store, desk.principal, try_id, called=True)
        done += await doing(store, desk, lambda scope, n=attempt: try_claims.defer(scope, try_id, n, 20.0), 1)  # type: ignore[misc]
    query = (
        "select status, attempt, deferrals, called_at is null as unmarked, lease_until,"
        " not_before > now() + interval '15 s' as later from tries where id = %s"
    )
    (sixth,) = rows_of(database.superuser_dsn, query, try_id)
    await alter(store, desk.principal, "deferrals = 4", try_id)
    done += await doing(store, desk, lambda scope: try_claims.defer(scope, try_id, 6, 20.0))
    (fifth,) = rows_of(database.superuser_dsn, query, try_id)

    assert done == [True] * 5 + [False] + [True, False]
    assert (sixth["status"], sixth["deferrals"], sixth["unmarked"]) == (TryStatus.RUNNING, 5, False)
    assert fifth == {
        "status": TryStatus.QUEUED,
        "attempt": 6,
        "deferrals": 5,
        "unmarked": True,
        "lease_until": None,
        "later": True,
    }
    assert await ledger(store, desk.principal) == Ledger(used=0, reserved=RESERVED)


@pytest.mark.parametrize(
    "change",
    [
        "queue_expires_at = clock_timestamp() + interval '19 s'",
        "cancel_requested_at = clock_timestamp()",
        "attempt = attempt + 1",
    ],
)
async def test_a_try_does_not_wait_for_what_will_not_come(store: Store, desk: Desk, change: str) -> None:
    """Beyond its time in the queue, after a cancel or after another claim, nothing is deferred."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id, called=True)
    await alter(store, desk.principal, change, try_id)

    assert await doing(store, desk, lambda scope: try_claims.defer(scope, try_id, attempt, 20.0), 1) == [False]


async def test_an_uncalled_try_is_rescued_three_times(store: Store, desk: Desk) -> None:
    """When its worker falls silent before the call, another may have it; a fourth time it may not."""
    try_id = await one_try(store, desk)
    done = []
    for _ in range(4):
        attempt = await take(store, desk.principal, try_id)
        done += await doing(store, desk, lambda scope, n=attempt: try_claims.rescue(scope, try_id, n), 1)  # type: ignore[misc]
        await alter(store, desk.principal, LEASE_OVER, try_id)
        done += await doing(store, desk, lambda scope, n=attempt: try_claims.rescue(scope, try_id, n), 1)  # type: ignore[misc]

    assert done == [False, True] * 3 + [False, False]


@pytest.mark.parametrize("change", ["called_at = clock_timestamp()", "cancel_requested_at = clock_timestamp()"])
async def test_what_was_called_or_cancelled_is_not_rescued(store: Store, desk: Desk, change: str) -> None:
    """A try whose call has begun is never given to another worker, nor one that nobody wants."""
    try_id = await one_try(store, desk)
    attempt = await take(store, desk.principal, try_id)
    await alter(store, desk.principal, f"{LEASE_OVER}, {change}", try_id)

    assert await doing(store, desk, lambda scope: try_claims.rescue(scope, try_id, attempt), 1) == [False]


def test_an_unknown_call_is_billed_at_its_reservation() -> None:
    """All that was held is billed: the output that may have come first, the rest as input."""
    assert try_claims.reservation(100, 40) == Usage(input_tokens=60, output_tokens=40)
    assert try_claims.reservation(30, 40) == Usage(input_tokens=0, output_tokens=30)
    assert TryUsage(try_claims.reservation(RESERVED, 40), None, estimated=True) == ESTIMATE
