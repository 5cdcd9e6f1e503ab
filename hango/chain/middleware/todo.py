"""Planning: a block that asks for a list of steps, and the tool that writes it."""

from __future__ import annotations

from collections.abc import Sequence

from hango.chain.draft import SourcedBlock
from hango.chain.middleware.base import Middleware, block
from hango.chain.parts import system_part
from hango.chain.state import State
from hango.messages import ToolSpec

PROMPT = """\
# Plan

For work of three steps or more, keep a list of steps with `write_todos` and keep it true while you go: one step in
progress at a time, a step done as soon as it is done. For a small question answer at once, without a list."""

WRITE_TODOS = ToolSpec(
    name="write_todos",
    description="Write the whole list of steps of the present work. The list takes the place of the one before.",
    input_schema=(
        '{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":'
        '{"content":{"type":"string","description":"The step, as an order."},'
        '"status":{"type":"string","enum":["pending","in_progress","completed"]}},'
        '"required":["content","status"]}}},"required":["todos"]}'
    ),
)


class TodoMiddleware(Middleware):
    name = "todo"

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        return (block(system_part(self.name), PROMPT),)

    def tools(self, state: State) -> Sequence[ToolSpec]:
        return (WRITE_TODOS,)
