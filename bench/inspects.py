"""What is measured of an inspect: product, limits and peers in turn, at every size of a session."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench import environments
from bench.contestants import Contestant, Entry, Failed
from bench.conversation import TOOLS
from bench.environments import NotInstalled
from bench.figures import LARGE, figures
from bench.goals import Key
from bench.place import Place, opened

REQUESTS = ("first request", "first request, OpenAI's form")
SIZES = (100, 1_000, 10_000)
OWN = (
    Entry(
        "product",
        "bench.product.contestant",
        (
            "inspect",
            "page",
            "first inspect",
            "preview of 500",
            "set of 500",
            *REQUESTS,
            "inspect over HTTP",
            "page over HTTP",
        ),
    ),
    Entry("reference", "bench.reference.contestant", ("digests", "window", "bodies")),
)
PEERS = {"deepagents": ("inspect", *REQUESTS), "letta": ("inspect over HTTP",)}
PEERS_LARGEST = 10_000
# What a longer history must not make slower is not looked at where a page is the whole.
PAGED = {"page", "page over HTTP", "window"}
PAGED_LEAST = 1_000
# What changes the request has totals of its own.
CHANGED = {"preview of 500", "set of 500"}
CHANGED_LEAST = 10_000
LEAST_BYTES = 350  # of any message of the conversation


class Measurement:
    """`runs`: milliseconds of each run; `rounds`: one value a round."""

    def __init__(self) -> None:
        self.runs: defaultdict[Key, list[float]] = defaultdict(list)
        self.rounds: defaultdict[Key, list[float]] = defaultdict(list)

    def all(self, asked: argparse.Namespace) -> None:
        entries = _entries(asked)
        sizes = sorted(asked.sizes)
        with ExitStack() as ends:
            with_figures = "product" in {entry.name for entry in entries} and not asked.no_figures
            place = ends.enter_context(opened(sorted({*sizes, *([LARGE] if with_figures else [])})))
            taken = ends.enter_context(figures(place)) if with_figures else None
            running = [ends.enter_context(_start(entry, place)) for entry in entries]
            work = _open(running, sizes)
            for number in range(asked.rounds):
                print(f"bench: round {number + 1} of {asked.rounds} of inspects", file=sys.stderr)
                for contestant, key in work:
                    times = contestant.time(key.case, key.size, asked.seconds)
                    self.runs[key] += times
                    self.rounds[key].append(median(times))
                if taken is not None:
                    for key, value in taken.all().items():
                        self.rounds[key].append(value)


def _entries(asked: argparse.Namespace) -> list[Entry]:
    """The contestants that take part. A peer that cannot be installed is named and left out."""
    entries = [entry for entry in OWN if asked.only is None or entry.name in asked.only]
    for peer, cases in PEERS.items():
        if not (asked.peers if asked.only is None else peer in asked.only):
            continue
        try:
            python = environments.python_of(peer)
        except NotInstalled as error:
            print(f"bench: {error}; the bench goes on without it.", file=sys.stderr)
        else:
            entries.append(Entry(peer, f"bench.peers.{peer}.contestant", cases, python, PEERS_LARGEST))
    return entries


def _start(entry: Entry, place: Place) -> Contestant:
    return Contestant(entry, place.file, place.folder / f"{entry.name}.log")


def _open(running: Sequence[Contestant], sizes: Sequence[int]) -> list[tuple[Contestant, Key]]:
    """Every case of every contestant, in the order of a round. Raises AssertionError when two answers differ.

    A peer that fails is named and left out; a failure of our own is one of the bench.
    """
    work: list[tuple[int, int, Contestant, Key]] = []
    out: set[str] = set()
    for size in sizes:
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for contestant, at, case in _cases(running, size):
            name = contestant.entry.name
            try:
                if name not in out:
                    found[name, case] = contestant.open(case, size)
                    work.append((size, at, contestant, Key(name, case, size)))
            except Failed as error:
                if name not in PEERS:
                    raise
                out.add(name)
                print(f"bench: {error}\nbench: it goes on without {name}.", file=sys.stderr)
        _compare(found, size)
    # What is compared comes one right after the other, so that both meet the machine in one mood.
    ordered = sorted(work, key=lambda one: one[:2])
    return [(contestant, key) for _, _, contestant, key in ordered if key.contestant not in out]


def _cases(running: Sequence[Contestant], size: int) -> Iterator[tuple[Contestant, int, str]]:
    for contestant in running:
        for at, case in enumerate(contestant.entry.cases):
            least = CHANGED_LEAST if case in {*CHANGED, *REQUESTS} else PAGED_LEAST if case in PAGED else 0
            if least <= size <= contestant.entry.largest:
                yield contestant, at, case


def _compare(found: Mapping[tuple[str, str], Mapping[str, Any]], size: int) -> None:
    """Whoever shows the whole history shows all of it, and own answers are equal, part by part and total by total."""
    whole = {key: facts for key, facts in found.items() if key[1] not in {*PAGED, *CHANGED, *REQUESTS}}
    for key, facts in found.items():
        if key[1] in REQUESTS:
            assert facts["messages"] == size, f"{key} sends {facts['messages']} of {size} messages"
            assert facts["tools"] >= TOOLS, f"{key} sends {facts['tools']} of {TOOLS} tools"
            assert facts["bytes"] > size * LEAST_BYTES, f"{key} sends {facts['bytes']} bytes"
    pages = {key: facts for key, facts in found.items() if key[1] in PAGED}
    for key, facts in whole.items():
        assert facts["messages"] == size, f"{key} shows {facts['messages']} of {size} messages"
    for group in (whole, pages):
        own = {key: facts for key, facts in group.items() if key[0] in {entry.name for entry in OWN}}
        different = {json.dumps(facts, sort_keys=True) for facts in own.values()}
        assert len(different) < 2, "\n".join(f"{key}: {facts}" for key, facts in own.items())
    for key, facts in whole.items():
        if "sum" in facts:
            assert facts["sum"] == facts["total_before"] == facts["total_after"], f"{key}: {facts}"
