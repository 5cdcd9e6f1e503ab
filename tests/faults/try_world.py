"""Two tenants' tries, driven one step at a time by the real functions, and what PostgreSQL says after each step."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hango.chain.deps import Deps
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import BatchID, SessionID, TenantID, TryID
from hango.store import claims, idempotency_keys, tries, try_batches, try_claims
from hango.store.connection import Store
from hango.store.ids import new_id
from hango.tries import Claimed, Settlement, TryError, TryStatus, TryUsage
from hango.workers.reconciler import Reconciler
from tests.conftest import Database
from tests.rows import make_tenant
from tests.tries import PLAIN, RESERVED, RETENTION_SECONDS, Desk, admission, make_desk

T = TypeVar("T")

CAP: Final = 2
# The first tenant soon has no quota left, the second never.
QUOTAS: Final = (3 * RESERVED + RESERVED // 2, None)
LEASE_SECONDS: Final = 1000.0
WORKERS: Final = (UUID(int=1), UUID(int=2))

_FACTS: Final = """
select
  t.id, t.tenant_id, t.batch_id, t.status, t.attempt, t.reserved, t.error_code,
  t.called_at is not null as called,
  t.cancel_requested_at is not null as cancelling,
  t.lease_until < clock_timestamp() as silent,
  t.status = 'queued' and t.queue_expires_at > clock_timestamp()
    and (t.not_before is null or t.not_before <= clock_timestamp()) as claimable,
  t::text as whole,
  coalesce(u.bills, '{}') as bills, u.estimated,
  (select count(*) from try_payloads p where p.tenant_id = t.tenant_id and p.try_id = t.id) as answers,
  coalesce(a.accepted, 0) as accepted, coalesce(a.finished, 0) as finished
from tries t
left join (
  select
    try_id,
    array_agg(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens) as bills,
    bool_or(estimated) as estimated
  from usage_records
  group by try_id
) u on u.try_id = t.id
left join (
  select
    target_id,
    count(*) filter (where action = 'context.try') as accepted,
    count(*) filter (where action = 'context.try_finished') as finished
  from audit_events
  group by target_id
) a on a.target_id = t.id
"""
_LEDGERS: Final = "select tenant_id, used, reserved from quotas"
_BATCHES: Final = "select id, remaining, finished_at is not null as finished from try_batches"
# What is deleted row by row would stay in the way of the next life.
_CLEAR: Final = """
truncate usage_records, try_payloads, tries, try_requests, try_batches, audit_events, idempotency_keys;
update quotas set used = 0, reserved = 0
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A try as it stands in the table, with what hangs on it."""

    id: UUID
    tenant_id: UUID
    batch_id: UUID | None
    status: str
    attempt: int
    reserved: int
    error_code: str | None
    called: bool
    cancelling: bool
    silent: bool | None
    claimable: bool
    whole: str
    bills: Sequence[int]
    estimated: bool | None
    answers: int
    accepted: int
    finished: int

    @property
    def live(self) -> bool:
        return self.status in ("queued", "running")


@dataclass(frozen=True, slots=True)
class Facts:
    tries: Mapping[UUID, Fact]
    ledgers: Mapping[UUID, tuple[int, int]]  # used, reserved
    batches: Mapping[UUID, tuple[int, bool]]  # remaining, finished

    def running(self, tenant_id: UUID) -> int:
        return sum(one.status == "running" for one in self.tries.values() if one.tenant_id == tenant_id)

    def waiting(self) -> set[UUID]:
        """Tenants of which something can be claimed and that may have more running."""
        tenants = {one.tenant_id for one in self.tries.values() if one.claimable}
        return {tenant_id for tenant_id in tenants if self.running(tenant_id) < CAP}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a POST asks for, under which key; without a batch one try."""

    tenant: int
    count: int
    is_batch: bool
    key: str | None = None

    @property
    def hash(self) -> bytes:
        return sha256(f"{self.count} {self.is_batch}".encode()).digest()


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed try, and the name of the worker that has it."""

    claimed: Claimed
    owner: UUID

    @property
    def id(self) -> TryID:
        return self.claimed.id

    @property
    def key(self) -> try_claims.Claim:
        return self.claimed.id, self.claimed.attempt


class World:
    """Steps for somebody who is not asynchronous. To be used as a context: it owns an event loop and connections."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.Runner()
        self._eye = psycopg.connect(database.superuser_dsn, autocommit=True, row_factory=dict_row)

    def __enter__(self) -> World:
        self._store = self._run(Store.open(self._database.app_dsn, max_size=2))
        self._desks = [self._run(self._desk(tokens)) for tokens in QUOTAS]
        settings = Settings.from_env({"HANGO_DATABASE_URL": self._database.app_dsn})
        models = Models.load(None)
        deps = Deps(settings, self._store, Providers(settings, models), models)
        self._reconciler = Reconciler(deps, self._ring)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._store.close())
        self._eye.close()
        self._loop.close()

    def clear(self) -> None:
        """As if nobody had ever tried anything."""
        self._eye.execute(_CLEAR)

    def facts(self) -> Facts:
        return Facts(
            {row["id"]: Fact(**row) for row in self._eye.execute(_FACTS).fetchall()},
            {row["tenant_id"]: (row["used"], row["reserved"]) for row in self._eye.execute(_LEDGERS).fetchall()},
            {row["id"]: (row["remaining"], row["finished"]) for row in self._eye.execute(_BATCHES).fetchall()},
        )

    def tenant(self, number: int) -> TenantID:
        return self._desks[number].principal.tenant_id

    def session(self, number: int) -> SessionID:
        return self._desks[number].session_id

    def turn(self, what: LiteralString, *ids: UUID) -> None:
        """Put the clock forward for some tries: change a time of theirs."""
        self._eye.execute(sql.SQL("update tries set {} and id = any (%s)").format(sql.SQL(what)), (list(ids),))

    def admit(self, wish: Wish) -> tuple[UUID, list[TryID]]:
        """A POST: the try or batch, and the tries that were made for it. Raises QuotaExceeded and Invalid."""
        return self._run(self._admit(self._desks[wish.tenant], wish))

    def claim(self, most: int) -> tuple[list[Claim], bool]:
        """By one of two workers: which of them has a try says nothing of which claim it is. And whether more waits."""
        owner = WORKERS[most % 2]

        async def claim() -> claims.Pick:
            async with self._store.system() as scope:
                return await claims.claim(scope, owner, lease_seconds=LEASE_SECONDS, cap=CAP, most=most)

        pick = self._run(claim())
        return [Claim(claimed, owner) for claimed in pick.claimed], pick.more

    def mark(self, claim: Claim) -> bool:
        async def mark() -> bool:
            async with self._store.begin(claim.claimed.principal) as scope:
                return bool(await try_claims.mark_all_called(scope, [claim.key]))

        return self._run(mark())

    def mark_all(self, claims: Sequence[Claim]) -> set[try_claims.Claim]:
        """Those of one tenant whose call may begin."""

        async def mark() -> Set[try_claims.Claim]:
            async with self._store.begin(claims[0].claimed.principal) as scope:
                return await try_claims.mark_all_called(scope, [claim.key for claim in claims])

        return set(self._run(mark()))

    def settle_all(self, ends: Mapping[Claim, Settlement]) -> set[try_claims.Claim]:
        """Those of one tenant that were in force."""
        made = {claim.key: ended for claim, ended in ends.items()}

        async def settle() -> Set[try_claims.Claim]:
            async with self._store.begin(next(iter(ends)).claimed.principal) as scope:
                return await try_claims.settle_all(scope, made, retention_seconds=RETENTION_SECONDS)

        return set(self._run(settle()))

    def end_cancelled(self, claim: Claim) -> bool:
        """What a worker does that may not call."""

        async def end() -> bool:
            async with self._store.begin(claim.claimed.principal) as scope:
                ended = await try_claims.end_uncalled(
                    scope, claim.id, claim.claimed.attempt, TryStatus.CANCELLED, TryError.CANCELLED
                )
                return ended is not None

        return self._run(end())

    def settle(self, claim: Claim, ended: Settlement) -> bool:
        async def settle() -> bool:
            async with self._store.begin(claim.claimed.principal) as scope:
                return await try_claims.settle(
                    scope, claim.id, claim.claimed.attempt, ended, retention_seconds=RETENTION_SECONDS
                )

        return self._run(settle())

    def correct(self, claim: Claim, usage: TryUsage) -> bool:
        async def correct() -> bool:
            async with self._store.begin(claim.claimed.principal) as scope:
                return await try_claims.correct_lost(scope, claim.id, claim.claimed.attempt, usage)

        return self._run(correct())

    def defer(self, claim: Claim, seconds: float) -> bool:
        async def defer() -> bool:
            async with self._store.begin(claim.claimed.principal) as scope:
                return await try_claims.defer(scope, claim.id, claim.claimed.attempt, seconds)

        return self._run(defer())

    def renew(self, claim: Claim) -> bool | None:
        """Whether its owner wants it cancelled; None when the worker has it no more."""

        async def renew() -> Mapping[TryID, bool]:
            async with self._store.system() as scope:
                return await claims.renew(scope, claim.owner, [(claim.id, claim.claimed.attempt)], LEASE_SECONDS)

        return self._run(renew()).get(claim.id)

    def cancel(self, tenant: int, **what: UUID) -> None:
        async def cancel() -> None:
            async with self._store.begin(self._desks[tenant].principal) as scope:
                await tries.cancel(scope, **what)

        self._run(cancel())

    def reconcile(self) -> None:
        self._run(self._reconciler.look_after())

    def drift(self) -> tuple[int, int]:
        async def drift() -> tuple[int, int]:
            async with self._store.system() as scope:
                return await claims.count_drift(scope, 0.0)

        return self._run(drift())

    async def _desk(self, quota_tokens: int | None) -> Desk:
        return await make_desk(self._store, await make_tenant(self._store, quota_tokens=quota_tokens))

    async def _admit(self, desk: Desk, wish: Wish) -> tuple[UUID, list[TryID]]:
        resource_id = new_id()
        async with self._store.begin(desk.principal) as scope:
            await tries.hold_session(scope, desk.session_id)
            if wish.key is not None:
                first = await idempotency_keys.take(scope, wish.key, wish.hash, resource_id)
                if first != resource_id:
                    return first, []
            admitted = await admission(scope, wish.count * RESERVED, ttl_seconds=LEASE_SECONDS)
            if not wish.is_batch:
                return resource_id, await tries.create(
                    scope, desk.session_id, desk.base_id, [PLAIN], admitted, first_id=TryID(resource_id)
                )
            batch_id = BatchID(resource_id)
            await try_batches.create(scope, batch_id, desk.session_id, desk.base_id, label=None, tries=wish.count)
            return resource_id, await tries.create(
                scope, desk.session_id, desk.base_id, [PLAIN], admitted, repeats=wish.count, batch_id=batch_id
            )

    async def _ring(self, times: int) -> None:
        """Nobody is there to be woken: the next step may be a claim, or not."""

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(step)
