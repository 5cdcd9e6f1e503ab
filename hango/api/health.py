"""Live and ready: what a load balancer asks."""

from __future__ import annotations

import msgspec

from hango.api.endpoint import PublicCall


class LiveOut(msgspec.Struct, frozen=True):
    status: str


class ReadyOut(msgspec.Struct, frozen=True):
    """Redis away is no reason to send nobody: rate limits pause until it is back."""

    status: str
    database: str
    redis: str


async def show_live(call: PublicCall) -> LiveOut:
    return LiveOut("ok")


async def show_ready(call: PublicCall) -> ReadyOut:
    """Raises Unavailable while PostgreSQL is away."""
    await call.runtime.deps.store.ping()
    redis = "ok" if await call.runtime.limiter.ping() else "away"
    return ReadyOut("ready", "ok", redis)
