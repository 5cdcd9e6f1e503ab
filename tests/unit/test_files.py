"""Paths of files: names in a store; nothing that climbs, hides or acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.files import PATH_BYTES, PATH_CHARS, check_path


@pytest.mark.parametrize(
    "path",
    ["/a", "/memories/AGENTS.md", "/skills/büro-ordnung/SKILL.md", "/ghi chú/tiếng Việt.md", "/笔记/一.md", "/a b/c",
     "/...", "/.hidden", "/a..b", "/" + "x" * (PATH_CHARS - 1), "/ab" + "𠀀" * 511 + "b"],
)  # fmt: skip
def test_any_letters_make_a_path(path: str) -> None:
    """A path takes any Unicode letters, up to 1,024 characters and 2,048 bytes of UTF-8."""
    assert check_path(path) is None


@pytest.mark.parametrize(
    "path",
    ["", "a", "/", "//", "//a", "/a//b", "/a/", "/.", "/..", "/a/../b", "/../../etc/passwd", "/a/./b", "/a\x00b",
     "/a\nb", "/a\x1bb", "/a\u202eb", "/a\u2028b", "/a\ud800", "/a\u200bb", "/a\ufffdb", "\\\\server\\share",
     "/" + "x" * PATH_CHARS, "/" + "𠀀" * (PATH_BYTES // 4), "/" + "字" * 700],
)  # fmt: skip
def test_what_climbs_hides_or_acts_is_no_path(path: str) -> None:
    """No `..`, no empty segment, no control, direction or invisible character; absolute; not too long."""
    assert check_path(path) is not None


@given(st.text(max_size=40))
def test_a_path_that_is_taken_has_no_step_up(text: str) -> None:
    """Whatever is taken stays below the root, segment by segment."""
    path = f"/{text}"
    if check_path(path) is None:
        assert all(segment not in {"", ".", ".."} for segment in path[1:].split("/"))
        assert "\x00" not in path
