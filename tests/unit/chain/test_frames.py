"""Frames: a snapshot made from a kept frame is the snapshot that the draft itself makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.json import encode
from msgspec.structs import replace as replace_fields

from hango.chain import frames
from hango.chain.context import Drafted, estimated_snapshot
from hango.chain.context_overrides import effective
from hango.chain.digest import digest
from hango.chain.draft import Draft
from hango.chain.marking import mark
from hango.chain.window import HEAD, WHOLE, Window
from hango.domain import AgentID, Override, SessionID
from hango.errors import Invalid
from hango.messages import text_block
from tests.drafts import ANTHROPIC, OPENAI, exclude, remended, swap
from tests.histories import OWN_MODEL, Said, build, histories, numbered
from tests.states import state_of

FACTOR = 1.2


def drafted(history: Sequence[Said], overrides: Sequence[Override], *, covered: int | None, openai: bool) -> Drafted:
    """A drafted call; `covered` messages are under a summary, None: there is none."""
    items = numbered(build(history), (covered or 0) + 1)
    if covered is not None:
        items = (replace_fields(digest("user", (text_block("So far."),), None), seq=0), *items)
    dialect = OPENAI if openai else ANTHROPIC
    marked = mark(Draft((), (), items), effective((), overrides), last_seq=10**6)
    draft = replace(remended(marked, dialect, OWN_MODEL, FACTOR), compact_at=1000)
    state = state_of(dialect=dialect, factor=FACTOR)
    return Drafted(SessionID(UUID(int=1)), AgentID(UUID(int=2)), state, draft, "0" * 64)


@given(
    history=histories,
    covered=st.sampled_from((None, None, 1, 7)),
    openai=st.booleans(),
    left_out=st.sets(st.integers(0, 12), max_size=2),
    window=st.sampled_from(
        (
            WHOLE,
            Window("system"),
            Window("tools"),
            Window("messages"),
            Window("messages", None, 1),
            Window("messages", None, 3),
            Window("messages", 0, 2),
            Window("messages", 2, 2),
            Window("messages", 9, 500),
        )
    ),
)
def test_a_kept_frame_shows_what_the_draft_shows(
    history: list[Said], covered: int | None, openai: bool, left_out: set[int], window: Window
) -> None:
    """Whatever the history, its faults and its overrides, and whatever stretch is asked for."""
    try:
        call = drafted(
            history,
            exclude(*(f"message:{seq}" if seq else "summary" for seq in sorted(left_out))),
            covered=covered,
            openai=openai,
        )
    except Invalid:
        assume(False)
    frame = frames.frame_of(estimated_snapshot(call, HEAD), call.draft, FACTOR)
    after, through = frames.stretch(frame, window)
    stored = [call.draft.originals.get(item.seq, item) for item in call.draft.messages]
    made = frames.fill(frame, window, [item for item in stored if after < item.seq <= through])

    assert made == estimated_snapshot(call, window)


def test_a_replaced_message_is_kept_with_its_frame() -> None:
    """The stretch is read from what is stored; the replacement's preview and tokens come from the frame."""
    history = [Said("user", (("text", ""),)), Said("assistant", (("text", ""),)), Said("user", (("text", ""),))]
    call = drafted(history, swap(m2="Another answer."), covered=None, openai=False)
    frame = frames.frame_of(estimated_snapshot(call, HEAD), call.draft, FACTOR)
    made = frames.fill(frame, WHOLE, list(numbered(build(history))))

    assert made == estimated_snapshot(call)
    assert made.messages[1].preview == "Another answer."


def test_a_long_snapshot_is_written_in_pieces() -> None:
    """The reply of a long history is the same text, whoever wrote its parts."""
    history = [Said("user", (("text", ""),)), Said("assistant", (("use", "call_0"),))] * frames.LONG
    call = drafted(history, exclude("message:1", "message:2049"), covered=3, openai=False)
    frame = frames.frame_of(estimated_snapshot(call, HEAD), call.draft, FACTOR)
    items = list(call.draft.messages[1:])
    made = encode(frames.fill(frame, WHOLE, items))

    assert made == encode(estimated_snapshot(call))
    assert items == []
