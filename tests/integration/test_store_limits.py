"""What keeps tries in bounds: the quota that is held before a call, and keys that make a POST count once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from hango.chain.tries import FACTOR_WEIGHT, weighed
from hango.domain import Principal
from hango.errors import Invalid, QuotaExceeded, Reason
from hango.store import context_bases, idempotency_keys, quotas, retention, tenants, token_factors, tries, usage
from hango.store.connection import Scope, Store
from hango.store.ids import new_id
from hango.store.token_factors import TokenFactor
from tests.conftest import Database
from tests.rows import make_agent, make_member, make_session, make_tenant
from tests.tries import RESERVED, Ledger, admit, ledger, make_desk, one_try, rows_of

KEY = "0197f3b2-try"
HASH, OTHER_HASH = b"1" * 32, b"2" * 32


@pytest.fixture
async def wide_store(database: Database) -> AsyncIterator[Store]:
    """A store with enough connections for a race."""
    opened = await Store.open(database.app_dsn, max_size=20, wait_seconds=60)
    yield opened
    await opened.close()


async def refused(attempt: Awaitable[object], error: type[Exception]) -> bool:
    try:
        await attempt
    except error:
        return True
    return False


async def test_exactly_as_many_tries_as_there_is_quota_for(wide_store: Store) -> None:
    """100 tries at once with quota for 10: 10 are accepted, 90 are 402, and the quota is held to the last token."""
    admin = await make_tenant(wide_store, quota_tokens=10 * RESERVED + RESERVED // 2)
    desk = await make_desk(wide_store, admin)

    turned_away = await asyncio.gather(*(refused(one_try(wide_store, desk), QuotaExceeded) for _ in range(100)))
    async with wide_store.read(admin) as scope:
        outstanding = await tries.count_outstanding(scope)

    assert (turned_away.count(False), turned_away.count(True), outstanding) == (10, 90, 10)
    assert await ledger(wide_store, admin) == Ledger(used=0, reserved=10 * RESERVED)


async def test_a_refused_reservation_holds_nothing(store: Store) -> None:
    """What does not fit is refused whole; what fits exactly is not; without a quota everything fits."""
    admin = await make_tenant(store, quota_tokens=RESERVED)
    async with store.begin(admin) as scope:
        with pytest.raises(QuotaExceeded):
            await quotas.reserve(scope, RESERVED + 1)
        period = await quotas.reserve(scope, RESERVED)
        with pytest.raises(QuotaExceeded):
            await quotas.reserve(scope, 1)
        with pytest.raises(QuotaExceeded):
            await usage.ensure_quota(scope)
        shown = await tenants.get(scope)
    free = await make_tenant(store)
    async with store.begin(free) as scope:
        await quotas.reserve(scope, 10**15)

    assert period == datetime.now(UTC).date().replace(day=1)
    assert (shown.quota_used, shown.quota_reserved) == (0, RESERVED)
    assert await ledger(store, admin) == Ledger(used=0, reserved=RESERVED)
    assert await ledger(store, free) == Ledger(used=0, reserved=10**15)


async def test_a_transaction_that_fails_gives_its_reservation_back(store: Store, admin: Principal) -> None:
    """What was not accepted leaves no trace: neither a try nor a reservation."""
    desk = await make_desk(store, admin)
    async with store.begin(admin) as scope:
        await admit(scope, desk)
        await scope.conn.rollback()

    assert await ledger(store, admin) == Ledger(used=0, reserved=0)


async def take(store: Store, who: Principal, key: str = KEY, hash: bytes = HASH) -> tuple[UUID, UUID]:
    """What a POST under the key makes, and what it is told that it made."""
    made = new_id()
    async with store.begin(who) as scope:
        return made, await idempotency_keys.take(scope, key, hash, made)


async def test_the_same_key_at_once_gives_one_resource(wide_store: Store) -> None:
    """40 equal POSTs at once: one of them makes the resource, all are told of it."""
    admin = await make_tenant(wide_store)
    done = await asyncio.gather(*(take(wide_store, admin) for _ in range(40)))

    (winner,) = [made for made, told in done if made == told]
    assert {told for _, told in done} == {winner}
    async with wide_store.read(admin) as scope:
        assert await idempotency_keys.find(scope, KEY, HASH) == winner


async def test_a_key_that_was_rolled_back_is_free(store: Store, admin: Principal) -> None:
    """A POST that is refused saves nothing: the same key may be sent again, with another body too."""
    async with store.begin(admin) as scope:
        await idempotency_keys.take(scope, KEY, HASH, new_id())
        await scope.conn.rollback()

    made, told = await take(store, admin, hash=OTHER_HASH)
    assert made == told


async def find(scope: Scope) -> object:
    return await idempotency_keys.find(scope, KEY, OTHER_HASH)


async def take_again(scope: Scope) -> object:
    return await idempotency_keys.take(scope, KEY, OTHER_HASH, new_id())


@pytest.mark.parametrize("use", [find, take_again])
async def test_a_key_for_another_request_is_refused(
    store: Store, admin: Principal, use: Callable[[Scope], Awaitable[object]]
) -> None:
    """The same key with another body is 422 idempotency_key_reused, in a sentence that says what to do."""
    await take(store, admin)
    with pytest.raises(Invalid) as raised:
        async with store.begin(admin) as scope:
            await use(scope)

    assert [(error.reason, error.message) for error in raised.value.errors] == [
        (Reason.IDEMPOTENCY_KEY_REUSED, idempotency_keys.REUSED)
    ]


async def test_a_key_is_its_users_own(store: Store, admin: Principal, stranger: Principal) -> None:
    """Two tenants, and two users of one, may use the same key for different things."""
    member = await make_member(store, admin)
    done = [await take(store, who, hash=hash) for who, hash in ((admin, HASH), (stranger, HASH), (member, OTHER_HASH))]

    assert [made == told for made, told in done] == [True, True, True]
    async with store.read(stranger) as scope:
        assert await idempotency_keys.find(scope, KEY, HASH) == done[1][0]


async def age(store: Store, who: Principal, by: str) -> None:
    async with store.begin(who) as scope:
        await scope.conn.execute(
            "update idempotency_keys set created_at = created_at - %s::interval where tenant_id = %s",
            (by, scope.tenant_id),
        )


async def test_a_key_is_free_again_after_a_day(store: Store, admin: Principal) -> None:
    """Within 24 hours a key gives the first resource; after them it is taken for the next request."""
    first, _ = await take(store, admin)
    await age(store, admin, "23 hours 59 minutes")
    _, told = await take(store, admin)
    await age(store, admin, "2 minutes")
    async with store.read(admin) as scope:
        over = await idempotency_keys.find(scope, KEY, HASH)
    second, told_then = await take(store, admin, hash=OTHER_HASH)
    async with store.read(admin) as scope:
        kept = await idempotency_keys.find(scope, KEY, OTHER_HASH)

    assert (told, over, told_then, kept) == (first, None, second, second)


async def test_old_keys_are_purged(store: Store, admin: Principal, database: Database) -> None:
    """An hour after its day a key is deleted; a younger one is not."""
    await take(store, admin, "old")
    await age(store, admin, "25 hours 1 minute")
    await take(store, admin, "young")
    async with store.begin(admin) as scope:
        await retention.purge(scope)
    left = rows_of(
        database.superuser_dsn,
        "select key_hash = sha256('young') as young from idempotency_keys where tenant_id = %s",
        admin.tenant_id,
    )

    assert left == [{"young": True}]


async def test_a_factor_moves_towards_what_was_billed(store: Store, admin: Principal, stranger: Principal) -> None:
    """The first call sets a model's factor, each further one moves it by its weight and never over the bounds; another
    tenant learns for itself."""

    async def learn(who: Principal, ratio: float) -> None:
        async with store.begin(who) as scope:
            await token_factors.learn(scope, "a/x", ratio=ratio, first=1.2, weight=0.5, least=0.5, most=2.0)

    seen = []
    for ratio in (9.0, 1.6, 99.0, -99.0):
        await learn(admin, ratio)
        seen.append(await factor(store, admin))
    await learn(stranger, 9.0)

    assert seen == [TokenFactor(1.2, 1), TokenFactor(1.4, 2), TokenFactor(2.0, 3), TokenFactor(0.5, 4)]
    assert await factor(store, stranger) == TokenFactor(1.2, 1)


async def test_many_calls_are_one_lesson(store: Store, admin: Principal) -> None:
    """What several calls teach together counts as so many calls, and moves a factor as far as one after the other."""
    one_by_one, together = 1.2, weighed([1.6, 2.0, 0.8])
    for ratio in (1.6, 2.0, 0.8):
        one_by_one += FACTOR_WEIGHT * (ratio - one_by_one)
    async with store.begin(admin) as scope:
        await token_factors.learn(scope, "a/x", ratio=1.2, first=1.2, weight=1.0, least=0.5, most=2.0)
        await token_factors.learn(
            scope, "a/x", ratio=together[0], first=9.0, weight=together[1], least=0.5, most=2.0, calls=3
        )

    learnt = await factor(store, admin)
    assert (learnt.calls, round(learnt.factor, 12)) == (4, round(one_by_one, 12))


async def factor(store: Store, who: Principal) -> TokenFactor:
    """What a base of the tenant says of the model."""
    async with store.begin(who) as scope:
        session = await make_session(scope, await make_agent(scope))
        base = await context_bases.current(scope, session.id)
    assert base is not None
    return base.factors["a/x"]
