"""What a body of a batch may ask for, whatever the session."""

from __future__ import annotations

import pytest

from hango.api.changes import VariantIn
from hango.api.try_batches import MAX_CHANGES, BatchIn
from hango.errors import Invalid, Reason


def batch(variants: int, parts: int, repeats: int) -> BatchIn:
    """Each variant leaves one part out and lifts the saved overrides of the others."""
    included = [f"message:{n}" for n in range(2, parts + 1)]
    return BatchIn(
        variants=[VariantIn(exclude=["message:1"], replace={}, include=included) for _ in range(variants)],
        repeats=repeats,
    )


@pytest.mark.parametrize(("variants", "parts", "repeats"), [(1, 5000, 20), (20, 5000, 1), (1000, 100, 1)])
def test_a_batch_names_many_parts(variants: int, parts: int, repeats: int) -> None:
    """As many as may be named, in few variants or in many."""
    assert variants * parts * repeats == MAX_CHANGES
    assert batch(variants, parts, repeats).wanted().count == variants * repeats


@pytest.mark.parametrize(("variants", "parts", "repeats"), [(1, 5000, 21), (26, 4000, 30), (990, 102, 1)])
def test_a_small_body_becomes_no_flood_of_audit_events(variants: int, parts: int, repeats: int) -> None:
    """Every try has an audit event with its parts: repeats of long lists are refused, with what to do."""
    with pytest.raises(Invalid) as caught:
        batch(variants, parts, repeats).wanted()

    total = variants * parts * repeats
    assert [(one.reason, one.pointer, one.message) for one in caught.value.errors] == [
        (
            Reason.TOO_MANY_VARIANTS,
            "/variants",
            f"The tries of this batch would change {total:,} parts together; 100,000 may be named. Send several.",
        )
    ]
