"""The bench: product, limits and peers in turn, in one run on one machine, because only ratios carry over.

python -m bench.run                              inspects, tries and runs, the product beside its limits
python -m bench.run --peers --check              with the peers; fails when a goal is missed in every round
python -m bench.run tries --rounds 3             tries alone
python -m bench.run runs --rounds 3              runs alone
python -m bench.run inspects --only product --sizes 1000
"""

from __future__ import annotations

import argparse
import sys

from bench import goals, inspects, report
from bench.runs import goals as run_goals
from bench.runs import rounds as runs_of_agents
from bench.tries import goals as try_goals
from bench.tries import rounds as tries

PARTS = ("inspects", "tries", "runs")


def main() -> int:
    asked = _arguments()
    missed = False
    for part in asked.parts or PARTS:
        if part == "inspects":
            inspected = inspects.Measurement()
            inspected.all(asked)
            runs, rounds, table = inspected.runs, inspected.rounds, goals.GOALS
        elif part == "runs":
            ran = runs_of_agents.Measurement(asked.rounds)
            ran.all()
            runs, rounds, table = ran.runs, ran.rounds, run_goals.GOALS
        else:
            tried = tries.Measurement(asked.rounds)
            tried.all()
            runs, rounds, table = tried.runs, tried.rounds, try_goals.GOALS
        print("\n".join(report.part(part, runs, rounds, table)))
        missed |= any(goals.missed(goal, rounds) for goal in table)
    return int(asked.check and missed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, help="what is measured; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed in every round")
    inspecting = parser.add_argument_group("inspects")
    inspecting.add_argument("--sizes", type=_numbers, default=inspects.SIZES, help="messages, with commas between")
    inspecting.add_argument("--only", type=_words, help="contestants, with commas between")
    inspecting.add_argument("--peers", action="store_true", help="with the peers; the first time installs them")
    inspecting.add_argument("--seconds", type=float, default=0.5, help="of one case in one round")
    inspecting.add_argument("--no-figures", action="store_true", help="leave out start, size and memory of the product")
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
