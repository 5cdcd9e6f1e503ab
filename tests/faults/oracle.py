"""Security row 2: another tenant's session cannot be told from one that never was, by the time a 404 takes either."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tests.faults.report import Figure, at_least, at_most, exactly, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, staged

REQUESTS: Final = 2000
MOST_DIFFERENCE: Final = 0.001
LEAST_P: Final = 0.01


async def oracle(run: Run) -> Sequence[Figure]:
    async with staged(Shape(workers=0, tenants=2), run.folder) as stage:
        mine, theirs = stage.callers
        rng = run.random("ids")
        times: dict[bool, list[float]] = {True: [], False: []}
        bodies: set[tuple[int, str]] = set()
        kinds = [True, False] * REQUESTS
        rng.shuffle(kinds)
        for there in kinds:
            id = theirs.session_id if there else _never_there(theirs.session_id, rng)
            status, reply, seconds = await mine.ask("GET", f"/v1/sessions/{id}/context")
            times[there].append(seconds)
            bodies.add((status, str(reply)))
        theirs_took, none_took = times[True], times[False]
        difference = abs((percentile(theirs_took, 0.5) or 0) - (percentile(none_took, 0.5) or 0))
        return [
            exactly("different answers", len(bodies), 1),
            at_most("difference of the medians", difference * 1000, MOST_DIFFERENCE * 1000, "ms"),
            at_least("p of the two being the same (Mann-Whitney)", mann_whitney(theirs_took, none_took), LEAST_P),
        ]


def _never_there(like: str, rng: random.Random) -> str:
    """An id of the same moment: only its random part differs."""
    return str(UUID(bytes=UUID(like).bytes[:9] + rng.randbytes(7)))


def mann_whitney(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p of the rank-sum test, by its normal approximation, which holds for thousands."""
    ranked = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    ranks = sum(place for place, (_, group) in enumerate(ranked, start=1) if group == 0)
    n, m = len(one), len(other)
    mean, deviation = n * (n + m + 1) / 2, math.sqrt(n * m * (n + m + 1) / 12)
    return math.erfc(abs(ranks - mean) / deviation / math.sqrt(2))
