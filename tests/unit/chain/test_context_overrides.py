"""The rules of overrides: what a set marks, what leaves with it, what it cannot do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain import estimator
from hango.chain.context_overrides import Applied, effective, read
from hango.chain.draft import Draft, Sourced, Stale
from hango.chain.marking import mark, partners
from hango.chain.parts import message_part, system_part, tool_part
from hango.domain import Override, OverrideAction, PartID
from hango.errors import Detail, Invalid, Reason
from hango.messages import ToolSpec
from tests.drafts import ANTHROPIC, bodies_of, exclude, mended, paired, recounted, request_of, swap
from tests.histories import OWN_MODEL, Said, build, histories, numbered, said
from tests.strict_wire import faults

PAIRING = {Reason.UNPAIRED_TOOL_USE, Reason.UNPAIRED_TOOL_RESULT, Reason.DUPLICATE_TOOL_RESULT}


def gone(seqs: set[int]) -> list[PartID]:
    return [message_part(seq) for seq in sorted(seqs)]


seqs = st.sets(st.integers(1, 12), max_size=3)


@given(histories, seqs)
def test_partners_are_closed_and_come_once(history: list[Said], named: set[int]) -> None:
    """Closure is transitive: nothing more leaves for those that left, and no named part is added."""
    items = numbered(build(history))
    added = partners(items, gone(named))

    assert set(added).isdisjoint(gone(named))
    assert partners(items, [*gone(named), *added]) == {}
    assert set(added) <= {message_part(item.seq) for item in items}
    assert set(added.values()) <= set(gone(named))


@given(histories, seqs)
def test_partners_of_a_set_are_those_of_its_members(history: list[Said], named: set[int]) -> None:
    """No part leaves but for one that somebody named."""
    items = numbered(build(history))
    alone = set[PartID]().union(*(partners(items, gone({seq})) for seq in named))

    assert set(partners(items, gone(named))) == alone - set(gone(named))


@given(histories, seqs)
def test_a_set_breaks_no_pair(history: list[Said], named: set[int]) -> None:
    """A set leaves a valid request: each pairing fault after it was there before it."""
    messages = build(history)
    parts = [message_part(seq) for seq in sorted(named) if seq <= len(messages)]

    def pairing_faults(draft: Draft) -> set[tuple[Reason, str | None]]:
        assert draft.repair is not None
        return {(one.reason, one.part) for one in draft.repair.problems if one.reason in PAIRING}

    assert pairing_faults(mended(messages, overrides=exclude(*parts))) <= pairing_faults(mended(messages))


@given(histories, seqs, st.sampled_from((1.0, 1.2)))
def test_a_replacement_swaps_the_text_and_nothing_else(history: list[Said], named: set[int], factor: float) -> None:
    """A replaced message keeps every block but text; what is sent is valid and its tokens are the replacement's."""
    messages = build(history)
    texts = {f"m{seq}": f"Swapped {seq}." for seq in named if seq <= len(messages)}
    try:
        draft = mended(messages, ANTHROPIC, swap(**texts), factor=factor)
    except Invalid as error:
        assert error.closed_code == "replace_breaks_pair"  # noqa: PT017  # the other outcome is below
        return

    request = request_of(draft, messages)
    assert faults(request, ANTHROPIC, OWN_MODEL) == []
    sent = [block.json for message in request.messages for block in message.content]
    assert draft.size is not None
    for seq in (seq for seq in named if seq <= len(messages)):
        assert sum(f"Swapped {seq}." in json for json in sent) <= 1
    assert draft.size.after == sum(draft.size.messages.parts)
    assert draft.unmarked == mended(messages).repair


PAIR = [
    said("user", "How many bolts?"),
    said(
        "assistant", [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c", "name": "ls", "input": {}}]
    ),
    said("user", [{"type": "tool_result", "tool_use_id": "c", "content": "bolts: 40"}]),
    said("assistant", "Forty."),
    said("user", "Thanks."),
]


@pytest.mark.parametrize(
    ("named", "added"),
    [
        (["message:2"], ["message:3"]),
        (["message:3"], ["message:2"]),
        (["message:4"], []),
        (["message:2", "message:3"], []),
    ],
)
def test_excluding_one_side_of_a_pair_excludes_the_other(named: list[str], added: list[str]) -> None:
    """Excluding the message with a tool_use also excludes the message with its tool_result, and the other way round."""
    draft = mended(PAIR, overrides=exclude(*named))

    assert paired(draft) == added
    assert [f"message:{item.seq}" for item in draft.kept_messages()] == [
        f"message:{seq}" for seq in range(1, 6) if f"message:{seq}" not in named + added
    ]


def test_an_excluded_part_keeps_its_tokens() -> None:
    """`tokens` is of the text that would be sent were the part included: unticking shows what it saves."""
    whole, less = mended(PAIR, factor=1.2), mended(PAIR, overrides=exclude("message:2"), factor=1.2)

    assert whole.size is not None
    assert less.size is not None
    assert less.size.messages.parts == whole.size.messages.parts
    assert less.size.before == whole.size.after
    assert less.size.after == whole.size.after - sum(whole.size.messages.parts[1:3])
    assert less.size.after == sum(recounted(request_of(less, PAIR), bodies_of(PAIR), 1.2).values())


def test_a_replaced_part_has_both_sizes() -> None:
    """For a replaced part `tokens` is the replacement's, `tokens_original` the original's."""
    draft, whole = mended(PAIR, overrides=swap(m4="Many."), factor=1.2), mended(PAIR, factor=1.2)

    assert draft.size is not None
    assert whole.size is not None
    new = math.ceil((estimator.count(["Many."])[0] + estimator.MESSAGE_OVERHEAD) * 1.2)
    assert draft.size.messages.parts[3] == new
    assert draft.size.messages.originals == {3: whole.size.messages.parts[3]}
    assert (draft.size.before, draft.size.after) == (
        whole.size.after,
        whole.size.after - whole.size.messages.parts[3] + new,
    )


def test_a_replacement_of_a_result_keeps_the_call() -> None:
    """Keep the call, drop the output: the content of the single tool result is replaced and its id stays."""
    draft = mended(PAIR, overrides=swap(m3="left out"))

    assert [block.json for block in request_of(draft, PAIR).messages[2].content] == [
        '{"type":"tool_result","tool_use_id":"c","content":"left out"}'
    ]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in "ab"], "it holds 2 tool results"),
        ([{"type": "thinking", "thinking": "x", "signature": "s"}], "it is thinking alone"),
        ([{"type": "compaction", "content": "x"}], "it holds a provider's compaction block"),
    ],
)
def test_some_messages_cannot_be_replaced(content: list[dict[str, str]], fault: str) -> None:
    """Several results, thinking alone and a provider's compaction block are 422 replace_breaks_pair."""
    with pytest.raises(Invalid) as raised:
        mended([said("assistant", content)], overrides=swap(m1="New."))

    (detail,) = raised.value.errors
    assert (detail.reason, detail.part) == (Reason.REPLACE_BREAKS_PAIR, "message:1")
    assert f"'message:1' cannot be replaced: {fault}" in detail.message


@pytest.mark.parametrize("id", ["nobody", "c"])
def test_a_result_that_is_never_sent_cannot_be_replaced(id: str) -> None:
    """A replacement that could not go out is refused: of a result that answers nothing, or a call that has one."""
    unsent = said("user", [{"type": "unknown_x"}, {"type": "tool_result", "tool_use_id": id, "content": "x"}])

    with pytest.raises(Invalid) as raised:
        mended([*PAIR, unsent], overrides=swap(m6="New."))

    message = (
        "The part 'message:6' cannot be replaced: no call waits for its tool result, which is not sent."
        " Exclude it instead."
    )
    assert raised.value.errors == (Detail(Reason.REPLACE_BREAKS_PAIR, message, "message:6"),)


def test_a_saved_replacement_that_cannot_be_made_any_more_is_stale() -> None:
    """A summary can come to cover the call of a replaced result: the inspect goes on and says that it does nothing."""
    (wanted,) = swap(m3="left out")
    draft = Draft((), (), numbered(PAIR[2:], first=3))

    marked = mark(draft, [Applied(wanted, "session")], last_seq=5)

    assert marked.stale == (Stale(wanted, "session", Reason.REPLACE_BREAKS_PAIR),)
    assert marked.messages == draft.messages


@pytest.mark.parametrize(
    ("out", "texts", "detail"),
    [
        (["message:0"], {}, (Reason.BAD_PART_ID, "message:0")),
        (["tool:a", "tool:a"], {}, (Reason.DUPLICATE_PART, "tool:a")),
        (["system:a"], {"system:a": "x"}, (Reason.DUPLICATE_PART, "system:a")),
        ([], {"tool:a": "x"}, (Reason.REPLACE_TOOL, "tool:a")),
        ([], {"system:a": ""}, (Reason.EMPTY_REPLACEMENT, "system:a")),
        ([], {"summary": " \n\u00a0\u3000"}, (Reason.EMPTY_REPLACEMENT, "summary")),
        ([], {"message:1": "a\x00"}, (Reason.INVALID_TEXT, "message:1")),
        ([], {"message:1": "\ud83d"}, (Reason.INVALID_TEXT, "message:1")),
        (["extra"], {}, (Reason.BAD_PART_ID, "extra")),
    ],
)
def test_what_a_caller_cannot_ask_for(out: list[str], texts: dict[str, str], detail: tuple[Reason, str]) -> None:
    """Each 422 names the part at fault."""
    with pytest.raises(Invalid) as raised:
        read(out, texts)

    assert [(one.reason, one.part) for one in raised.value.errors] == [detail]


def test_a_callers_words_are_read() -> None:
    """exclude and replace in the caller's words."""
    assert read(["message:2", "system:memory:/a b.md"], {"summary": "Short."}) == [
        Override(PartID("message:2"), OverrideAction.EXCLUDE),
        Override(PartID("system:memory:/a b.md"), OverrideAction.EXCLUDE),
        Override(PartID("summary"), OverrideAction.REPLACE, "Short."),
    ]


def draft_of_parts() -> Draft:
    return Draft(
        system=(Sourced(system_part("agent"), "You help.", 3),),
        tools=(Sourced(tool_part("ls"), ToolSpec("ls"), 9),),
        messages=numbered(PAIR[3:], first=4),
    )


def test_an_override_without_its_part_is_stale() -> None:
    """An override for a part that does not exist is stale and does nothing; one under the summary says so."""
    wanted = exclude("system:gone", "tool:gone", "message:2", "summary", "tool:ls")

    marked = mark(draft_of_parts(), [Applied(one, "session") for one in wanted], last_seq=5)

    assert set(marked.marks) == {"tool:ls"}
    assert marked.stale == (
        Stale(wanted[0], "session", Reason.NOT_IN_CONTEXT),
        Stale(wanted[1], "session", Reason.NOT_IN_CONTEXT),
        Stale(wanted[2], "session", Reason.IN_SUMMARY),
        Stale(wanted[3], "session", Reason.NOT_IN_CONTEXT),
    )


def test_a_message_beyond_the_end_is_unknown() -> None:
    """message:<n> beyond the end is 422: it would come into force by itself later."""
    with pytest.raises(Invalid) as raised:
        mark(draft_of_parts(), effective((), exclude("message:6")), last_seq=5)

    message = "The part 'message:6' does not exist: the session ends with message:5."
    assert raised.value.errors == (Detail(Reason.UNKNOWN_PART, message, "message:6"),)
