"""The rate limit of an API key: GCRA in Redis. Fails open: a Redis that is away refuses nobody."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from hango import logs
from hango.domain import Principal
from hango.errors import RateLimited
from hango.logs import Log

# One key, one number: the time (microseconds) at which the bucket is empty again. The clock is Redis' own.
# KEYS: the key's bucket. ARGV: microseconds a request costs, the burst in requests.
# Replies: allowed 0|1, requests left, microseconds until one request is free.
GCRA = """
local clock = redis.call('time')
local now = clock[1] * 1000000 + clock[2]
local cost, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local empty_at = math.max(tonumber(redis.call('get', KEYS[1]) or now), now)
local then_at = empty_at + cost
local earliest = then_at - cost * burst
if now < earliest then
  return {0, 0, math.ceil(earliest - now)}
end
redis.call('set', KEYS[1], string.format('%.0f', then_at), 'px', math.ceil((then_at - now) / 1000) + 1)
return {1, math.floor((now - earliest) / cost), 0}
"""
MINUTE_US = 60_000_000
# After a failure Redis is left alone for this long, so that a dead one does not slow every request.
PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a key's limit; `limit` requests a minute."""

    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"key";q={self.limit};w=60',
            "RateLimit": f'"key";r={self.remaining};t={self.reset_seconds}',
        }


class Limiter:
    """Takes one request from a key's limit."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._gcra = redis.register_script(GCRA)
        self._pause_until = 0.0

    async def take(self, principal: Principal) -> Allowance | None:
        """None when there is no limit or Redis is away. Raises RateLimited."""
        limit = principal.rate_per_minute
        if limit is None or time.monotonic() < self._pause_until:
            return None
        cost = max(1, MINUTE_US // limit)
        try:
            reply: Any = await self._gcra(keys=[f"hango:rate:{principal.key_id}"], args=[cost, limit])
        except (RedisError, OSError, TimeoutError) as error:
            self._pause_until = time.monotonic() + PAUSE_SECONDS
            logs.warning(Log.REDIS_AWAY, error)
            return None
        allowed, remaining, wait_us = reply
        if not allowed:
            raise OverLimit(Allowance(limit, 0, math.ceil(wait_us / 1_000_000)), wait_us / 1_000_000)
        used = limit - int(remaining)
        return Allowance(limit, int(remaining), math.ceil(used * cost / 1_000_000))

    async def ping(self) -> bool:
        try:
            return bool(await self._redis.ping())
        except (RedisError, OSError, TimeoutError):
            return False

    async def close(self) -> None:
        await self._redis.aclose()


class OverLimit(RateLimited):
    """Too many requests with this API key."""

    def __init__(self, allowance: Allowance, retry_after: float) -> None:
        seconds = max(1, math.ceil(retry_after))
        super().__init__(
            f"This API key may send {allowance.limit} requests a minute. Try again in {seconds} s.",
            retry_after=retry_after,
        )
        self.allowance = allowance
