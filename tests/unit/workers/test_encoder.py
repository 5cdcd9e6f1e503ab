"""The strict encoder: total, and deaf to everything but the name of a job of this version."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dramatiq.message import Message
from hypothesis import given
from hypothesis import strategies as st

from hango.workers.encoder import MOST_BYTES, StrictEncoder, doorbell, poison

ENCODER = StrictEncoder()
RING: dict[str, Any] = doorbell().copy(options={"redis_message_id": "one"}).asdict()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def written(**changes: Any) -> bytes:
    return json.dumps(RING | changes).encode()


def read(data: bytes) -> dict[str, Any]:
    """What a worker is to call, without what differs from reading to reading."""
    found = ENCODER.decode(data)
    return {name: found[name] for name in ("queue_name", "actor_name", "args", "kwargs", "options")}


def reported(data: bytes) -> dict[str, Any]:
    found = poison(data)
    return {name: found[name] for name in ("queue_name", "actor_name", "args", "kwargs", "options")}


def test_a_doorbell_comes_back_as_it_was_sent() -> None:
    """The message carries nothing but its actor's name."""
    assert ENCODER.decode(ENCODER.encode(RING)) == {**RING, "args": []}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{nope",
        b"\xff\xfe",
        b"null",
        b"NaN",
        b"[1, 2, 3]",
        b"[" * 4000,
        b"[" * 1_000_000,
        b'{"a": 1}',
        b"x" * 100_000,
        written() + b" " * MOST_BYTES,
        written(actor_name="a job of another version"),
        written(actor_name="poison", args=["0" * 16, 1]),
        written(queue_name="another"),
        written(args=["a try's id"]),
        written(kwargs={"pipe_target": "x"}),
        written(options={}),
        written(options={"redis_message_id": 5}),
        written(message_timestamp="now"),
        written(message_timestamp=10**30),
        written(more=1),
        b"\x80\x04\x95\x17\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    ],
)
def test_what_is_no_doorbell_becomes_a_report(data: bytes) -> None:
    """Poison becomes a call that says its hash and size, and nothing of its content."""
    assert read(data) == reported(data)


def test_no_option_is_believed() -> None:
    """Options that Dramatiq acts on, such as delays, callbacks and pipelines, do not get through."""
    data = written(
        options={
            "redis_message_id": "one",
            "eta": 1,
            "pipe_target": RING,
            "on_success": "poison",
            "on_retry_exhausted": "poison",
            "time_limit": 1,
        }
    )

    assert ENCODER.decode(data)["options"] == {"redis_message_id": "one"}


@given(st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()))
def test_reading_never_raises(data: bytes) -> None:
    """Whatever stands in Redis is read as one of the two jobs."""
    assert read(data) == reported(data)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(RING, JSON) | {"more": JSON}))
def test_a_message_that_is_nearly_one_never_raises(changes: dict[str, Any]) -> None:
    """Any value in any field is read as one of the two jobs, with arguments that they take."""
    message: Message[Any] = Message(**ENCODER.decode(written(**changes)))

    assert (message.actor_name, len(message.args), message.kwargs, set(message.options)) in [
        ("doorbell", 0, {}, {"redis_message_id"}),
        ("poison", 2, {}, {"redis_message_id"}),
    ]
