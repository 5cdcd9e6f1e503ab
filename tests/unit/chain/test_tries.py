"""Tries, pure: where a fault stands in a batch, what a variant asks for, how lessons are weighed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.state import Wanted
from hango.chain.tries import FACTOR_WEIGHT, Variant, in_variant, weighed, wishes_of
from hango.domain import Override, OverrideAction, PartID
from hango.errors import Detail, Invalid, Reason
from hango.tries import Changes, Texts

SHARES = st.floats(0.25, 8)


def test_a_fault_of_a_batch_leads_to_its_variant() -> None:
    """Every pointer begins with the variant, and the sentence names it; reasons and parts stay."""
    fault = Invalid(
        "Two faults.",
        errors=[
            Detail(Reason.BAD_MODEL, "First.", pointer="/model"),
            Detail(Reason.UNKNOWN_PART, "Second.", part="message:9"),
        ],
    )

    with pytest.raises(Invalid) as alone, in_variant(None):
        raise fault
    with pytest.raises(Invalid) as one, in_variant(7):
        raise fault

    assert alone.value is fault
    assert (str(one.value), one.value.errors) == (
        "Variant 7: Two faults.",
        (
            Detail(Reason.BAD_MODEL, "First.", pointer="/variants/7/model"),
            Detail(Reason.UNKNOWN_PART, "Second.", part="message:9", pointer="/variants/7"),
        ),
    )


def test_a_variant_is_what_a_preview_is_asked_for() -> None:
    """Exclusions, replacements, what is lifted, the extra text, the end and the model of one call."""
    changes = Changes(exclude=("message:2",), replace=("message:4",), include=("*",), until=5)
    texts = Texts({"message:4": "Forty."}, "And now?")

    overrides = [
        Override(PartID("message:2"), OverrideAction.EXCLUDE),
        Override(PartID("message:4"), OverrideAction.REPLACE, "Forty."),
    ]
    wanted = Wanted(overrides, ("*",), "And now?", 5, "offline/extract")
    variant = Variant("a", wanted)

    assert wishes_of(changes, texts, "offline/extract") == wanted
    assert (variant.changes, variant.texts) == (changes, texts)


@given(st.lists(SHARES, min_size=1, max_size=30), SHARES)
def test_lessons_together_teach_what_they_teach_one_by_one(ratios: list[float], start: float) -> None:
    """One ratio and weight move a factor as far as all the bills do, one after the other."""
    factor = start
    for ratio in ratios:
        factor += FACTOR_WEIGHT * (ratio - factor)

    ratio, weight = weighed(ratios)

    assert start + weight * (ratio - start) == pytest.approx(factor)
    assert 0 < weight <= 1
