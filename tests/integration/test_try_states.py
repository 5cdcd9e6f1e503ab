"""F3: whatever happens in whatever order, the rules of tries hold; and a guard that is missing is found out."""

from __future__ import annotations

import random

import pytest

from tests.conftest import Database
from tests.faults.mutants import MUTANTS, mutated
from tests.faults.states import explore

# `./dev faults states` and `python -m tests.faults.states` go on for longer.
LIVES = 100


def test_the_rules_hold_after_every_event(fresh_database: Database) -> None:
    """I1-I7: no try lost, called twice, billed twice or not at all, over the quota, unaudited, or changed after its
    end, in 100 lives of 40 events; in the end every try has ended, and every end was seen."""
    seen = explore(fresh_database, sequences=LIVES, seed=random.randrange(2**32))

    assert sorted(seen) == [
        "cancelled",
        "expired",
        "failed",
        "lost",
        "queued",
        "running",
        "succeeded",
        "timed_out",
    ]


@pytest.mark.parametrize("name", ["a second mark", "an end that gives nothing back", "a settle that bills nobody"])
def test_a_missing_guard_is_found_out(fresh_database: Database, name: str) -> None:
    """The negative control: without a guard the same lives fail; `./dev faults mutants` takes out every one."""
    with mutated(fresh_database, MUTANTS[name]), pytest.raises(AssertionError):
        explore(fresh_database, sequences=LIVES, seed=1, shrink=False)
