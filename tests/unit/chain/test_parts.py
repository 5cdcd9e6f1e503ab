"""Part ids: stable, well formed or refused, never opened as a path."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hango.chain.parts import (
    EXTRA,
    MAX_SEQ,
    SUMMARY,
    ParsedPart,
    PartKind,
    label,
    memory_part,
    message_part,
    parse,
    preview,
    system_part,
    tool_part,
)
from hango.domain import PartID
from hango.errors import Invalid

contributors = st.from_regex(r"\A[a-z0-9][a-z0-9_.-]{0,63}\Z")
letters = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))
paths = st.text(letters, max_size=200).map(lambda rest: f"/{rest}")
tools = st.text(letters, min_size=1, max_size=200)


@given(contributors)
def test_a_contributor_comes_back(name: str) -> None:
    """system:<contributor> for the blocks one contributor adds."""
    assert parse(system_part(name)) == ParsedPart(PartID(f"system:{name}"), PartKind.SYSTEM, name)


@given(paths)
@example("/memories/AGENTS.md")
@example("/memories/材料.md")
@example("/../../etc/passwd")  # a key, never opened
def test_a_memory_source_comes_back(path: str) -> None:
    """system:memory:<path> for one memory source."""
    assert parse(memory_part(path)) == ParsedPart(PartID(f"system:memory:{path}"), PartKind.SYSTEM, f"memory:{path}")


@given(tools)
@example("câu_hỏi")
@example("a:b")
@example("x" * 1100)
@example("字" * 733)
def test_a_tool_comes_back(name: str) -> None:
    """tool:<name> for one tool definition, also by a name that a provider refuses."""
    assert parse(tool_part(name)) == ParsedPart(PartID(f"tool:{name}"), PartKind.TOOL, name)


@given(st.integers(1, MAX_SEQ))
@example(1)
@example(MAX_SEQ)
def test_a_message_comes_back(seq: int) -> None:
    """message:<seq> for one persisted message."""
    assert parse(message_part(seq)) == ParsedPart(PartID(f"message:{seq}"), PartKind.MESSAGE, str(seq), seq)


def test_the_summary_comes_back() -> None:
    """summary for the compaction summary; the extra text of a try cannot be named."""
    assert parse(message_part(0)) == ParsedPart(SUMMARY, PartKind.SUMMARY)
    assert message_part(-1) == EXTRA
    with pytest.raises(Invalid):
        parse(EXTRA)


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "system", "system:", "tool:", "message:", "message", "Summary", "summary ", "summary:", " summary",
        "message:0", "message:-1", "message:+1", "message:01", "message:1.0", "message:1e3", "message: 1", "message:1 ",
        "message:1_000", "message:٣", "message:¹", "message:１", "message:0x1", "message:1\n", f"message:{MAX_SEQ + 1}",
        "message:" + "9" * 5000, "Message:1", "messages:1", "system:Agent", "system:-a", "system:a b", "system:a:b",
        "system:" + "a" * 65, "system:ä", "system:agent\n", "system:memory:", "system:memory:memories/A.md",
        "system:memory:/a\n", "system:memory:/\x00", "system:memory:/\u202ea", "tool:\u200b", "tool:a\u2028b",
        "tool:\ud800", "tool:" + "x" * 1101, "tool:" + "字" * 734,
        "tool:a\tb", "tool:\x7f", "extra", "prompt:agent", "\ud800",
    ],
)  # fmt: skip
def test_a_malformed_id_is_refused(text: str) -> None:
    """A malformed id is 422 bad_part_id; `message:` takes only [1-9][0-9]*."""
    with pytest.raises(Invalid) as raised:
        parse(text)

    assert (raised.value.status, raised.value.closed_code) == (422, "bad_part_id")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("messages", "messages"),
        ("message:+1", "message:+1"),
        ("tool:\x1b[2J\u202e\ud800\n", r"tool:\x1b[2J\u202e\ud800\n"),
        ("x" * 300, "x" * 80 + "…"),
    ],
)
def test_a_malformed_id_is_named(text: str, shown: str) -> None:
    """The sentence begins with the id: no longer than a line, and nothing in it that a terminal would obey."""
    with pytest.raises(Invalid) as raised:
        parse(text)

    kinds = "system:<name>, system:memory:<path>, tool:<name>, message:<number> or summary"
    assert str(raised.value) == f"'{shown}' is no part id: one is {kinds}."


@given(st.text(max_size=40) | st.sampled_from(("system:", "tool:", "message:", "summary")).flatmap(
    lambda head: st.text(max_size=40).map(lambda rest: head + rest)))  # fmt: skip
def test_any_text_is_a_part_or_refused(text: str) -> None:
    """Whatever a caller names: a part with that very id, or bad_part_id, never another failure."""
    try:
        answer = str(parse(text).id)
    except Invalid as error:
        answer = error.closed_code

    assert answer in (text, "bad_part_id")


@pytest.mark.parametrize(
    ("kind", "name", "seq", "role", "shown"),
    [
        (PartKind.SYSTEM, "agent", 0, "", "agent"),
        (PartKind.SYSTEM, "memory:/memories/AGENTS.md", 0, "", "/memories/AGENTS.md"),
        (PartKind.TOOL, "read_file", 0, "", "read_file"),
        (PartKind.MESSAGE, "", 42, "assistant", "#42 assistant"),
        (PartKind.MESSAGE, "", -1, "user", "extra text"),
        (PartKind.SUMMARY, "", 0, "user", "summary"),
    ],
)
def test_labels(kind: PartKind, name: str, seq: int, role: str, shown: str) -> None:
    """The label for each kind: the tool name, #seq role, the memory path."""
    assert label(kind, name, seq, role) == shown


@given(st.text(max_size=300))
@example("a" * 199 + "\U0001f600tail")
@example("c" * 199 + "e\u0302\u0301 end")
def test_a_preview_is_the_first_200_code_points(text: str) -> None:
    """The first 200 code points, nothing added."""
    assert preview(text) == "".join(list(text)[:200])
