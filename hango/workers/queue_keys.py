"""The keys of the queue in Redis: those that somebody gave another type are dropped, as poison is."""

from __future__ import annotations

import hashlib
from typing import Final

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from hango import logs, telemetry
from hango.logs import Log
from hango.telemetry import Metric
from hango.workers.encoder import FINGERPRINT_DIGITS

# Keys in one look: few enough that nobody else waits for it.
SCAN_KEYS: Final = 1000


def mended(client: Redis, namespace: str, queue: str, error: BaseException) -> bool:
    """Whether the error came of keys of another type; none is left then, and who asks has to ring once more.

    The queue goes with them: a command that met one may have left half of a message. Each key is reported once, by its
    name, since what it holds may be of any size. Raises nothing.
    """
    if not (isinstance(error, ResponseError) and "WRONGTYPE" in str(error)):
        return False
    try:
        dropped = [key for key in _of_another_type(client, namespace, queue) if client.delete(key)]
        if dropped:
            client.delete(f"{namespace}:{queue}", f"{namespace}:{queue}.msgs")
    except (RedisError, OSError):
        return False
    for key in dropped:
        telemetry.count(Metric.POISON, {})
        fingerprint = hashlib.sha256(key).hexdigest()[:FINGERPRINT_DIGITS]
        logs.warning(Log.POISON, fingerprint=fingerprint, bytes=len(key))
    return True  # others may have been faster


def _of_another_type(client: Redis, namespace: str, queue: str) -> list[bytes]:
    types = {
        f"{namespace}:{queue}".encode(): b"list",
        f"{namespace}:{queue}.msgs".encode(): b"hash",
        f"{namespace}:{queue}.XQ".encode(): b"zset",
        f"{namespace}:{queue}.XQ.msgs".encode(): b"hash",
        f"{namespace}:__heartbeats__".encode(): b"zset",
    }
    # Those of dead workers too: what they had fetched is looked for at every command.
    types |= dict.fromkeys(client.scan_iter(f"{namespace}:__acks__.*", count=SCAN_KEYS), b"set")
    return [key for key, type_ in types.items() if client.type(key) not in (type_, b"none")]
