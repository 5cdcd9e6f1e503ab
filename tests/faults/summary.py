"""What a load came to, in figures that are told: how tries ended, how long they took, what clients met."""

from __future__ import annotations

from collections import Counter

from tests.faults.invariants import Stored, read_tries
from tests.faults.report import Figure, exactly, percentile, told
from tests.faults.stage import Stage


def summary(stage: Stage) -> list[Figure]:
    stored = read_tries(stage)
    called = stage.provider.called()
    return [
        told("tries", len(stored)),
        told("ended as", words(Counter(one.status for one in stored))),
        told("calls that the provider took", sum(calls.taken for calls in stage.provider.calls.values())),
        told("claimed again before their call", sum(one.rescues > 0 for one in stored)),
        told("deferred by the provider", sum(one.deferrals > 0 for one in stored)),
        told("billed as called, though no call came", sum(one.called and one.mark not in called for one in stored)),
        told("requests that were sent again", words(met(stage)) or "0"),
        told("from the POST to the end", spread(stored)),
    ]


def never_500(stage: Stage) -> Figure:
    return exactly("answers with status 500", met(stage)["500"], 0)


def met(stage: Stage) -> Counter[str]:
    """What clients got instead of an answer, all of them together."""
    return sum((one.met for one in stage.callers), Counter[str]())


def seconds_of(stored: list[Stored]) -> list[float]:
    return [one.seconds for one in stored if one.seconds is not None]


def spread(stored: list[Stored]) -> str:
    found = seconds_of(stored)
    shown = [f"{name} {percentile(found, share) or 0:.2f} s" for name, share in (("median", 0.5), ("95th", 0.95))]
    return ", ".join([*shown, f"slowest {max(found, default=0):.2f} s"])


def words(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counted.most_common())
