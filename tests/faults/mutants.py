"""Guards taken out of the statements of tries, one at a time: the lives of `states` must find out each of them.

    python -m tests.faults.mutants [NAME ...]

A mutant that lives on shows a guard that nothing needs, or a rule that nobody looks at.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Final

import psycopg

from hango.store.db import idempotency_keys, quotas, system, tries
from tests.conftest import Database
from tests.faults.report import Figure, exactly
from tests.faults.run import Run
from tests.faults.states import explore, own_database

LIVES: Final = 400


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` becomes `new` in a statement of a module, or in a function of the schema (`module` None)."""

    module: ModuleType | None
    name: str
    old: str
    new: str = ""


MUTANTS: Final = {
    "a settle of what has ended": Mutant(tries, "SETTLE_TRIES", "    and t.status = 'running'\n"),
    "a settle of an older claim": Mutant(tries, "SETTLE_TRIES", "a.id = t.id and a.attempt = t.attempt", "a.id = t.id"),
    "a settle that bills nobody": Mutant(
        tries,
        "SETTLE_TRIES",
        "  join try_requests r on r.tenant_id",
        "  join try_requests r on false and r.tenant_id",
    ),
    "a settle that keeps its reservation": Mutant(
        tries, "SETTLE_TRIES", "set reserved = q.reserved - s.reserved, used", "set used"
    ),
    "a second mark": Mutant(tries, "MARK_CALLED", "    and t.called_at is null\n"),
    "a mark after a cancel": Mutant(tries, "MARK_CALLED", "\n    and t.cancel_requested_at is null"),
    "a mark of a silent worker": Mutant(tries, "MARK_CALLED", "    and t.lease_until > clock_timestamp()\n"),
    "a correction of what was not lost": Mutant(tries, "CORRECT_LOST", "    and t.status = 'lost'\n"),
    "a second correction": Mutant(tries, "CORRECT_LOST", "\n    and u.estimated"),
    "a correction that adds to the estimate": Mutant(tries, "CORRECT_LOST", "q.used - c.reserved +", "q.used +"),
    "an uncalled end of a called try": Mutant(tries, "END_UNCALLED", "    and t.called_at is null\n"),
    "an uncalled end of an older claim": Mutant(
        tries, "END_UNCALLED", "    and (%(attempt)s::integer is null or t.attempt = %(attempt)s::integer)\n"
    ),
    "a cancel that nobody asked for": Mutant(
        tries,
        "END_UNCALLED",
        "    and (%(status)s <> 'cancelled' or t.status = 'queued' or t.cancel_requested_at is not null)\n",
    ),
    "an end that gives nothing back": Mutant(tries, "END_UNCALLED", "q.reserved - s.reserved", "q.reserved"),
    "a deferral of an older claim": Mutant(tries, "DEFER_TRY", "  and attempt = %(attempt)s\n"),
    "a deferral that keeps its mark": Mutant(tries, "DEFER_TRY", "  called_at = null,\n"),
    "a rescue without end": Mutant(tries, "RESCUE_TRY", "\n  and rescues < 3"),
    "a sign of life of an older claim": Mutant(system, "RENEW_LEASES", " and n.attempt = t.attempt"),
    "a called try that is taken for uncalled": Mutant(
        system, "HOLD_OVERDUE", "(t.called_at is not null)::boolean", "false"
    ),
    "a quota that forgets what is held": Mutant(quotas, "RESERVE_QUOTA", "q.used + q.reserved + ", "q.used + "),
    "a key that counts every time": Mutant(
        idempotency_keys, "TAKE_IDEMPOTENCY_KEY", "\nwhere idempotency_keys.created_at <= now() - interval '24 hours'"
    ),
    "a pick over the cap": Mutant(None, "claim_tries", "cap - c.running as room", "cap as room"),
    "a pick of the busiest": Mutant(None, "claim_tries", "order by c.running,", "order by c.running desc,"),
    "a pick of what has run out of time": Mutant(
        None, "claim_tries", "q.queue_expires_at > clock_timestamp()", "q.queue_expires_at is not null"
    ),
    "a pick that does not wait": Mutant(
        None, "claim_tries", "(q.not_before is null or q.not_before <= clock_timestamp())", "true"
    ),
    "a batch that ends too early": Mutant(None, "count_end", "when remaining = 1 then", "when remaining <= 2 then"),
}


@contextmanager
def mutated(database: Database, mutant: Mutant) -> Iterator[None]:
    if mutant.module is not None:
        whole = getattr(mutant.module, mutant.name)
        setattr(mutant.module, mutant.name, _changed(whole, mutant))
        try:
            yield
        finally:
            setattr(mutant.module, mutant.name, whole)
        return
    with psycopg.connect(database.superuser_dsn, autocommit=True) as conn:
        row = conn.execute("select pg_get_functiondef(oid) from pg_proc where proname = %s", (mutant.name,)).fetchone()
        assert row is not None
        conn.execute(_changed(row[0], mutant).encode())
        try:
            yield
        finally:
            conn.execute(row[0].encode())


def survives(database: Database, mutant: Mutant, seed: int) -> bool:
    """Whether no life shows that the guard is gone."""
    with mutated(database, mutant):
        try:
            explore(database, sequences=LIVES, seed=seed, shrink=False)
        except Exception:
            return False
    return True


async def mutants(run: Run) -> Sequence[Figure]:
    """F4: each guard that was taken out is missed."""
    chance = run.random("mutants")
    with own_database() as database:
        lived = [
            name
            for name, mutant in MUTANTS.items()
            if await asyncio.to_thread(survives, database, mutant, chance.randrange(2**32))
        ]
    return [exactly("mutants found out", len(MUTANTS) - len(lived), len(MUTANTS))]


def _changed(whole: str, mutant: Mutant) -> str:
    assert mutant.old in whole, f"{mutant.name} has no {mutant.old!r}"
    return whole.replace(mutant.old, mutant.new)


def main(names: Sequence[str]) -> int:
    lived = []
    with own_database() as database:
        for name in names or MUTANTS:
            began = time.monotonic()
            if survives(database, MUTANTS[name], seed=1):
                lived.append(name)
            verdict = "LIVES" if name in lived else "found out"
            sys.stdout.write(f"{name:45} {verdict} after {time.monotonic() - began:.1f} s\n")
            sys.stdout.flush()
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
