"""Text of others on a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from hango.cli import text

ANY = st.text(st.characters(exclude_categories=[]))
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ("plain [bold]x[/bold]", "plain [bold]x[/bold]"),
        ("a\x1b[2Jb", "a⟨U+001B⟩[2Jb"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("\x1b]52;c;aGk=\x07", "⟨U+001B⟩]52;c;aGk=⟨U+0007⟩"),
        ("\u202eright to left\u202c plain", "⟨U+202E⟩right to left⟨U+202C⟩ plain"),
        ("zero\u2060width\u200b and e\u0301", "zero⟨U+2060⟩width⟨U+200B⟩ and e\u0301"),
        ("one\n\n  two\r\nthree\tfour", "one ⏎ two ⏎ three four"),
        ("ends\n", "ends ⏎ "),
        ("one\u2028two", "one ⏎ two"),
        ("\u0301starts with an accent", "◌\u0301starts with an accent"),
        (f"family {FAMILY}", f"family {FAMILY}"),
        ("hidden \U000e0041\U000e0042", "hidden ⟨U+E0041⟩⟨U+E0042⟩"),
        ("half \ud83d", "half ⟨U+D83D⟩"),
        ("nul \x00", "nul ⟨U+0000⟩"),
        ("", ""),
    ],
)
def test_what_acts_or_hides_is_shown_by_its_number(given_: str, shown: str) -> None:
    """Controls, direction controls and invisible letters are shown, never carried out."""
    assert text.one_line(given_) == shown


def test_lines_keep_their_ends() -> None:
    """Content in full is shown line by line, tabs as spaces."""
    assert text.lines("a\tb\r\n\x1bc\n") == ["a   b", "⟨U+001B⟩c", ""]


@pytest.mark.parametrize(
    ("given_", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), (FAMILY, 2), ("❤\ufe0f", 2), ("", 0)]
)
def test_width_is_what_is_seen(given_: str, width: int) -> None:
    """Columns are counted by display width: wide letters two, accents none, a family one picture."""
    assert text.cells(given_) == width


@pytest.mark.parametrize(
    ("given_", "room", "shown"),
    [
        ("whole", 5, "whole"),
        ("whole", 4, "who…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),
        (f"{FAMILY}{FAMILY}", 3, f"{FAMILY}…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("a b", 2, "a…"),
        ("abc", 0, ""),
        ("\u0e33\u1161\u093f long", 3, "\u0e33\u1161\u093f…"),  # three letters that take two columns together
    ],
)
def test_a_cut_never_splits_a_letter(given_: str, room: int, shown: str) -> None:
    """Text is cut by display width, between whole letters."""
    assert text.cut(given_, room) == shown


@pytest.mark.parametrize(
    ("given_", "room", "shown"),
    [
        ("whole", 5, "whole"),
        ("/memories/AGENTS.md", 12, "/memo…NTS.md"),
        ("漢字漢字", 6, "漢…字"),
        ("漢字漢字", 7, "漢…漢字"),
        (f"{FAMILY}{FAMILY}{FAMILY}", 5, f"{FAMILY}…{FAMILY}"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_cut_in_the_middle_keeps_both_ends(given_: str, room: int, shown: str) -> None:
    """What tells two names apart is often at their end."""
    assert text.cut_middle(given_, room) == shown


@settings(max_examples=400, deadline=None)
@given(ANY, st.integers(1, 60))
def test_no_cut_in_the_middle_overflows(given_: str, room: int) -> None:
    """Whatever a text holds, it is never wider than its room."""
    assert 0 <= wcswidth(text.cut_middle(text.one_line(given_), room)) <= room


@settings(max_examples=400, deadline=None)
@given(ANY, st.integers(1, 60))
def test_no_text_acts_or_overflows(given_: str, room: int) -> None:
    """Whatever a text holds: one line, nothing that acts, never wider than its room."""
    shown = text.cut(text.one_line(given_), room)

    assert 0 <= wcswidth(shown) <= room
    assert [c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}] == []


@settings(max_examples=200, deadline=None)
@given(ANY, st.integers(10, 60))
def test_wrapped_words_are_all_there(given_: str, width: int) -> None:
    """Wrapping a sentence loses no word, and only a longer word leaves the width."""
    lines = text.wrap(given_, width)

    assert " ".join(lines) == text.one_line(given_)
    assert [line for line in lines if text.cells(line) > width and " " in line] == []


@pytest.mark.parametrize(
    ("given_", "lines", "whole"),
    [
        ("", (), True),
        (" \n", (), True),
        ("one", ("one",), True),
        ("one\ntwo\n\n", ("one", "two"), True),
        ("one\ntwo\nthree\nfour", ("one", "two", "three"), False),
        ("a line that is cut\nb", ("a lin…", "b"), False),
        ("one line goes on", ("one li", "ne goe", "s on"), True),
        ("漢字漢字漢字", ("漢字漢", "字漢字"), True),
        (f"ab{FAMILY}{FAMILY}{FAMILY}", (f"ab{FAMILY}{FAMILY}", FAMILY), True),
        ("x" * 19, ("xxxxxx",) * 3, False),
        ("x" * 4000, ("xxxxxx",) * 3, False),
        ("\x1b[2J", ("⟨U+001", "B⟩[2J"), True),
    ],
)
def test_fold(given_: str, lines: tuple[str, ...], whole: bool) -> None:
    """Of several lines each is cut, a single one goes on below; what is left out is known."""
    assert text.fold(given_, 6, 3) == text.Folded(lines, whole)


@given(given_=ANY, width=st.integers(1, 30), most=st.integers(1, 5))
def test_what_is_folded_fits(given_: str, width: int, most: int) -> None:
    """However the text is, there are so many lines at most, and none but that of a wide letter is too long."""
    folded = text.fold(given_, width, most)

    assert len(folded.lines) <= most
    assert all(text.cells(line) <= max(width, 2) for line in folded.lines)
