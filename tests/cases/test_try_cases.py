"""Faults that people met elsewhere with queued model calls, each in small: every input through the API and a worker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import reading, try_steps
from tests.cases.reading import Case
from tests.cases.try_checks import check
from tests.cases.try_outcome import TryOutcome
from tests.cases.try_world import TryWorld

CASES = [case for case in reading.read_all() if case.has_try]
# What is said of all steps together.
OF_ALL_STEPS = frozenset({"each", "each_in_order", "jobs", "answers_not_shared"})


@pytest.mark.parametrize(
    ("case", "model"), [pytest.param(case, model, id=f"{case.id}-{model}") for case in CASES for model in case.models]
)
def test_case(case: Case, model: str, try_world: TryWorld) -> None:
    """The input's `then` is true."""
    outcomes = try_steps.run(case, model, try_world)

    if "each" not in case.when:
        check(outcomes[0], case.then)
        return
    together = {key: wanted for key, wanted in case.then.items() if key in OF_ALL_STEPS}
    for outcome, then in zip(outcomes, together.get("each_in_order", [{}] * len(outcomes)), strict=True):
        check(outcome, {**together.get("each", {}), **then})
    assert set(case.then) == set(together)
    _together(outcomes, together)


def _together(outcomes: list[TryOutcome], together: dict[str, Any]) -> None:
    if "jobs" in together:
        assert len({id for outcome in outcomes for id in outcome.try_ids}) == together["jobs"]
    if "answers_not_shared" in together:
        assert len({outcome.answer for outcome in outcomes}) == len(outcomes) > 1
