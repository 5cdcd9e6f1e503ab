"""What may stand in a message of the queue: the name of a job of this version, and nothing else.

Whoever can write to Redis can put anything there, and an older or newer hango may share it. So reading is total: what
is no doorbell becomes a call of `poison`, and its neighbours in the same batch are not touched.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, Literal

import msgspec
from dramatiq.encoder import Encoder, JSONEncoder
from dramatiq.message import Message

QUEUE: Final = "tries"
DOORBELL: Final = "doorbell"
POISON: Final = "poison"
MOST_BYTES: Final = 4096  # a doorbell has about 200
FINGERPRINT_DIGITS: Final = 16

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """A message as it stands in Redis: exactly these keys."""

    queue_name: Literal["tries"]
    actor_name: Literal["doorbell"]
    args: Annotated[list[Any], msgspec.Meta(max_length=0)]
    kwargs: Annotated[dict[str, Any], msgspec.Meta(max_length=0)]
    options: dict[str, Any]
    message_id: Name
    message_timestamp: Milliseconds


class _Options(msgspec.Struct):
    """The one option that is believed. Dramatiq acts on others: callbacks, pipelines, delays."""

    redis_message_id: Name


class StrictEncoder(Encoder):
    """Reads whatever it is given and never raises."""

    def encode(self, data: dict[str, Any]) -> bytes:
        return JSONEncoder().encode(data)

    def decode(self, data: bytes) -> dict[str, Any]:
        try:
            if len(data) > MOST_BYTES:
                return poison(data)
            written = msgspec.json.decode(data, type=_Written)
            options = msgspec.convert(written.options, _Options)
        except (ValueError, RecursionError):  # what msgspec raises for bytes that are no JSON, or another JSON
            return poison(data)
        return msgspec.structs.asdict(written) | {"options": msgspec.structs.asdict(options)}


def doorbell() -> Message[None]:
    """A call of the job that looks for tries."""
    return Message(queue_name=QUEUE, actor_name=DOORBELL, args=(), kwargs={}, options={})


def poison(data: bytes) -> dict[str, Any]:
    """A call of the job that reports it, with all that may be said of the message: a hash and a size."""
    fingerprint = hashlib.sha256(data).hexdigest()[:FINGERPRINT_DIGITS]
    call: Message[None] = Message(
        queue_name=QUEUE,
        actor_name=POISON,
        args=(fingerprint, len(data)),
        kwargs={},
        # Its real id is not known here: the consumer drops what it has fetched and cannot name.
        options={"redis_message_id": f"{POISON}-{fingerprint}"},
    )
    return call.asdict()
