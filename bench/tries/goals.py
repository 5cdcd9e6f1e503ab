"""The goals of tries, and the names of what is measured for them."""

from __future__ import annotations

from bench.goals import Goal, Key

IDLE, SEQUENCE = "try after a pause", "try after try"
SLOWEST = "try after a pause, 95 % are under (ms)"
BATCH = "batch of 1,000, instant (tries/s)"
FLIGHT = "512 calls of 2 s, over 2 s"
MEMORY = "worker, 512 calls in flight (MiB)"
MEMORY_IDLE = "worker at its start (MiB)"
NEIGHBOUR = "try behind 10,000 of another (call times)"


def _of(contestant: str, case: str) -> Key:
    return Key(contestant, case)


GOALS = (
    Goal("ms of a try after a pause", _of("product", IDLE), at_most=10),
    Goal("try after a pause over a call inline", _of("product", IDLE), _of("plain", IDLE), at_most=2.5),
    Goal("ms that 95 % of tries after a pause are under", _of("product", SLOWEST), at_most=20),
    Goal("512 calls of 2 s over the ideal", _of("product", FLIGHT), at_most=1.15),
    Goal("MiB of a worker with 512 calls in flight", _of("product", MEMORY), at_most=110),
    Goal("tries/s of a batch of 1,000", _of("product", BATCH), at_least=200),
    Goal("call times that 10,000 of another add", _of("product", NEIGHBOUR), at_most=2),
)
