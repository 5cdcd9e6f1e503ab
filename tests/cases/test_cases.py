"""Faults that people met elsewhere, each in small: every input through the public API or the command line."""

from __future__ import annotations

import pytest

from tests.cases import reading, steps
from tests.cases.checks import check
from tests.cases.outcome import Outcome
from tests.cases.reading import Case
from tests.cases.world import World

CASES = [case for case in reading.read_all() if not case.has_try and not case.has_run]
OF_ALL_STEPS = frozenset({"each", "each_in_order", "bodies_equal", "request_bytes_equal"})


@pytest.mark.parametrize(
    ("case", "model"), [pytest.param(case, model, id=f"{case.id}-{model}") for case in CASES for model in case.models]
)
def test_case(case: Case, model: str, world: World) -> None:
    """The input's `then` is true."""
    outcomes = steps.run(case, model, world)

    last = {key: wanted for key, wanted in case.then.items() if key not in OF_ALL_STEPS}
    for outcome in outcomes[-1] if "each" in case.when else [one for step in outcomes for one in step]:
        check(outcome, last)
    for step, then in zip(outcomes, case.then.get("each_in_order", [{}] * len(outcomes)), strict=True):
        for outcome in step:
            check(outcome, {**case.then.get("each", {}), **then})
    every = [outcome for step in outcomes for outcome in step]
    if case.then.get("bodies_equal"):
        assert len({outcome.body for outcome in every}) == 1
    if case.then.get("request_bytes_equal"):
        _are_equal_requests(every)


def _are_equal_requests(every: list[Outcome]) -> None:
    assert len(every) > 1
    first, *others = [(outcome.snapshot["request_sha256"], outcome.look_raw("format=provider")) for outcome in every]
    assert all(other == first for other in others)
