"""Repair on the wire: whatever is stored, what is sent obeys the strict reader, and what is not sent is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hango.dialect import Dialect
from hango.messages import Message
from tests.drafts import ANTHROPIC, OPENAI, bodies_of, exclude, mended, recounted, request_of
from tests.histories import OWN_MODEL, Said, build, histories
from tests.strict_wire import faults

dialects = st.sampled_from((ANTHROPIC, OPENAI))
factors = st.sampled_from((1.0, 1.1, 1.2, 0.37))


def some(messages: list[Message], data: st.DataObject) -> list[str]:
    """Some of the messages' parts."""
    seqs = st.integers(1, len(messages))
    return [f"message:{seq}" for seq in sorted(data.draw(st.sets(seqs, max_size=3)))] if messages else []


@given(histories, dialects, factors, st.data())
def test_what_is_sent_obeys_the_strict_reader(
    history: list[Said], dialect: Dialect, factor: float, data: st.DataObject
) -> None:
    """A history that was bad before any override is repaired on the wire; overrides leave a valid request."""
    messages = build(history)
    draft = mended(messages, dialect, exclude(*some(messages, data)), factor=factor)

    assert faults(request_of(draft, messages), dialect, OWN_MODEL) == []


@given(histories, dialects, factors, st.data())
def test_the_parts_add_up_to_what_is_sent(
    history: list[Said], dialect: Dialect, factor: float, data: st.DataObject
) -> None:
    """The estimate of the request is the sum of its parts, each rounded once: a recount from the bodies agrees."""
    messages = build(history)
    draft = mended(messages, dialect, exclude(*some(messages, data)), factor=factor)
    counted = recounted(request_of(draft, messages), bodies_of(messages), factor)

    assert draft.size is not None
    parts = dict(zip((item.seq for item in draft.messages), draft.size.messages.parts, strict=True))
    kept = {item.seq for item in draft.kept_messages()}
    assert {seq: tokens for seq, tokens in parts.items() if seq in kept and tokens} == counted
    assert draft.size.after == sum(counted.values())
    assert draft.size.before == sum(parts.values())
    # What is left out has the tokens that it would have were nothing left out.
    whole = mended(messages, dialect, factor=factor)
    assert whole.size is not None
    assert {seq: tokens for seq, tokens in parts.items() if seq not in kept} == {
        item.seq: tokens
        for item, tokens in zip(whole.messages, whole.size.messages.parts, strict=True)
        if item.seq not in kept
    }


@given(histories, dialects, st.data())
def test_an_included_part_that_is_not_sent_has_a_problem(
    history: list[Said], dialect: Dialect, data: st.DataObject
) -> None:
    """An included part that is not sent has an entry in `problems`; nothing leaves silently."""
    messages = build(history)
    draft = mended(messages, dialect, exclude(*some(messages, data)))
    counted = recounted(request_of(draft, messages), bodies_of(messages), 1.0)

    assert draft.repair is not None
    kept = draft.kept_messages()
    unsent = {kept[at].seq for at in draft.repair.unsent}
    assert unsent == {item.seq for item in kept} - set(counted)
    assert {f"message:{seq}" for seq in unsent} <= {problem.part for problem in draft.repair.problems}


@given(histories, dialects)
def test_every_block_that_is_not_sent_has_a_problem_of_its_message(history: list[Said], dialect: Dialect) -> None:
    """What is left out of a message is named by part, empty texts beside others apart."""
    messages = build(history)
    draft = mended(messages, dialect)
    sent = {block.json for message in request_of(draft, messages).messages for block in message.content}

    assert draft.repair is not None
    named = {problem.part for problem in draft.repair.problems}
    left_out = {
        f"message:{seq}"
        for seq, blocks in bodies_of(messages).items()
        for block in blocks
        if block.json not in sent and not (block.type == "text" and not (block.view.text or "").strip())
    }
    assert left_out <= named


@given(histories, dialects)
def test_the_same_history_is_repaired_the_same_way(history: list[Said], dialect: Dialect) -> None:
    """The same state gives the same request."""
    messages = build(history)

    assert mended(messages, dialect) == mended(messages, dialect)


@given(histories, dialects)
def test_no_block_is_sent_twice_and_none_is_made_up(history: list[Said], dialect: Dialect) -> None:
    """Repair moves and leaves out; all it adds is the error result of a call that was not carried out."""
    messages = build(history)
    known = [block.json for message in messages for block in message.content]
    sent = [block for message in request_of(mended(messages, dialect), messages).messages for block in message.content]

    own = [block.json for block in sent if block.json in known]
    assert len(set(own)) == len(own)
    assert all(
        block.json
        == f'{{"type":"tool_result","tool_use_id":"{block.view.tool_use_id}","content":"This call was not carried out: '
        'it has no result in the history.","is_error":true}'
        for block in sent
        if block.json not in known
    )
