"""Patterns of paths: what `*`, `?` and `**` stand for, and that no pattern takes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.builtin_tools.globs import Glob

PATHS = (
    "/a.md",
    "/notes/a.md",
    "/notes/b.txt",
    "/notes/deep/a.md",
    "/notes/deep/er/a.md",
    "/notes.md",
    "/notes/[x].md",
    "/büro/一.md",
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/notes/a.md", ["/notes/a.md"]),
        ("/notes/*.md", ["/notes/a.md", "/notes/[x].md"]),
        ("/notes/?.md", ["/notes/a.md"]),
        ("/notes/**/*.md", ["/notes/a.md", "/notes/deep/a.md", "/notes/deep/er/a.md", "/notes/[x].md"]),
        ("/notes/**/**/a.md", ["/notes/a.md", "/notes/deep/a.md", "/notes/deep/er/a.md"]),
        ("/notes/**", ["/notes/a.md", "/notes/b.txt", "/notes/deep/a.md", "/notes/deep/er/a.md", "/notes/[x].md"]),
        ("/**/er/*", ["/notes/deep/er/a.md"]),
        ("**/a.md", ["/a.md", "/notes/a.md", "/notes/deep/a.md", "/notes/deep/er/a.md"]),
        ("*.md", ["/a.md", "/notes.md"]),
        ("/no**s.md", ["/notes.md"]),
        ("/notes/[x].md", ["/notes/[x].md"]),
        ("/notes", []),
        ("/notes/", []),
        ("/b*/?.md", ["/büro/一.md"]),
        ("/**", list(PATHS)),
    ],
)
def test_a_pattern_names_paths(pattern: str, expected: list[str]) -> None:
    """`*` is any text within a name, `?` one letter, `**` any number of folders; all else is itself."""
    glob = Glob(pattern)

    assert [path for path in PATHS if glob.matches(path)] == expected


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("/notes/**/*.md", "/notes/"), ("/notes/a.md", "/notes/"), ("*.md", "/"), ("/a/b?c/d", "/a/"), ("", "/")],
)
def test_the_prefix_is_the_folder_before_the_first_wildcard(pattern: str, prefix: str) -> None:
    """`prefix` is the folder that every matching path begins with."""
    assert Glob(pattern).prefix == prefix


@given(
    st.from_regex(r"(/(\*\*|[ab*?]{1,3})){1,4}", fullmatch=True), st.from_regex(r"(/[ab]{1,3}){1,4}", fullmatch=True)
)
def test_it_agrees_with_a_regular_expression(pattern: str, path: str) -> None:
    """A path fits exactly when it fits the pattern's meaning, written as a regular expression."""
    expected = ""
    names = pattern[1:].split("/")
    for at, name in enumerate(names):
        is_last = at == len(names) - 1
        if name == "**":
            expected += "/.*" if is_last else "(?:/[^/]+)*"
        else:
            expected += "/" + "".join({"*": "[^/]*", "?": "[^/]"}.get(letter, letter) for letter in name)

    matches = Glob(pattern).matches(path)

    assert matches == (re.fullmatch(expected, path) is not None)
    assert not matches or path.startswith(Glob(pattern).prefix)


@pytest.mark.parametrize("pattern", ["/" + "a*" * 511, "/**/a" * 200, "/" + "?" * 1000 + "*" * 20, "/" + "*?" * 500])
def test_no_pattern_takes_long(pattern: str) -> None:
    """A hostile pattern costs what another of its length costs: a few milliseconds a path."""
    glob, path = Glob(pattern), "/" + "a" * 1022 + "b"
    before = time.process_time()

    for _ in range(20):
        glob.matches(path)

    assert time.process_time() - before < 2
