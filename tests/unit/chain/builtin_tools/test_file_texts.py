"""What the file tools do with a text, without a file."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.builtin_tools.file_texts import LINE_CHARS, edited, lines_holding, part_of
from hango.files import CONTENT_CHARS

texts = st.text(alphabet="ab\n", max_size=60)


@pytest.mark.parametrize(
    ("text", "offset", "limit", "shown"),
    [
        ("", 0, 9, "[the file is empty]"),
        ("a", 0, 9, "a"),
        ("a\r\n\tb\x1b[0m\u202e\n", 0, 9, "a\r\n\tb\x1b[0m\u202e\n"),
        ("\n\n", 0, 9, "\n\n"),
        ("a\nb\nc\nd\n", 0, 2, "a\nb\n[lines 1 to 2 of 4: go on with offset 2]"),
        ("a\nb\nc\nd\n", 2, 2, "c\nd\n[lines 3 to 4, the last]"),
        ("a\nb\nc", 1, 1, "b\n[lines 2 to 2 of 3: go on with offset 2]"),
        ("a\nb\nc", 3, 1, None),
        ("a\n", 1, 1, None),
        ("a", 0, 10**30, "a"),
        ("a\u2028b\x0bc\x85d", 0, 1, "a\u2028b\x0bc\x85d"),
    ],
)
def test_some_lines_of_a_text(text: str, offset: int, limit: int, shown: str | None) -> None:
    """A whole text is given to the letter; a part with a last line that says which and how to go on."""
    assert part_of(text, offset, limit, 1000) == shown


@pytest.mark.parametrize(
    ("text", "offset", "shown"),
    [
        ("aaaa\nbbbb\ncccc", 0, "aaaa\nbbbb\n[lines 1 to 2 of 3: go on with offset 2]"),
        (
            "a" * 12 + "\nb",
            0,
            "a" * 10 + "\n[line 1 is cut: 2 more characters; lines 1 to 1 of 2: go on with offset 1]",
        ),
        ("a" * 12, 0, "a" * 10 + "\n[line 1 is cut: 2 more characters]"),
        ("x\n" + "a" * 12, 1, "a" * 10 + "\n[line 2 is cut: 2 more characters; lines 2 to 2, the last]"),
        ("a" * 10, 0, "a" * 10),
    ],
)
def test_a_part_is_bounded(text: str, offset: int, shown: str) -> None:
    """No more characters than fit: whole lines, and of a line that is longer by itself its beginning."""
    assert part_of(text, offset, 2000, 10) == shown


@given(st.text(alphabet="abc\n", min_size=1), st.integers(1, 5), st.integers(1, 9))
def test_reading_on_reads_everything(text: str, limit: int, most_chars: int) -> None:
    """Who goes on with the offset that is named gets every line once, as long as no line is cut."""
    lines = text.removesuffix("\n").split("\n")
    read: list[str] = []
    while len(read) < len(lines):
        part = part_of(text, len(read), limit, max(most_chars, *map(len, lines), 1))
        assert part is not None
        whole = part == text and not read
        read += part.removesuffix("\n").split("\n") if whole else part.split("\n")[:-1]

    assert read == lines


@pytest.mark.parametrize(
    ("text", "old", "new", "replace_all", "expected"),
    [
        ("a b c", "b", "x", False, ("a x c", 1)),
        ("a b b", "b", "x", True, ("a x x", 2)),
        ("a b", "b", "", False, ("a ", 1)),
        ("a b", "c", "x", False, "The old text does not stand in the file: read it and copy the text to the letter."),
        (
            "b b b",
            "b",
            "x",
            False,
            "The old text stands 3 times in the file: give more of what is around it, or replace_all.",
        ),
        (
            "aaa",
            "aa",
            "x",
            False,
            "The old text stands 2 times in the file: give more of what is around it, or replace_all.",
        ),
        (
            "a" * CONTENT_CHARS,
            "a",
            "b" * CONTENT_CHARS,
            True,
            "The file would have 1,099,511,627,776 characters, and 1,048,576 are the most.",
        ),
    ],
)
def test_an_edit(text: str, old: str, new: str, replace_all: bool, expected: tuple[str, int] | str) -> None:
    """The old text must stand there exactly once unless replace_all is true; the sentence says how often it does."""
    assert edited(text, old, new, replace_all=replace_all) == expected


@given(texts, st.text(alphabet="ab\n", min_size=1, max_size=3), texts)
def test_an_edit_is_unambiguous(text: str, old: str, new: str) -> None:
    """Without replace_all a text is changed only when exactly one place can be meant; with it every place is."""
    places = [at for at in range(len(text)) if text.startswith(old, at)]

    once, everywhere = edited(text, old, new, replace_all=False), edited(text, old, new, replace_all=True)

    assert isinstance(once, tuple) == (len(places) == 1)
    if len(places) == 1:
        assert once == (text[: places[0]] + new + text[places[0] + len(old) :], 1)
    assert everywhere == (text.replace(old, new), text.count(old)) if places else isinstance(everywhere, str)


@given(st.text(alphabet="ab\n\r\u2028", max_size=80), st.text(alphabet="ab", min_size=1, max_size=2))
def test_every_line_that_holds_a_text_is_found_once(text: str, wanted: str) -> None:
    """Each line that holds the text is given once, by its number from 1 and whole."""
    expected = [(number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), 1) if wanted in line]

    assert list(lines_holding(text, wanted)) == expected


@pytest.mark.parametrize("before", [0, 50, 150, 5000])
@pytest.mark.parametrize("after", [0, 50, 5000])
def test_a_long_line_is_cut_around_what_was_found(before: int, after: int) -> None:
    """Of a long line that part is given that holds the text, marked where it is cut."""
    line = "x" * before + "HERE" + "y" * after

    ((number, shown),) = lines_holding("first\n" + line + "\nlast", "HERE")

    assert number == 2
    assert "HERE" in shown
    assert len(shown) <= LINE_CHARS + 6
    assert shown.startswith("...") == (line[:10] != shown[:10])
    assert shown.endswith("...") == (line[-10:] != shown[-10:])


@pytest.mark.parametrize("old", ["a" * 500_000, "ab" * 250_000, "a", "a" * 500_000 + "b"])
def test_a_million_characters_take_no_time(old: str) -> None:
    """An edit and a search of the largest file take less than a second, whatever repeats in it."""
    text = "a" * CONTENT_CHARS
    before = time.process_time()

    edited(text, old, "b", replace_all=False)
    found = list(lines_holding("a\n" * (CONTENT_CHARS // 2), "a"))
    part_of(text, 0, 2000, 100_000)

    assert len(found) == CONTENT_CHARS // 2
    assert time.process_time() - before < 5
