"""Every order of events that a try may meet, one after the other, against the real functions and a real PostgreSQL.

    python -m tests.faults.states [--sequences N] [--seed S]

After every event the rules I1 to I7 of docs/faults.md are looked at; in the end every try must have ended.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final, LiteralString
from uuid import UUID

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from hango import logs
from hango.config import Settings
from hango.errors import Invalid, QuotaExceeded
from hango.store.usage import total
from hango.tries import Settlement
from tests import services
from tests.conftest import Database
from tests.faults.report import Figure, exactly, told
from tests.faults.run import Run
from tests.faults.try_world import CAP, QUOTAS, Claim, Fact, Facts, Wish, World
from tests.tries import ACTUAL, REFUSED, RESERVED, SUCCEEDED, TIMED_OUT

STEPS: Final = 40
OUTCOMES: Final = (TIMED_OUT, SUCCEEDED, REFUSED)
LEASE_OVER: Final = "lease_until = clock_timestamp() - interval '1 s' where status = 'running'"
QUEUE_OVER: Final = "queue_expires_at = clock_timestamp() - interval '1 s' where status = 'queued'"
# As when so many workers died one after the other.
RESCUED_OFTEN: Final = "rescues = 3 where status in ('queued', 'running')"
PAUSE_OVER: Final = "not_before = clock_timestamp() where status = 'queued' and not_before is not null"

tenants = st.sampled_from(range(len(QUOTAS)))
turns = st.integers(0, len(OUTCOMES) - 1)
wishes = st.builds(
    lambda tenant, count, key: Wish(tenant, max(1, count), count > 0, key),
    tenants,
    st.integers(0, 3),
    st.sampled_from([None, None, "a", "b"]),
)


class Life(RuleBasedStateMachine):
    """A life of some tries. The handles of workers that died, fell silent or were overtaken stay in play."""

    world: ClassVar[World]
    states: ClassVar[Counter[str]]

    made = Bundle("made")
    claimed = Bundle("claimed")
    calling = Bundle("calling")
    turned_away = Bundle("turned_away")

    def __init__(self) -> None:
        super().__init__()
        self.seen = Facts({}, {}, {})
        self.known: dict[UUID, int] = {}  # accepted tries: of which tenant
        self.keys: dict[tuple[int, str], tuple[bytes, UUID]] = {}
        self.calls: Counter[UUID] = Counter()  # that a provider took
        self.corrected: Counter[UUID] = Counter()
        self.ended: dict[UUID, Fact] = {}

    @initialize(target=made, count=st.integers(1, 3))
    def begin(self, count: int) -> MultipleResults[UUID]:
        """Something to do for two tenants."""
        self.world.clear()
        self._see()
        single, batch = Wish(0, 1, is_batch=False), Wish(1, count, is_batch=True)
        return multiple(*self._accept(single), *self._accept(batch))

    @rule(target=made, wish=wishes)
    def admit(self, wish: Wish) -> MultipleResults[UUID]:
        """A POST, perhaps a repeated one."""
        return multiple(*self._accept(wish))

    @rule(target=claimed, most=st.integers(1, 3))
    def claim(self, most: int) -> MultipleResults[Claim]:
        return multiple(*self._claim(most))

    @rule(target=calling)
    def claim_and_call(self) -> MultipleResults[Claim]:
        """All goes well so far."""
        claims = self._claim(CAP)
        self._see()
        return multiple(*(claim for claim in claims if self._call(claim)))

    @rule(target=calling, claim=turned_away)
    def wait_again(self, claim: Claim) -> MultipleResults[Claim]:
        """It waits again and another calls; the first, whose confirmation was lost, does all that it does once more."""
        self._put_back(claim)
        self._see()
        others = self._claim(CAP)
        self._see()
        calling = [other for other in others if self._call(other)]
        self._see()
        self._put_back(claim)
        return multiple(*calling)

    @rule(target=calling, claim=claimed)
    def call(self, claim: Claim) -> MultipleResults[Claim]:
        """The mark, and a provider that takes the call."""
        return multiple(claim) if self._call(claim) else multiple()

    @rule(target=calling, claims=st.lists(claimed, min_size=2, max_size=4))
    def call_together(self, claims: list[Claim]) -> MultipleResults[Claim]:
        """The marks of some calls at once, older claims among them."""
        own = self._of_one_tenant(claims)
        may = {claim.key for claim in own if self._may_call(claim)}
        assert self.world.mark_all(own) == may, "marked together are not those that may call"
        self.calls.update(id for id, _ in may)
        return multiple(*(claim for claim in own if claim.key in may))

    @rule(target=turned_away, claim=claimed)
    def call_in_vain(self, claim: Claim) -> MultipleResults[Claim]:
        """The mark, and a provider that does not take the call."""
        return multiple(claim) if self._mark(claim) else multiple()

    @rule(claim=claimed)
    def mark_and_die(self, claim: Claim) -> None:
        """The mark is written, its confirmation lost: no call."""
        self._mark(claim)

    @rule(claim=claimed, cancelled=st.booleans())
    def come_too_late(self, claim: Claim, cancelled: bool) -> None:
        """The worker wants to call when its lease is over, or when nobody wants the answer any more."""
        if cancelled:
            self.world.cancel(self.known[claim.id], try_id=claim.id)
        else:
            self.world.turn(LEASE_OVER, claim.id)
        self._see()
        self._mark(claim)

    @rule(claim=st.one_of(claimed, calling))
    def beat(self, claim: Claim) -> None:
        wanted = self.seen.tries[claim.id].cancelling if self._has(claim) else None
        assert self.world.renew(claim) == wanted, "a worker was told wrong of its claim"

    @rule(claim=calling, turn=turns)
    def settle(self, claim: Claim, turn: int) -> None:
        self._settle(claim, self._outcome(claim, turn))

    @rule(claims=st.lists(calling, min_size=2, max_size=4), turn=turns)
    def settle_together(self, claims: list[Claim], turn: int) -> None:
        """The ends of some calls at once, each with its own outcome, older claims among them. Twice, as always."""
        own = self._of_one_tenant(claims)
        ends = {claim: self._outcome(claim, turn) for claim in own}
        may = {claim.key for claim in own if self._has(claim) and self.seen.tries[claim.id].called}
        assert self.world.settle_all(ends) == may, "settled together are not those in force"
        assert self.world.settle_all(ends) == set(), "settled twice"
        after = self.world.facts().tries
        for claim, ended in ends.items():
            if claim.key in may:
                fact, wanted = after[claim.id], (ended.status, total(ended.usage.tokens))
                assert (fact.status, sum(fact.bills)) == wanted, "a try got another's end"

    @rule(claim=turned_away, seconds=st.sampled_from([0.0, 30.0]))
    def put_back(self, claim: Claim, seconds: float) -> None:
        """Twice, as after a lost confirmation."""
        self._put_back(claim, seconds)
        assert not self.world.defer(claim, seconds), "deferred twice"

    @rule(id=made, what=st.sampled_from(["try", "batch", "session", "another's try"]))
    def cancel(self, id: UUID, what: str) -> None:
        fact, tenant = self.seen.tries[id], self.known[id]
        if what == "session":
            self.world.cancel(tenant, session_id=self.world.session(tenant))
        elif what == "another's try":
            self.world.cancel(1 - tenant, try_id=id)
            assert self.world.facts().tries == self.seen.tries, "another tenant's try was changed"
        elif what == "batch" and fact.batch_id is not None:
            self.world.cancel(tenant, batch_id=fact.batch_id)
        else:
            self.world.cancel(tenant, try_id=id)

    @rule(id=made, what=st.sampled_from([LEASE_OVER, QUEUE_OVER, PAUSE_OVER, RESCUED_OFTEN]))
    def time_passes(self, id: UUID, what: LiteralString) -> None:
        self.world.turn(what, id)

    @rule()
    def reconcile(self) -> None:
        self.world.reconcile()

    @rule(target=claimed)
    def take_over(self) -> MultipleResults[Claim]:
        """A worker claims and stalls before the call, another claims what was rescued: both go on."""
        first = self._claim(1)
        if first:
            self.world.turn(LEASE_OVER, first[0].id)
            self.world.reconcile()
            self._see()
        return multiple(*first, *self._claim(1))

    @rule(claim=calling, turn=turns, again=st.booleans())
    def fall_silent_in_call(self, claim: Claim, turn: int, again: bool) -> None:
        """The worker may come back with its answer at once, and then finds that the try was given up."""
        self.world.turn(LEASE_OVER, claim.id)
        self.world.reconcile()
        self._see()
        if again:
            self._settle(claim, self._outcome(claim, turn))

    @invariant()
    def rules_hold(self) -> None:
        facts = self.world.facts()
        self._look(facts)
        self.seen = facts

    def teardown(self) -> None:
        """Every try ends, whoever died: I2."""
        for _ in range(2):  # what is rescued in the first round runs out of time in the second
            every = list(self.known)
            self.world.turn(LEASE_OVER, *every)
            self.world.turn(QUEUE_OVER, *every)
            self.world.reconcile()
        facts = self.world.facts()
        self._look(facts)
        assert [one for one in facts.tries.values() if one.live] == [], "I2: a try did not end"
        assert self.world.drift() == (0, 0), "the check of the product found a fault that is none"

    def _accept(self, wish: Wish) -> Sequence[UUID]:
        first = self.keys.get((wish.tenant, wish.key)) if wish.key else None
        try:
            resource_id, ids = self.world.admit(wish)
        except QuotaExceeded:
            assert first is None
            assert not self._fits(wish), "refused although there is quota"
            return []
        except Invalid:
            assert first is not None
            assert first[0] != wish.hash, "a repeated request was refused"
            return []
        if first is not None:
            assert (first, ids) == ((wish.hash, resource_id), []), "a repeated request made something"
            return []
        assert self._fits(wish), "accepted without quota"
        if wish.key:
            self.keys[wish.tenant, wish.key] = wish.hash, resource_id
        self.known |= dict.fromkeys(ids, wish.tenant)
        return ids

    def _fits(self, wish: Wish) -> bool:
        limit = QUOTAS[wish.tenant]
        used, reserved = self.seen.ledgers.get(self.world.tenant(wish.tenant), (0, 0))
        return limit is None or used + reserved + wish.count * RESERVED <= limit

    def _claim(self, most: int) -> list[Claim]:
        """The fair pick, held against what was there before it."""
        waiting, running = self.seen.waiting(), self.seen.running
        found, more = self.world.claim(most)
        if not found:
            assert (waiting, more) == (set(), False), "nothing was claimed although something waited"
            return []
        chosen = found[0].claimed.tenant_id
        assert {claim.claimed.tenant_id for claim in found} == {chosen}, "claimed of two tenants at once"
        assert chosen in waiting, "claimed what could not be"
        assert running(chosen) == min(map(running, waiting)), "not the tenant with the fewest running"
        ready = sum(one.claimable for one in self.seen.tries.values() if one.tenant_id == chosen)
        assert len(found) == min(most, CAP - running(chosen), ready), "claimed too many or too few"
        assert more == (len(waiting) > 1), "told wrong of who else waits"
        for claim in found:
            assert claim.claimed.attempt == self.seen.tries[claim.id].attempt + 1
        return found

    def _call(self, claim: Claim) -> bool:
        """Whether a provider took the call."""
        if not self._mark(claim):
            return False
        self.calls[claim.id] += 1
        return True

    def _outcome(self, claim: Claim, turn: int) -> Settlement:
        """Another one for the next try, however alike the turns are that are drawn: all must be met."""
        return OUTCOMES[(list(self.known).index(claim.id) + turn) % len(OUTCOMES)]

    def _settle(self, claim: Claim, outcome: Settlement) -> None:
        """Twice, as after a lost confirmation; a claim that was given up as lost may still bring its figures, once."""
        self._in_force(claim, self.world.settle(claim, outcome))
        assert not self.world.settle(claim, outcome), "settled twice"
        self._see()
        fact = self.seen.tries[claim.id]
        may = fact.status == "lost" and bool(fact.estimated) and fact.attempt == claim.claimed.attempt
        assert self.world.correct(claim, ACTUAL) == may, "a bill was corrected against the rules, or was not"
        assert not self.world.correct(claim, ACTUAL), "a bill was corrected twice"
        self.corrected[claim.id] += may

    def _put_back(self, claim: Claim, seconds: float = 0.0) -> None:
        """What a provider did not take waits; when it may not, it ends."""
        if not self._in_force(claim, self.world.defer(claim, seconds)):
            self._in_force(claim, self.world.settle(claim, REFUSED))

    def _see(self) -> None:
        self.seen = self.world.facts()

    def _in_force(self, claim: Claim, done: bool) -> bool:
        assert not done or self.seen.tries[claim.id].attempt == claim.claimed.attempt, "an older claim changed a try"
        return done

    def _mark(self, claim: Claim) -> bool:
        """Whether a call may begin. A worker that may not ends what is to be cancelled; nothing else comes of that."""
        marked = self.world.mark(claim)
        assert marked == self._may_call(claim), "a call against its rules, or none although it may be"
        if not marked and self._in_force(claim, self.world.end_cancelled(claim)):
            assert self.seen.tries[claim.id].cancelling, "cancelled although nobody asked"
        return marked

    def _may_call(self, claim: Claim) -> bool:
        fact = self.seen.tries[claim.id]
        return self._has(claim) and not (fact.called or fact.cancelling or fact.silent)

    def _has(self, claim: Claim) -> bool:
        fact = self.seen.tries[claim.id]
        return fact.status == "running" and fact.attempt == claim.claimed.attempt

    def _of_one_tenant(self, claims: list[Claim]) -> list[Claim]:
        """Those of the first one's tenant, each once."""
        tenant_id = claims[0].claimed.tenant_id
        return list({claim.key: claim for claim in claims if claim.claimed.tenant_id == tenant_id}.values())

    def _look(self, facts: Facts) -> None:
        assert self.known.keys() == facts.tries.keys(), "I1: accepted tries are not those in the table"
        assert all(times <= 1 for times in self.calls.values()), "I3: a provider took two calls of one try"
        for id, fact in facts.tries.items():
            self.states[fact.status] += 1
            self._look_at(id, fact)
        for number, limit in enumerate(QUOTAS):
            own = [one for one in facts.tries.values() if one.tenant_id == self.world.tenant(number)]
            used, reserved = facts.ledgers.get(self.world.tenant(number), (0, 0))
            assert used == sum(sum(one.bills) for one in own), "I5: used is not the sum of the bills"
            assert reserved == sum(one.reserved for one in own if one.live), "I5: reserved is not what is under way"
            assert limit is None or used + reserved <= limit, "I5: more than the quota"
        for batch_id, batch in facts.batches.items():
            live = sum(one.live for one in facts.tries.values() if one.batch_id == batch_id)
            assert batch == (live, live == 0), "a batch counts wrong"

    def _look_at(self, id: UUID, fact: Fact) -> None:
        assert fact.accepted == 1, "I6: not one event for an accepted try"
        assert fact.finished == (not fact.live), "I6: not one event for an end"
        assert len(fact.bills) == (fact.called and not fact.live), "I4: billed, and not called, or the reverse"
        assert self.calls[id] == 0 or fact.called, "I4: a call that a provider took is not known"
        assert fact.answers == (fact.called and not fact.live), "an answer without a call, or the reverse"
        if fact.live:
            assert id not in self.ended, "I7: an end was undone"
            return
        assert fact.called or fact.error_code in ("cancelled", "queue_expired", "worker_lost"), "a wrong reason"
        first = self.ended.setdefault(id, fact)
        assert fact.whole == first.whole, "I7: a try changed after its end"
        if fact.bills != first.bills or fact.estimated != first.estimated:
            late = (fact.status, first.estimated, fact.estimated, self.corrected[id])
            assert late == ("lost", True, False, 1), "I7: a bill changed that was final"


def explore(database: Database, *, sequences: int, seed: int, steps: int = STEPS, shrink: bool = True) -> Counter[str]:
    """Run so many lives. Returns how often a try was seen in which status; fails with the seed in a note."""
    with World(database) as world:
        states: Counter[str] = Counter()
        machine: type[Life] = type("Life", (Life,), {"world": world, "states": states})
        hypothesis.seed(seed)(machine)
        settings = hypothesis.settings(
            max_examples=sequences,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            report_multiple_bugs=False,
            print_blob=False,
            database=None,
        )
        try:
            run_state_machine_as_test(machine, settings=settings)
        except BaseException as error:
            error.add_note(f"Again: python -m tests.faults.states --sequences {sequences} --seed {seed}")
            raise
        return states


@contextmanager
def own_database() -> Iterator[Database]:
    """A migrated database on services of its own. What the product logs meanwhile is dropped: losses are meant."""
    logs.setup(Settings.from_env({}), io.StringIO())
    run = services.Run.begin()
    try:
        found = run.services()
        name = f"hango_{secrets.token_hex(8)}"
        services.clone_database(found, name)
        yield Database.of(found, name)
    finally:
        run.end()


async def states(run: Run) -> Sequence[Figure]:
    """F3: as many lives as there is time for."""
    until = time.monotonic() + run.seconds(150)
    chance = run.random("states")
    found: Counter[str] = Counter()
    lives = 0
    with own_database() as database:
        while lives == 0 or time.monotonic() < until:
            found += await asyncio.to_thread(explore, database, sequences=100, seed=chance.randrange(2**32))
            lives += 100
    return [
        told("lives", lives),
        told("tries looked at, after every event", found.total()),
        exactly("statuses seen", len(found), 8),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.states")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    asked = parser.parse_args()
    began = time.monotonic()
    with own_database() as database:
        found = explore(database, sequences=asked.sequences, seed=asked.seed)
    sys.stdout.write(
        f"seed {asked.seed}: {asked.sequences} lives in {time.monotonic() - began:.0f} s; seen {dict(found)}\n"
    )


if __name__ == "__main__":
    main()
