"""The goals of runs, and the names of what is measured for them."""

from __future__ import annotations

from bench.goals import Goal, Key

MESSAGES, TURNS = 1_000, 20

TURN, BARE = "turn of a run", "its call alone"
OVERHEAD = "turn of a run but for its call (ms)"

GOALS = (Goal("ms of a turn but for its call", Key("product", OVERHEAD, MESSAGES), at_most=25),)
