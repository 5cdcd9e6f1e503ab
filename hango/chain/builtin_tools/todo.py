"""`write_todos`: the list of steps. It stands in the history, in the call and its result, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

from hango.chain.builtin_tools.base import Arguments, Outcome, Work, Workplace, failed
from hango.chain.middleware.todo import WRITE_TODOS
from hango.messages import is_blank

MOST_STEPS = 100
# Of one step in the result: the call has the whole.
STEP_CHARS = 200


async def write_todos(place: Workplace, arguments: Arguments) -> Outcome:
    """The list said back in short."""
    steps = [(step["status"], step["content"]) for step in arguments["todos"]]
    if len(steps) > MOST_STEPS:
        return failed(f"A list has at most {MOST_STEPS} steps, and this one has {len(steps):,}: make them larger.")
    if any(is_blank(content) for _, content in steps):
        return failed("A step is blank: write each step as an order.")
    under_way = sum(status == "in_progress" for status, _ in steps)
    if under_way > 1:
        return failed(f"{under_way} steps are in progress, and one at most can be: leave the others pending.")
    if not steps:
        return Outcome("The list is empty.")
    done = sum(status == "completed" for status, _ in steps)
    lines = [f"[{status}] {_short(content)}" for status, content in steps]
    return Outcome("\n".join([f"{done} of {len(steps)} steps are completed.", *lines]))


def _short(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= STEP_CHARS else f"{line[:STEP_CHARS]}..."


WORK: Mapping[str, Work] = {WRITE_TODOS.name: write_todos}
