"""What a worker refuses to start with: settings that would lose tries, or open the queue to the network."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qs, urlsplit

from hango.config import Settings, WrongSetting

# A worker says three times a lease that it lives; more often than this it would do little else.
SHORTEST_LEASE_SECONDS: Final = 0.3


def check(settings: Settings) -> None:
    """Raises WrongSetting, which names the variable and says what to write."""
    if settings.context_try_lease < SHORTEST_LEASE_SECONDS:
        raise WrongSetting(
            f"HANGO_CONTEXT_TRY_LEASE is {settings.context_try_lease:g}s, and a worker has to say in it three times"
            " that it lives: give it 1s or more."
        )
    if settings.redis_url is not None and is_open(settings.redis_url.reveal()):
        raise WrongSetting(
            "HANGO_REDIS_URL names a Redis on another machine without a password, so that anybody there could ring or"
            " hold up the queue: set one in Redis and write redis://:PASSWORD@host."
        )


def is_open(redis_url: str) -> bool:
    """Whether it is reached over a network without a password. A unix socket has the file's rights."""
    parts = urlsplit(redis_url)
    if parts.scheme == "unix" or parts.password or parse_qs(parts.query).get("password"):
        return False
    host = parts.hostname or "localhost"
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"
