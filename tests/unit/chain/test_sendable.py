"""Whether a request could be sent, pure: where too long begins."""

from __future__ import annotations

import pytest

from hango.chain.sendable import is_far_beyond


@pytest.mark.parametrize(
    ("tokens", "window", "expected"),
    [(0, 100, False), (100, 100, False), (150, 100, False), (151, 100, True), (300_000, 200_000, False)],
)
def test_an_estimate_may_be_half_a_window_wrong(tokens: int, window: int, expected: bool) -> None:
    """Up to one and a half windows the provider decides: the estimate may be wrong by so much."""
    assert is_far_beyond(tokens, window) is expected
