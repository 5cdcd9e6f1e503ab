"""`task`: what a subagent is to do. The subagent itself is a conversation of its own, which the worker holds."""

from __future__ import annotations

from hango.chain.builtin_tools.arguments import arguments_of
from hango.chain.builtin_tools.base import Outcome, failed
from hango.messages import Block, ToolSpec, is_blank


def task_of(block: Block, spec: ToolSpec) -> str | Outcome:
    """The description of the work, or the call's result when it is a bad one. `spec` is the request's tool `task`."""
    arguments = arguments_of(block, spec)
    if isinstance(arguments, Outcome):
        return arguments
    description: str = arguments["description"]
    if is_blank(description):
        return failed("Argument 'description' is blank: say what the subagent is to do.")
    return description
