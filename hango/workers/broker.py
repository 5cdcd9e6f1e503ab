"""The queue in Redis: a broker whose idle consumer is woken at once, and the doorbell that wakes it.

A message says "look for tries" and no more: what is to be done stands in PostgreSQL. So a message may be lost, doubled
or late, and every failure of Redis here ends as a line in the log.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import dramatiq
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import q_name
from dramatiq.message import Message
from dramatiq.middleware import Middleware
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from hango import logs
from hango.logs import Log
from hango.workers import queue_keys
from hango.workers.encoder import QUEUE, StrictEncoder, doorbell

NAMESPACE: Final = "hango"
# Of a worker: longer than its blocking look at the queue, short enough to notice a Redis that went away in silence.
ANSWER_SECONDS: Final = 2.0
# How long a worker leaves a Redis alone that is away: it is back at work within a second of it.
AWAY_SECONDS: Final = 0.5
# Dramatiq hands back what a dead worker had fetched. At every command, so that it does not take minutes.
MAINTENANCE_ALWAYS: Final = 1_000_000
HEARTBEAT_TIMEOUT_MS: Final = 15_000

# Of a caller that rings: it waits no longer than for a rate limit, and a try waits for the reconciler at most.
RING_ANSWER_SECONDS: Final = 0.5
RING_SECONDS: Final = 2.0
RING_PAUSE_SECONDS: Final = 1.0

AWAY: Final = (RedisError, OSError)


class BlockingConsumer(Consumer):
    """Waits in Redis for the next message, where Dramatiq's own sleeps longer and longer.

    It outlives a Redis that is away. Whatever was handed out is taken off the queue, done or not: it was only a ring.
    """

    def __init__(self, broker: BlockingRedisBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        self._broker = broker
        self._queue = queue_name
        self._prefetch = prefetch
        self._seconds = timeout / 1000
        self._list = f"{broker.namespace}:{queue_name}"
        self._acks = f"{broker.namespace}:__acks__.{broker.broker_id}.{queue_name}"
        self._fetched: list[bytes] = []
        self._out = 0  # handed to the worker's threads
        self._one_less = threading.Condition()
        self._away = False

    def __next__(self) -> MessageProxy | None:
        """The next message, or None after a while: the worker looks then whether it is to end."""
        try:
            if not self._fetched:
                self._fetch()
            self._away = False
        except AWAY as error:
            if queue_keys.mended(self._broker.client, self._broker.namespace, self._queue, error):
                self._fetched.append(_own_ring())  # for what was lost with the key
            else:
                self._rest(error)
        if not self._fetched:
            return None
        with self._one_less:
            self._out += 1
        return MessageProxy(self._read(self._fetched.pop(0)))

    def ack(self, message: MessageProxy) -> None:
        try:
            self._broker.do_ack(self._queue, message.options["redis_message_id"])
        except AWAY:
            pass  # it goes with the strays
        finally:
            with self._one_less:
                self._out -= 1
                self._one_less.notify()

    def nack(self, message: MessageProxy) -> None:
        """Nothing is kept for later: the try is, in PostgreSQL."""
        self.ack(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """For the next worker, at the end of this one."""
        ids = [message.options["redis_message_id"] for message in messages]
        ids += [self._read(body).options["redis_message_id"] for body in self._fetched]
        self._fetched.clear()
        if ids:
            try:
                self._broker.do_requeue(self._queue, *ids)
            except AWAY as error:
                logs.warning(Log.REDIS_AWAY, error)

    def _fetch(self) -> None:
        """Fetch what there is, else wait until there is something. Raises what Redis raises."""
        with self._one_less:
            # All hands full: woken by the first that is free, not by the clock.
            self._one_less.wait_for(lambda: self._out < self._prefetch, self._seconds)
            room, idle = self._prefetch - self._out, not self._out
        if room <= 0:
            return
        bodies: Sequence[bytes | None] = self._broker.do_fetch(self._queue, room)
        self._fetched += filter(None, bodies)
        if not self._fetched and not (idle and self._rings_astray()):
            # Moves the head of the list to the head of the list: a look that blocks and changes nothing.
            seconds: Any = self._seconds  # Redis takes fractions, its client's types do not say so
            self._broker.client.blmove(self._list, self._list, seconds, "LEFT", "LEFT")

    def _rings_astray(self) -> bool:
        """Drop what Redis thinks is in our hands while they are empty; ring once in its place.

        The reply to a fetch was lost, or the one to an ack; or a message lies about its id. Handed back it might come
        for ever.
        """
        astray = self._broker.client.smembers(self._acks)
        for one in astray:
            self._broker.do_ack(self._queue, one)
        if astray:
            self._fetched.append(_own_ring())
        return bool(astray)

    def _read(self, body: bytes) -> Message[Any]:
        # Under the name of the queue it was found in: that consumer has to ack it.
        return Message.decode(body).copy(queue_name=self._queue)

    def _rest(self, error: BaseException) -> None:
        if not self._away:
            logs.warning(Log.REDIS_AWAY, error, process="worker")
        self._away = True
        time.sleep(AWAY_SECONDS)


def _own_ring() -> bytes:
    """A doorbell that stands in no queue."""
    return doorbell().copy(options={"redis_message_id": "astray"}).encode()


class BlockingRedisBroker(RedisBroker):
    """Dramatiq's broker with that consumer. No message is ever delayed, so no queue of delayed ones is looked at."""

    namespace: str
    broker_id: str
    client: Redis

    @property
    def consumer_class(self) -> type[BlockingConsumer]:
        return BlockingConsumer

    def declare_queue(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(q_name(queue_name))
            self.emit_after("declare_queue", queue_name)


def make_broker(
    redis_url: str, middleware: Sequence[Middleware] = (), *, answer_seconds: float = ANSWER_SECONDS
) -> BlockingRedisBroker:
    """A broker for one process; it connects at the first use. Sets the process's encoder to the strict one."""
    dramatiq.set_encoder(StrictEncoder())
    client = Redis.from_url(
        redis_url,
        socket_timeout=answer_seconds,
        socket_connect_timeout=answer_seconds,
        retry=Retry(NoBackoff(), 0),  # a lost reply must not become a second message
    )
    return BlockingRedisBroker(  # type: ignore[no-untyped-call]  # Dramatiq's has no types
        client=client,
        middleware=list(middleware),
        namespace=NAMESPACE,
        maintenance_chance=MAINTENANCE_ALWAYS,
        heartbeat_timeout=HEARTBEAT_TIMEOUT_MS,
    )


class Doorbell:
    """Wakes a worker, as well as that goes: a ring that fails costs the time until the reconciler rings again."""

    def __init__(self, redis_url: str) -> None:
        self._broker = make_broker(redis_url, answer_seconds=RING_ANSWER_SECONDS)
        # One thread: a Redis that hangs is met once, by the first; the others find the pause.
        self._ringer = ThreadPoolExecutor(1, thread_name_prefix="doorbell")
        self._pause_until = 0.0

    async def ring(self, times: int = 1) -> None:
        """To be called after the commit: the worker looks at once. Takes two seconds at most and never raises."""
        if times < 1 or self._pauses():
            return
        try:
            async with asyncio.timeout(RING_SECONDS):
                await asyncio.get_running_loop().run_in_executor(self._ringer, self._ring, times)
        except TimeoutError as error:
            self._pause(error)

    async def close(self) -> None:
        self._ringer.shutdown(wait=False, cancel_futures=True)
        self._broker.client.close()

    def _ring(self, times: int, *, again: bool = False) -> None:
        """On a thread: Dramatiq's way to Redis blocks."""
        if self._pauses():
            return
        try:
            for _ in range(times):
                self._broker.enqueue(doorbell())
        except AWAY as error:
            if not queue_keys.mended(self._broker.client, NAMESPACE, QUEUE, error):
                self._pause(error)
            elif not again:
                self._ring(1, again=True)

    def _pauses(self) -> bool:
        return time.monotonic() < self._pause_until

    def _pause(self, error: BaseException) -> None:
        if not self._pauses():
            logs.warning(Log.REDIS_AWAY, error)
        self._pause_until = time.monotonic() + RING_PAUSE_SECONDS
