"""The queue across tenants: who is claimed, who is still alive, who is looked after."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import pytest

from hango.domain import Purpose, Role
from hango.store import claims, tries, try_claims
from hango.store.claims import Pick
from hango.store.connection import Store
from hango.tries import Changes, Claimed, ClaimedRequest, Overdue, Texts, TryError, TryStatus
from tests.conftest import Database
from tests.rows import make_tenant
from tests.tries import (
    LEASE_OVER,
    MODEL,
    PLAIN,
    QUEUE_OVER,
    RESERVED,
    TRACEPARENT,
    admit,
    alter,
    make_desk,
    one_try,
    take,
    variant,
)

LEASE_SECONDS = 30.0


@pytest.fixture
async def alone(fresh_database: Database) -> AsyncIterator[Store]:
    """A store on a database without the tries of other tests."""
    opened = await Store.open(fresh_database.app_dsn, max_size=3)
    yield opened
    await opened.close()


async def test_a_claim_tells_a_worker_all_that_it_needs(alone: Store) -> None:
    """A claimed try runs under its owner's name, with no more rights than a member, its timeout and its trace."""
    desk = await make_desk(alone, await make_tenant(alone))
    changes = Changes(exclude=("tool:a",), replace=("system:agent",), until=2)
    try_id = await one_try(alone, desk, variant(None, changes))
    owner = uuid4()
    async with alone.system() as scope:
        (claimed,) = (await claims.claim(scope, owner, lease_seconds=LEASE_SECONDS, cap=1, most=5)).claimed
        assert await claims.claim(scope, owner, lease_seconds=LEASE_SECONDS, cap=5, most=5) == Pick()
    async with alone.read(desk.principal) as scope:
        asked = await try_claims.request(scope, claimed.request_id)
        nothing = await try_claims.request(scope, uuid4())
        shown = await tries.get(scope, try_id)

    assert shown is not None
    assert claimed == Claimed(
        principal=replace(desk.principal, role=Role.MEMBER),
        id=try_id,
        session_id=desk.session_id,
        request_id=claimed.request_id,
        batch_id=None,
        attempt=1,
        timeout_seconds=120.0,
        reserved=RESERVED,
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
        created_at=shown.created_at,
    )
    assert asked == ClaimedRequest(
        base_id=desk.base_id,
        model=MODEL,
        changes=changes,
        texts=Texts({"system:agent": "instead of system:agent"}, "and now?"),
        request_sha256="5" * 64,
        max_output_tokens=40,
    )
    assert nothing is None
    assert (shown.status, shown.attempts, shown.started_at is None) == (TryStatus.RUNNING, 1, False)


async def test_a_sign_of_life_tells_what_is_still_held(alone: Store) -> None:
    """Renewing names the tries that the worker has, and whether to end each; others' and older claims are missing."""
    desk = await make_desk(alone, await make_tenant(alone))
    owner = uuid4()
    held, cancelled, ended, others, older = [await one_try(alone, desk) for _ in range(5)]
    await take(alone, desk.principal, held, cancelled, ended, older, owner=owner)
    await take(alone, desk.principal, others)
    await alter(alone, desk.principal, LEASE_OVER, held)
    await alter(alone, desk.principal, "attempt = 2", older)
    async with alone.begin(desk.principal) as own:
        await tries.cancel(own, try_id=cancelled)
        await try_claims.end_uncalled(own, ended, 1, TryStatus.FAILED, TryError.INTERNAL)
    async with alone.system() as scope:
        every = [(id, 1) for id in (held, cancelled, ended, others, older)]
        found = await claims.renew(scope, owner, every, LEASE_SECONDS)
        none = await claims.renew(scope, owner, [], LEASE_SECONDS)
    async with alone.begin(desk.principal) as own:
        # The lease is good again: the call may begin.
        assert await try_claims.mark_all_called(own, [(held, 1)])

    assert (found, none) == ({held: False, cancelled: True}, {})


async def test_silent_workers_are_found_whatever_their_tenant(alone: Store) -> None:
    """Overdue tries come with all that is needed to end or to rescue them, in order, and as many as are asked for."""
    desks = [await make_desk(alone, await make_tenant(alone)) for _ in range(2)]
    called, cancelled, rescued = (
        await one_try(alone, desks[0]),
        await one_try(alone, desks[0]),
        await one_try(alone, desks[1]),
    )
    alive = await one_try(alone, desks[1])
    await take(alone, desks[0].principal, called, called=True)
    await take(alone, desks[0].principal, cancelled)
    await take(alone, desks[1].principal, rescued, alive)
    async with alone.begin(desks[0].principal) as own:
        await tries.cancel(own, try_id=cancelled)
    await alter(alone, desks[0].principal, LEASE_OVER, called, cancelled)
    await alter(alone, desks[1].principal, f"{LEASE_OVER}, rescues = 2, attempt = 3", rescued)
    async with alone.system() as scope, alone.system() as other:
        first = await claims.hold_overdue(scope, 2)
        rest = await claims.hold_overdue(other, 9)

    members = [replace(desk.principal, role=Role.MEMBER) for desk in desks]
    assert first + rest == [
        Overdue(
            members[0], called, first[0].request_id, 1, RESERVED, called=True, cancelled=False, traceparent=TRACEPARENT
        ),
        Overdue(
            members[0],
            cancelled,
            first[1].request_id,
            1,
            RESERVED,
            called=False,
            cancelled=True,
            traceparent=TRACEPARENT,
        ),
        Overdue(
            members[1], rescued, rest[0].request_id, 3, RESERVED, called=False, cancelled=False, traceparent=TRACEPARENT
        ),
    ]


async def test_one_process_at_a_time_looks_after_the_queue(alone: Store) -> None:
    """The second is told so at once, and may when the first has ended."""
    async with alone.system() as first:
        held = [await claims.hold_reconciler(first)]
        async with alone.system() as second:
            held.append(await claims.hold_reconciler(second))
    async with alone.system() as third:
        held.append(await claims.hold_reconciler(third))

    assert held == [True, False, True]


async def test_what_waited_too_long_is_found_and_ended(alone: Store) -> None:
    """Tenants with such tries are named; a try that somebody holds is left for the next time."""
    desks = [await make_desk(alone, await make_tenant(alone)) for _ in range(2)]
    async with alone.begin(desks[0].principal) as own:
        first, second, held, fresh = await admit(own, desks[0], [PLAIN] * 4)
    await one_try(alone, desks[1])
    await alter(alone, desks[0].principal, QUEUE_OVER, first, second, held)
    async with alone.system() as scope:
        tenants = await claims.tenants_with_expired(scope, 9)
        waiting, oldest = await claims.count_claimable(scope, 9)
    async with alone.begin(desks[0].principal) as holder:
        await holder.conn.execute("select from tries where id = %s for update", (held,))
        async with alone.begin(desks[0].principal) as own:
            counts = [await tries.expire(own, 1), await tries.expire(own, 9)]
    async with alone.begin(desks[0].principal) as own:
        counts.append(await tries.expire(own, 9))
        ended = await tries.get(own, first)
        untouched = await tries.get(own, fresh)

    assert [principal.tenant_id for principal in tenants] == [desks[0].principal.tenant_id]
    assert (waiting, 0 < oldest < 60) == (2, True)
    assert counts == [{Purpose.CONTEXT_TRY: 1}] * 3
    assert ended is not None
    assert (ended.status, ended.error, ended.usage) == (TryStatus.EXPIRED, TryError.QUEUE_EXPIRED, None)
    assert untouched is not None
    assert untouched.status is TryStatus.QUEUED


async def test_a_wrong_ledger_and_a_stuck_try_are_seen(alone: Store) -> None:
    """The check counts months whose reservation is not what is under way, and tries that are older than any may be."""
    desk = await make_desk(alone, await make_tenant(alone))
    waiting, running = await one_try(alone, desk), await one_try(alone, desk)
    await take(alone, desk.principal, running)

    async def drift() -> tuple[int, int]:
        async with alone.system() as scope:
            return await claims.count_drift(scope, 100.0)

    seen = [await drift()]
    async with alone.begin(desk.principal) as own:
        await own.conn.execute("update quotas set reserved = reserved + 1")
    seen.append(await drift())
    await alter(alone, desk.principal, "queue_expires_at = clock_timestamp() - interval '99 s'", waiting)
    await alter(alone, desk.principal, "queue_expires_at = clock_timestamp() - interval '101 s'", running)
    seen.append(await drift())
    async with alone.system() as scope:
        tenants = [principal.tenant_id for principal in await claims.tenants(scope)]

    assert seen == [(0, 0), (1, 0), (1, 1)]
    assert tenants == [desk.principal.tenant_id]
