"""One call of a built-in tool: its arguments checked against its schema, then its work. A bad call is a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hango import jsontext
from hango.chain.builtin_tools import files, skills, todo
from hango.chain.builtin_tools.arguments import fault_of
from hango.chain.builtin_tools.base import Outcome, Work, Workplace, cut, failed
from hango.messages import Block, ToolSpec

# Every built-in tool but `task`, which is a conversation of its own (workers/runs.py).
WORK: Mapping[str, Work] = {**todo.WORK, **files.WORK, **skills.WORK}


async def run_tool(place: Workplace, block: Block, tools: Mapping[str, ToolSpec]) -> Outcome:
    """Carry out a `tool_use` block. `tools` are those of the request, by name. A call that cannot be is an error result.

    Raises Unavailable when PostgreSQL is away; then nothing was done.
    """
    name = block.view.name or ""
    spec, work = tools.get(name), WORK.get(name)
    if spec is None or work is None:
        known = ", ".join(sorted(tools)) or "none"
        return failed(f"There is no tool '{name}' in this context. The tools are: {known}.")
    arguments: Any = jsontext.read(bytes(block.view.input).decode() or "{}")
    if (fault := fault_of(spec, arguments)) is not None:
        return failed(fault)
    outcome = await work(place, arguments)
    return Outcome(cut(outcome.text), outcome.is_error, outcome.skill)
