"""One call of a built-in tool: its arguments checked against its schema, then its work. A bad call is a result."""

from __future__ import annotations

from collections.abc import Mapping

from hango.chain.builtin_tools import files, skills, todo
from hango.chain.builtin_tools.arguments import arguments_of
from hango.chain.builtin_tools.base import Outcome, Work, Workplace, cut, failed
from hango.chain.middleware import filesystem
from hango.chain.middleware.skills import LOAD_SKILL
from hango.chain.middleware.todo import WRITE_TODOS
from hango.messages import Block, ToolSpec

# Every built-in tool but `task`, which is a conversation of its own (workers/runs.py).
SPECS: Mapping[str, ToolSpec] = {spec.name: spec for spec in (WRITE_TODOS, *filesystem.TOOLS, LOAD_SKILL)}
WORK: Mapping[str, Work] = {**todo.WORK, **files.WORK, **skills.WORK}

SHOWN_CHARS = 64
SHOWN_TOOLS = 100


async def run_tool(place: Workplace, block: Block, tools: Mapping[str, ToolSpec]) -> Outcome:
    """Carry out a `tool_use` block. `tools` are those of the request, by name. A bad call gets an error result.

    Of the client's tools only a subagent's calls come here, which nobody can answer; `task` never does.
    Raises Unavailable when PostgreSQL is away; then nothing was done.
    """
    name = block.view.name or ""
    spec = tools.get(name)
    if spec is None:
        return _unknown(name, tools)
    if spec != SPECS.get(name):  # an agent without a built-in may have a tool of its name
        return failed(f"Tool '{name}' is the client's, and a subagent cannot ask the client: do without it.")
    arguments = arguments_of(block, spec)
    if isinstance(arguments, Outcome):
        return arguments
    outcome = await WORK[name](place, arguments)
    return Outcome(cut(outcome.text), outcome.is_error, outcome.skill)


def _unknown(name: str, tools: Mapping[str, ToolSpec]) -> Outcome:
    shown = name if len(name) <= SHOWN_CHARS else f"{name[:SHOWN_CHARS]}..."
    known = [*sorted(tools)[:SHOWN_TOOLS], *["..."] * (len(tools) > SHOWN_TOOLS)]
    return failed(f"There is no tool '{shown}' in this context. The tools are: {', '.join(known) or 'none'}.")
