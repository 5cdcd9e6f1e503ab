"""Names on the wire: allowed ones stay, others are cleaned, never two into one."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from hango.dialect import clean_names

ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)

# Few letters and their look-alikes, so that cleaned forms meet each other and given names.
names = st.text("ab_.é ", max_size=6) | st.text(max_size=80)


def cleaned_form(name: str) -> str:
    return clean_names([name], ALLOWED)[name]


@given(st.lists(names, max_size=8))
@example(["", " ", "x" * 65, "x" * 64, "câu_hỏi", "a.b", "a_b"])
@example(["a.b", cleaned_form("a.b")])  # the cleaned form is somebody's own name
def test_every_name_goes_out_legal_and_apart(wanted: list[str]) -> None:
    """Foreign ids and tool names are rewritten one-to-one; a legal one stays as it is."""
    cleaned = clean_names(wanted, ALLOWED)

    assert set(cleaned) == set(wanted)
    assert all(ALLOWED.fullmatch(made) for made in cleaned.values())
    assert len(set(cleaned.values())) == len(cleaned)
    assert {name: made for name, made in cleaned.items() if ALLOWED.fullmatch(name)} == {
        name: name for name in wanted if ALLOWED.fullmatch(name)
    }


@given(st.lists(names, max_size=6).flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))))
def test_the_order_of_names_does_not_matter(lists: tuple[list[str], list[str]]) -> None:
    """The same state gives the same bytes: the names alone decide, not their order."""
    assert clean_names(lists[0], ALLOWED) == clean_names(lists[1], ALLOWED)
