"""What a process keeps of histories between the calls of a run: the last used, within a bound."""

from __future__ import annotations

from uuid import UUID

from hango.chain.kept_histories import KeptHistories, KeptHistory, missing
from hango.domain import SessionID, TenantID
from hango.messages import text_block

TENANT, OTHER = TenantID(UUID(int=1)), TenantID(UUID(int=2))
ONE, TWO = SessionID(UUID(int=3)), SessionID(UUID(int=4))


def history(chars: int) -> KeptHistory:
    made = KeptHistory()
    made.add_bodies({1: [text_block("x" * chars)]})
    return made


def test_what_is_missing_is_one_stretch() -> None:
    """After one seq and through another, so that everything asked for is known then."""
    assert [missing({2, 3}, seqs) for seqs in ((), (2, 3), (1, 2, 3), (2, 3, 4, 5), (1, 2, 5))] == [
        None,
        None,
        (0, 1),
        (3, 5),
        (0, 5),
    ]


def test_a_history_is_known_to_its_own_tenant_alone() -> None:
    kept, one = KeptHistories(), history(10)
    kept.put((TENANT, ONE), one)

    assert kept.get((TENANT, ONE)) is one
    assert (kept.get((OTHER, ONE)).bodies, kept.get((TENANT, TWO)).bodies) == ({}, {})


def test_the_one_that_was_used_longest_ago_goes_first() -> None:
    kept = KeptHistories(most_chars=1_000)
    one, two, third = history(300), history(300), history(600)
    kept.put((TENANT, ONE), one)
    kept.put((TENANT, TWO), two)
    kept.put((TENANT, ONE), one)
    kept.put((OTHER, ONE), third)

    assert kept.get((TENANT, ONE)) is one
    assert kept.get((OTHER, ONE)) is third
    assert kept.get((TENANT, TWO)).bodies == {}


def test_a_history_that_is_too_long_is_not_kept() -> None:
    kept = KeptHistories(most_chars=100)
    kept.put((TENANT, ONE), history(200))

    assert kept.get((TENANT, ONE)).bodies == {}
