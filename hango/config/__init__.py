"""Settings: every `HANGO_*` variable with its type, default and meaning; read once, at start.

`Settings` is the one table: a field is named like the variable without `HANGO_`, in lower case. How a text is
read is in `values.py`. Nothing else in hango reads the environment. Light to import: commands wait for it.

    settings = Settings.from_env()          the process's environment
    settings.context_try_timeout            120.0: durations are seconds, sizes are bytes
    settings.database_url.reveal()          a secret's text; its str and repr are masked
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from hango.config.values import (
    DATABASE_URL,
    FILE,
    FLAG,
    HEADERS,
    PATH,
    PROGRAMS,
    REDIS_URL,
    SECONDS,
    SECRET,
    SIZE,
    TEXT,
    WEB_URL,
    BadValue,
    LogFormat,
    LogLevel,
    Reader,
    Secret,
    SecretUrl,
    is_plain_http_abroad,
    one_of,
    whole,
)
from hango.errors import HangoError

__all__ = [
    "LogFormat",
    "LogLevel",
    "Row",
    "Secret",
    "SecretUrl",
    "Settings",
    "Source",
    "WrongSetting",
    "table",
    "unknown",
    "variable",
]

PREFIX = "HANGO_"

T = TypeVar("T")


class WrongSetting(HangoError):
    """A setting has a value that cannot be used."""

    code = "wrong_setting"


@dataclass(frozen=True, slots=True)
class Row:
    """One variable as docs/configuration.md shows it."""

    name: str
    takes: str
    default: str
    meaning: str
    secret: bool


@dataclass(frozen=True, slots=True)
class Source:
    """What is in force for one variable, masked, and its origin: `environment`, `.env` or `default`."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Spec:
    reader: Reader[Any]
    default: str
    meaning: str


def setting(reader: Reader[T], default: str, meaning: str) -> T:
    """A variable whose default is written as a person would set it."""
    made: Any = field(default=reader.read(default), metadata={"spec": _Spec(reader, default, meaning)})
    return cast("T", made)


def optional(reader: Reader[T], absent: str, meaning: str) -> T | None:
    """A variable that may be missing; `absent` says what happens then."""
    made: Any = field(default=None, metadata={"spec": _Spec(reader, absent, meaning)})
    return cast("T | None", made)


def depending(reader: Reader[T], default: Callable[[], T], shown: str, meaning: str) -> T:
    """A variable whose default depends on the machine; `shown` says how."""
    made: Any = field(default_factory=default, metadata={"spec": _Spec(reader, shown, meaning)})
    return cast("T", made)


def default_home() -> Path:
    """One folder a checkout, so that two clones do not share their data."""
    checkout = Path(__file__).resolve().parents[2]
    name = hashlib.sha256(os.fsencode(checkout)).hexdigest()[:8]
    if os.geteuid() == 0:
        return Path("/var/lib/hango") / name
    from platformdirs import user_data_path

    return user_data_path("hango", appauthor=False) / name


def default_log_format() -> LogFormat:
    return LogFormat.TEXT if sys.stderr is not None and sys.stderr.isatty() else LogFormat.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is in force. Raises WrongSetting for values that cannot stand together."""

    home: Path = depending(
        PATH,
        default_home,
        "`<data folder>/hango/<8 hex digits of the checkout's path>`; as root the data folder is `/var/lib`",
        "The embedded services and their data. `hango up` writes `up.json` there.",
    )
    host: str = setting(TEXT, "127.0.0.1", "Where the API listens.")
    port: int = setting(
        whole(0, 65535),
        "8787",
        "Where the API listens. 0 takes a free port. `hango up` passes over a taken default.",
    )
    database_url: SecretUrl | None = optional(
        DATABASE_URL,
        "embedded PostgreSQL 18",
        "PostgreSQL 16 or newer, as the app role. No pooler in transaction mode: hango uses LISTEN.",
    )
    migrate_database_url: SecretUrl | None = optional(
        DATABASE_URL,
        "`HANGO_DATABASE_URL`",
        "The same database as the role that owns the tables, for migrations. The app role owns nothing.",
    )
    pg_bin: Path | None = optional(
        PROGRAMS,
        "from the Python package",
        "Another folder with `initdb` and `postgres` for the embedded PostgreSQL.",
    )
    redis_url: SecretUrl | None = optional(REDIS_URL, "embedded Valkey 9", "Redis 7, Valkey 8, or newer.")
    api_url: str | None = optional(WEB_URL, "from `up.json`", "The API that the command line talks to.")
    api_key: Secret | None = optional(SECRET, "from `up.json`", "The API key that the command line sends.")
    anthropic_api_key: Secret | None = optional(SECRET, "none", "The key of provider `anthropic`.")
    anthropic_base_url: str = setting(
        WEB_URL,
        "https://api.anthropic.com",
        "The address of provider `anthropic`. Plain http: only to this machine.",
    )
    openai_api_key: Secret | None = optional(SECRET, "none", "The key of provider `openai`.")
    openai_base_url: str = setting(
        WEB_URL,
        "https://api.openai.com/v1",
        "The address of provider `openai`: any compatible server. Plain http: only to this machine.",
    )
    allow_http_providers: bool = setting(
        FLAG, "false", "Take plain http to other machines too. Keys and content then travel in the clear."
    )
    models: Path | None = optional(
        FILE, "none", "A TOML file whose rows replace or extend the table of models that comes with hango."
    )
    context_try_timeout: float = setting(SECONDS, "120s", "One try's model call, from the first byte to the last.")
    context_try_queue_ttl: float = setting(SECONDS, "60s", "How long a try may wait for a worker.")
    context_try_batch_queue_ttl: float = setting(SECONDS, "1h", "How long a try of a batch may wait for a worker.")
    context_try_lease: float = setting(SECONDS, "30s", "How long a silent worker keeps a try or a run it has claimed.")
    context_try_reconcile: float = setting(SECONDS, "5s", "How often an API process looks for lost tries and runs.")
    context_try_tenant_running: int = setting(
        whole(1, 10_000), "16", "Tries of one tenant that run at once, and so many of its runs beside them."
    )
    context_try_tenant_outstanding: int = setting(whole(1, 1_000_000), "2000", "Tries of one tenant that wait or run.")
    context_try_max_response: int = setting(SIZE, "4MiB", "The largest answer taken from a provider.")
    context_try_retention: float = setting(SECONDS, "24h", "How long a try's texts and answer are kept.")
    before_run_max: float = setting(
        SECONDS, "5s", "How long the loading of memory, skills and overrides may take before a call."
    )
    import_max: int = setting(SIZE, "512MiB", "The largest JSON Lines file an import takes.")
    run_timeout: float = setting(SECONDS, "30m", "How long one run may take.")
    run_max_turns: int = setting(whole(1, 10_000), "50", "Model calls of one run.")
    run_max_tokens: int = setting(whole(1, 10**12), "5000000", "Tokens that the model calls of one run may use.")
    worker_threads: int = setting(whole(1, 1024), "64", "Model calls in flight per worker process.")
    long_wait_max: float = setting(SECONDS, "60s", "The longest wait a request may ask for.")
    otlp_endpoint: str | None = optional(
        WEB_URL, "off", "Where traces and metrics go, as OTLP over HTTP: the base, without `/v1/traces`."
    )
    otlp_headers: tuple[tuple[str, Secret], ...] = setting(HEADERS, "", "Headers for that endpoint.")
    log_level: LogLevel = setting(one_of(LogLevel), "info", "The least level that is logged.")
    log_format: LogFormat = depending(
        one_of(LogFormat), default_log_format, "text on a terminal, else json", "How a log line looks."
    )
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("anthropic_base_url", "openai_base_url"):
            if is_plain_http_abroad(getattr(self, name)) and not self.allow_http_providers:
                raise WrongSetting(
                    f"{variable(name)} is plain http to another machine: use https, "
                    f"or set {PREFIX}ALLOW_HTTP_PROVIDERS=true if that network is yours."
                )

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None, *, dotenv: Mapping[str, str] | None = None) -> Settings:
        """Read every variable; `env` None is the process's own. What stands in both is taken from `env`.

        An empty value counts as not set. Raises WrongSetting at the first wrong one.
        """
        process = os.environ if env is None else env  # noqa: TID251  the one place that reads it
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, spec in _specs().items():
            for origin, given in (("environment", process), (".env", dotenv or {})):
                if written := given.get(variable(name), "").strip():
                    values[name], origins[name] = _read(name, spec, written), origin
                    break
        return cls(**values, origins=origins)

    def is_set(self, name: str) -> bool:
        """Whether somebody chose this field's value; false for a default."""
        return name in self.origins

    def sources(self) -> tuple[Source, ...]:
        """Every variable with its value, secrets masked, and where it came from. For `hango config`."""
        return tuple(
            Source(variable(name), _shown(spec, getattr(self, name)), self.origins.get(name, "default"))
            for name, spec in _specs().items()
        )

    @property
    def up_file(self) -> Path:
        """What `hango up` leaves for the command line and scripts: `{url, api_key, pids}`."""
        return self.home / "up.json"


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def table() -> tuple[Row, ...]:
    """Every variable, in the order of the documentation."""
    return tuple(
        Row(variable(name), spec.reader.takes, spec.default or "none", spec.meaning, spec.reader.secret)
        for name, spec in _specs().items()
    )


def unknown(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Names that look like a setting and are none, in the process's environment when `env` is None."""
    known = {variable(name) for name in _specs()}
    given = os.environ if env is None else env  # noqa: TID251  as in from_env
    return tuple(sorted(name for name in given if name.startswith(PREFIX) and name not in known))


def _specs() -> dict[str, _Spec]:
    return {one.name: one.metadata["spec"] for one in fields(Settings) if "spec" in one.metadata}


def _read(name: str, spec: _Spec, written: str) -> object:
    try:
        return spec.reader.read(written)
    except BadValue as wrong:
        raise WrongSetting(f"{variable(name)} {wrong}") from None


def _shown(spec: _Spec, value: object) -> str:
    return spec.default.replace("`", "") if value is None else spec.reader.show(value) or "none"
