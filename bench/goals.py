"""The goals, as one table. Ratios of two medians in one round carry over to another machine; other figures less so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Key(NamedTuple):
    """What was measured: who, what, and at how many messages (0: none)."""

    contestant: str
    case: str
    size: int = 0


# One value a round.
Measured = Mapping[Key, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Goal:
    """`value`, or `value` over `base`, is at most or at least a number."""

    says: str
    value: Key
    base: Key | None = None
    at_most: float | None = None
    at_least: float | None = None

    def rounds(self, measured: Measured) -> list[float] | None:
        """One number a round; None when it was not measured."""
        values = measured.get(self.value)
        if not values or self.base is None:
            return list(values) if values else None
        bases = measured.get(self.base)
        return [value / base for value, base in zip(values, bases, strict=True)] if bases else None

    def holds(self, number: float) -> bool:
        return (self.at_most is None or number <= self.at_most) and (self.at_least is None or number >= self.at_least)

    @property
    def limit(self) -> str:
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


def inspect(size: int) -> Key:
    return Key("product", "inspect", size)


def _table() -> Iterator[Goal]:
    for size, limit in {100: 2.0, 1_000: 1.5, 10_000: 1.5}.items():
        yield Goal("inspect over the digest path", inspect(size), Key("reference", "digests", size), at_most=limit)
    for size, limit in {100: 8.0, 1_000: 12.0, 10_000: 10.0}.items():
        yield Goal("deepagents over inspect", Key("deepagents", "inspect", size), inspect(size), at_least=limit)
    over_http = Key("product", "inspect over HTTP", 10_000)
    yield Goal("Letta over inspect, by HTTP", Key("letta", "inspect over HTTP", 10_000), over_http, at_least=50)
    # Ten times the messages may cost ten times the time; the tenth part more is the spread of a shared machine.
    for size in (10_000, 100_000):
        yield Goal("inspect over one of a tenth", inspect(size), inspect(size // 10), at_most=11)
    for size in (1_000, 10_000):
        yield Goal(
            "page over the window path", Key("product", "page", size), Key("reference", "window", size), at_most=2.5
        )
    for case in ("page", "page over HTTP"):
        yield Goal("page over one of a tenth", Key("product", case, 10_000), Key("product", case, 1_000), at_most=1.3)
    for case in ("preview of 500", "set of 500"):
        yield Goal(
            f"{case} over inspect", Key("product", case, 10_000), Key("product", "first inspect", 10_000), at_most=2
        )
    for case in ("first request", "first request, OpenAI's form"):
        peer = Key("deepagents", case, 10_000)
        yield Goal(f"deepagents over {case} of a run", peer, Key("product", case, 10_000), at_least=4)
    yield Goal("MiB for one inspect", Key("product", "memory of an inspect (MiB)", 100_000), at_most=120)
    yield Goal("ms of `context show --help`", Key("product", "context show --help (ms)"), at_most=250)
    yield Goal("ms of a warm `up`", Key("product", "warm up (ms)"), at_most=3_000)
    yield Goal("MiB of the API at its start", Key("product", "API at start (MiB)"), at_most=120)


GOALS = tuple(_table())


def missed(goal: Goal, measured: Measured) -> bool:
    """In every round: one bad round is the machine's, all of them are ours."""
    rounds = goal.rounds(measured)
    return rounds is not None and not any(goal.holds(number) for number in rounds)
