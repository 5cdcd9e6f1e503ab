"""The database and the Redis that a command works on: given by address, or embedded in the home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from hango.cli.embedded.postgres import EmbeddedPostgres
from hango.cli.embedded.service import EmbeddedService
from hango.cli.embedded.valkey import EmbeddedValkey
from hango.config import Settings, WrongSetting
from hango.config.values import SecretUrl
from hango.migrations import cluster

DATABASE = "hango"


@dataclass(frozen=True, slots=True)
class Services:
    """Settings that name a database and a Redis, and the embedded services behind them."""

    settings: Settings
    owner_url: SecretUrl  # of the role that owns the tables
    embedded: tuple[EmbeddedService, ...]


@contextmanager
def database(settings: Settings) -> Iterator[Services]:
    """Settings that name a database: an embedded one is shared with `hango up`, or started for the block."""
    with ExitStack() as ends:
        yield _with_database(settings, ends, share=True)


@contextmanager
def owner_url(settings: Settings) -> Iterator[str]:
    """The address that migrates: the owner's, where it is given no other one is needed."""
    if settings.migrate_database_url is not None:
        yield settings.migrate_database_url.reveal()
        return
    with database(settings) as services:
        yield services.owner_url.reveal()


@contextmanager
def all_services(settings: Settings, *, share: bool, fresh: bool = False) -> Iterator[Services]:
    """Settings that name both. What is started here ends with the block; `fresh` throws away what it held."""
    with ExitStack() as ends:
        first = _with_database(settings, ends, share=share, fresh=fresh)
        yield _with_redis(first, ends, share=share, fresh=fresh)


def _with_database(settings: Settings, ends: ExitStack, *, share: bool, fresh: bool = False) -> Services:
    if settings.database_url is not None:
        return Services(settings, settings.migrate_database_url or settings.database_url, ())
    if settings.migrate_database_url is not None:
        raise WrongSetting("HANGO_MIGRATE_DATABASE_URL is set and HANGO_DATABASE_URL is not: set both, or neither.")
    postgres = EmbeddedPostgres(settings.home, bin_dir=settings.pg_bin)
    ends.callback(postgres.stop)
    postgres.start(share=share, fresh=fresh)
    cluster.prepare(postgres.url, DATABASE)
    app_url, owner_url = (SecretUrl(postgres.url_of(role, DATABASE)) for role in (cluster.APP, cluster.OWNER))
    return Services(replace(settings, database_url=app_url), owner_url, (postgres,))


def _with_redis(found: Services, ends: ExitStack, *, share: bool, fresh: bool) -> Services:
    if found.settings.redis_url is not None:
        return found
    valkey = EmbeddedValkey(found.settings.home)
    ends.callback(valkey.stop)
    valkey.start(share=share, fresh=fresh)
    named = replace(found.settings, redis_url=SecretUrl(valkey.url))
    return replace(found, settings=named, embedded=(*found.embedded, valkey))
