"""The hooks of a middleware, all no-ops, each with its contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from hango.chain import estimator
from hango.chain.draft import Draft, Sourced, SourcedBlock
from hango.chain.state import State
from hango.domain import PartID
from hango.messages import Response, ToolSpec
from hango.store.connection import Scope

Handler = Callable[[Draft], Awaitable[Response]]


class Middleware:
    """One slot. Tags every block with its own part, never reads another slot's state, never mutates a draft."""

    name: ClassVar[str]

    async def before_run(self, state: State, scope: Scope) -> None:
        """Read what the run needs. The only hook with a database; an inspect passes a read-only scope."""

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        """The blocks this slot adds to the system prompt."""
        return ()

    def tools(self, state: State) -> Sequence[ToolSpec]:
        """The tools this slot adds."""
        return ()

    async def wrap_model_call(self, state: State, draft: Draft, call_next: Handler) -> Response:
        """Mark or complete the draft, call on, and look at the reply; a captured call has an empty reply."""
        return await call_next(draft)


def block(part: PartID, text: str) -> SourcedBlock:
    """A system block with its size."""
    return Sourced(part, text, estimator.text_tokens(text))
