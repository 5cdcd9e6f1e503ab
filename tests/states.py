"""States for tests of slots: no database; a slot is asked the way the chain asks it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from hango.agent_definition import AgentDefinition
from hango.chain.draft import Draft
from hango.chain.middleware.base import Middleware
from hango.chain.state import State
from hango.dialect import Dialect
from hango.domain import FileVersion, FileVersionID, SessionID
from hango.messages import Message, Response, StopReason, Usage
from hango.store.connection import Scope
from tests.drafts import ANTHROPIC
from tests.histories import OWN_MODEL, numbered

NO_DATABASE = cast("Scope", None)  # a slot that only reads what the base brought needs none


def state_of(
    definition: AgentDefinition | None = None,
    *,
    messages: Sequence[Message] = (),
    first: int = 1,
    files: Sequence[FileVersion] = (),
    dialect: Dialect = ANTHROPIC,
    **fields: Any,
) -> State:
    return State(
        session_id=SessionID(UUID(int=1)),
        agent=definition or AgentDefinition(OWN_MODEL),
        dialect=dialect,
        messages=numbered(messages, first),
        files={file.path: file for file in files},
        **fields,
    )


def file(path: str, content: str, *, cut: bool = False) -> FileVersion:
    moment = datetime(2026, 11, 30, tzinfo=UTC)
    return FileVersion(FileVersionID(UUID(int=len(path))), path, content, 1, len(content), moment, cut)


async def passed(slot: Middleware, state: State, draft: Draft) -> Draft:
    """The draft as the slot hands it on."""
    handed: list[Draft] = []

    async def core(given: Draft) -> Response:
        handed.append(given)
        return Response((), StopReason.END_TURN, Usage())

    await slot.wrap_model_call(state, draft, core)
    (only,) = handed
    return only
