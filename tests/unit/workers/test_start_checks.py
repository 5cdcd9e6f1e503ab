"""What a worker refuses to start with."""

from __future__ import annotations

import pytest

from hango.workers.resources import connections
from hango.workers.start_checks import is_open


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://valkey:6379/0", True),
        ("rediss://cache.example", True),
        ("redis://10.0.0.5", True),
        ("redis://user@valkey", True),
        ("redis://[2001:db8::1]:6379", True),
        ("redis://:secret@valkey:6379/0", False),
        ("redis://valkey?password=secret", False),
        ("redis://localhost:6379", False),
        ("redis://127.3.2.1", False),
        ("redis://[::1]:6379/2", False),
        ("redis://", False),
        ("unix:///run/valkey.sock?db=1", False),
    ],
)
def test_a_redis_abroad_needs_a_password(url: str, expected: bool) -> None:
    """Over a network a password, on this machine none; a unix socket has the rights of its file."""
    assert is_open(url) is expected


def test_connections_follow_the_calls() -> None:
    """A few connections serve many calls: none is held while a model answers."""
    assert [connections(calls) for calls in (1, 16, 40, 64, 1024)] == [4, 4, 10, 16, 16]
