"""Settings: every variable read once, wrong values refused by name, secrets never shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from hango import config
from hango.config import Secret, SecretUrl, Settings, Source, WrongSetting, dotenv

CANARY = "hunter2canary"
NO_DURATION = ", which is no duration: write it like 120s, 2m or 1h, more than 0."


def test_every_variable_of_the_settings_is_a_field() -> None:
    """The table lists every setting; nothing is read beside it."""
    names = [row.name for row in config.table()]

    assert names == [
        "HANGO_HOME",
        "HANGO_HOST",
        "HANGO_PORT",
        "HANGO_DATABASE_URL",
        "HANGO_MIGRATE_DATABASE_URL",
        "HANGO_PG_BIN",
        "HANGO_REDIS_URL",
        "HANGO_API_URL",
        "HANGO_API_KEY",
        "HANGO_ANTHROPIC_API_KEY",
        "HANGO_ANTHROPIC_BASE_URL",
        "HANGO_OPENAI_API_KEY",
        "HANGO_OPENAI_BASE_URL",
        "HANGO_ALLOW_HTTP_PROVIDERS",
        "HANGO_MODELS",
        "HANGO_CONTEXT_TRY_TIMEOUT",
        "HANGO_CONTEXT_TRY_QUEUE_TTL",
        "HANGO_CONTEXT_TRY_BATCH_QUEUE_TTL",
        "HANGO_CONTEXT_TRY_LEASE",
        "HANGO_CONTEXT_TRY_RECONCILE",
        "HANGO_CONTEXT_TRY_TENANT_RUNNING",
        "HANGO_CONTEXT_TRY_TENANT_OUTSTANDING",
        "HANGO_CONTEXT_TRY_MAX_RESPONSE",
        "HANGO_CONTEXT_TRY_RETENTION",
        "HANGO_BEFORE_RUN_MAX",
        "HANGO_IMPORT_MAX",
        "HANGO_RUN_TIMEOUT",
        "HANGO_RUN_MAX_TURNS",
        "HANGO_RUN_MAX_TOKENS",
        "HANGO_WORKER_THREADS",
        "HANGO_LONG_WAIT_MAX",
        "HANGO_OTLP_ENDPOINT",
        "HANGO_OTLP_HEADERS",
        "HANGO_LOG_LEVEL",
        "HANGO_LOG_FORMAT",
    ]


def test_defaults_are_those_of_the_table(tmp_path: Path) -> None:
    """Nothing has to be set; durations are seconds and sizes are bytes."""
    made = Settings.from_env({"HANGO_HOME": str(tmp_path), "HANGO_LOG_FORMAT": "json"})

    assert {one.name: getattr(made, one.name) for one in fields(made)} == {
        "home": tmp_path,
        "host": "127.0.0.1",
        "port": 8787,
        "database_url": None,
        "migrate_database_url": None,
        "pg_bin": None,
        "redis_url": None,
        "api_url": None,
        "api_key": None,
        "anthropic_api_key": None,
        "anthropic_base_url": "https://api.anthropic.com",
        "openai_api_key": None,
        "openai_base_url": "https://api.openai.com/v1",
        "allow_http_providers": False,
        "models": None,
        "context_try_timeout": 120.0,
        "context_try_queue_ttl": 60.0,
        "context_try_batch_queue_ttl": 3600.0,
        "context_try_lease": 30.0,
        "context_try_reconcile": 5.0,
        "context_try_tenant_running": 16,
        "context_try_tenant_outstanding": 2000,
        "context_try_max_response": 4 * 1024 * 1024,
        "context_try_retention": 86400.0,
        "before_run_max": 5.0,
        "import_max": 512 * 1024 * 1024,
        "run_timeout": 1800.0,
        "run_max_turns": 50,
        "run_max_tokens": 5_000_000,
        "worker_threads": 64,
        "long_wait_max": 60.0,
        "otlp_endpoint": None,
        "otlp_headers": (),
        "log_level": config.LogLevel.INFO,
        "log_format": config.LogFormat.JSON,
        "origins": {"home": "environment", "log_format": "environment"},
    }


@pytest.mark.parametrize(
    ("written", "seconds"), [("120s", 120), ("2m", 120), ("1h", 3600), ("7", 7), ("0.5", 0.5), ("1.5 m", 90)]
)
def test_a_duration_takes_seconds_minutes_hours_or_plain_seconds(written: str, seconds: float) -> None:
    """Durations take `120s`, `2m`, `1h` or plain seconds."""
    assert Settings.from_env({"HANGO_LONG_WAIT_MAX": written}).long_wait_max == seconds


@pytest.mark.parametrize(
    ("written", "size"), [("4MiB", 4 << 20), ("512 KiB", 512 << 10), ("1GiB", 1 << 30), ("17", 17)]
)
def test_a_size_takes_binary_units_or_plain_bytes(written: str, size: int) -> None:
    """Sizes take `4MiB` and the like, or bytes."""
    assert Settings.from_env({"HANGO_IMPORT_MAX": written}).import_max == size


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("PORT", "65536", "HANGO_PORT is '65536': give a whole number from 0 to 65535."),
        ("PORT", "٨٧", "HANGO_PORT is '٨٧': give a whole number from 0 to 65535."),
        (
            "CONTEXT_TRY_TIMEOUT",
            "soon",
            "HANGO_CONTEXT_TRY_TIMEOUT is 'soon'" + NO_DURATION,
        ),
        (
            "CONTEXT_TRY_TIMEOUT",
            "0",
            "HANGO_CONTEXT_TRY_TIMEOUT is '0'" + NO_DURATION,
        ),
        (
            "IMPORT_MAX",
            "4MB",
            "HANGO_IMPORT_MAX is '4MB', which is no size: write it like 4MiB, 512KiB or a number of bytes.",
        ),
        ("ALLOW_HTTP_PROVIDERS", "maybe", "HANGO_ALLOW_HTTP_PROVIDERS is 'maybe': write true or false."),
        ("LOG_LEVEL", "loud", "HANGO_LOG_LEVEL is 'loud': write one of debug, info, warning, error."),
        (
            "MODELS",
            "/nowhere/models.toml",
            (
                "HANGO_MODELS is '/nowhere/models.toml', and there is no such file: "
                "give the path of one, or leave it out."
            ),
        ),
        (
            "PG_BIN",
            "/nowhere",
            "HANGO_PG_BIN is '/nowhere', which holds no initdb: give PostgreSQL's bin folder.",
        ),
        (
            "DATABASE_URL",
            "mysql://a:b@c/d",
            (
                "HANGO_DATABASE_URL is no address that can be used here: "
                "write one that starts with postgresql:// or postgres://."
            ),
        ),
        (
            "REDIS_URL",
            "localhost:6379",
            (
                "HANGO_REDIS_URL is no address that can be used here: "
                "write one that starts with redis:// or rediss:// or unix://."
            ),
        ),
        (
            "OPENAI_BASE_URL",
            "https://user:secret@models.example/v1",
            (
                "HANGO_OPENAI_BASE_URL has to be scheme, host and path alone: "
                "take out account, password, query and fragment."
            ),
        ),
        (
            "OTLP_HEADERS",
            "token",
            ("HANGO_OTLP_HEADERS is no list of headers: write name=value, name=value, with % for special characters."),
        ),
    ],
)
def test_a_wrong_value_names_its_variable_and_the_mend(name: str, written: str, said: str) -> None:
    """A wrong value stops the process and names itself."""
    with pytest.raises(WrongSetting) as refused:
        Settings.from_env({f"HANGO_{name}": written})

    assert (str(refused.value), refused.value.closed_code) == (said, "wrong_setting")


@pytest.mark.parametrize(
    "address",
    ["https://models.example/v1", "http://127.0.0.1:8080/v1", "http://localhost:1", "http://[::1]:8080/v1"],
)
def test_plain_http_is_taken_for_this_machine(address: str) -> None:
    """Plain http goes to loopback only."""
    assert Settings.from_env({"HANGO_OPENAI_BASE_URL": f"{address}/"}).openai_base_url == address


@pytest.mark.parametrize("name", ["OPENAI", "ANTHROPIC"])
@pytest.mark.parametrize(
    "address",
    ["http://models.example/v1", "http://127.0.0.1.example", "http://10.0.0.7:8000", "http://[::2]/"],
)
def test_plain_http_abroad_has_to_be_allowed(name: str, address: str) -> None:
    """Plain http only to loopback unless HANGO_ALLOW_HTTP_PROVIDERS."""
    env = {f"HANGO_{name}_BASE_URL": address}

    with pytest.raises(WrongSetting, match=f"^HANGO_{name}_BASE_URL is plain http to another machine: "):
        Settings.from_env(env)

    allowed = Settings.from_env(env | {"HANGO_ALLOW_HTTP_PROVIDERS": "true"})
    assert getattr(allowed, f"{name.lower()}_base_url") == address.rstrip("/")


def secrets() -> Mapping[str, str]:
    return {
        "HANGO_DATABASE_URL": f"postgresql://app:{CANARY}@db.example:5432/hango?password={CANARY}",
        "HANGO_MIGRATE_DATABASE_URL": f"postgres:///hango?password={CANARY}",
        "HANGO_REDIS_URL": f"rediss://:{CANARY}@cache.example/0",
        "HANGO_API_KEY": CANARY,
        "HANGO_ANTHROPIC_API_KEY": CANARY,
        "HANGO_OPENAI_API_KEY": CANARY,
        "HANGO_OTLP_HEADERS": f"authorization=Bearer%20{CANARY}, x-scope=a",
    }


def test_no_secret_shows_itself() -> None:
    """Secrets are `***` in every form but reveal()."""
    made = Settings.from_env(secrets())

    shown = "\n".join([repr(made), str(made), f"{made.api_key} {made.api_key!r}", repr(made.sources())])

    assert CANARY not in shown
    assert made.api_key == Secret(CANARY)
    assert made.otlp_headers == (("authorization", Secret(f"Bearer {CANARY}")), ("x-scope", Secret("a")))
    assert made.database_url is not None
    assert made.database_url.reveal() == secrets()["HANGO_DATABASE_URL"]
    assert str(made.database_url) == "postgresql://***@db.example:5432/hango"


@pytest.mark.parametrize("name", sorted(secrets()))
def test_a_refused_secret_is_not_quoted(name: str) -> None:
    """The sentence about a wrong secret does not show it."""
    wrong = f"\x7f {CANARY}://{CANARY}:99999999@{CANARY}\n{CANARY}"
    if name.endswith("_KEY"):
        assert str(getattr(Settings.from_env({name: wrong}), name[6:].lower())) == "***"
        return

    with pytest.raises(WrongSetting) as refused:
        Settings.from_env({name: wrong})

    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_sources_say_where_each_value_came_from() -> None:
    """`hango config` prints what is in force, secrets as `***`, and where each value came from."""
    made = Settings.from_env(
        {"HANGO_PORT": "0", "HANGO_HOST": " "}, dotenv={"HANGO_PORT": "1", "HANGO_RUN_TIMEOUT": "90"}
    )

    shown = {one.name: one for one in made.sources()}

    assert shown["HANGO_PORT"] == Source("HANGO_PORT", "0", "environment")
    assert shown["HANGO_RUN_TIMEOUT"] == Source("HANGO_RUN_TIMEOUT", "90s", ".env")
    assert shown["HANGO_HOST"] == Source("HANGO_HOST", "127.0.0.1", "default")
    assert shown["HANGO_IMPORT_MAX"] == Source("HANGO_IMPORT_MAX", "512MiB", "default")
    assert shown["HANGO_REDIS_URL"] == Source("HANGO_REDIS_URL", "embedded Valkey 9", "default")
    assert shown["HANGO_OTLP_HEADERS"] == Source("HANGO_OTLP_HEADERS", "none", "default")
    assert [name for name in ("port", "run_timeout", "host") if made.is_set(name)] == ["port", "run_timeout"]


def test_names_that_are_no_setting_are_found() -> None:
    """A misspelt variable can be told to the person."""
    assert config.unknown({"HANGO_PROT": "1", "HANGO_PORT": "2", "PATH": "/bin"}) == ("HANGO_PROT",)


def test_the_home_is_one_folder_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data folder is the platform's, `/var/lib` as root, with eight hex digits of the checkout's path."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    as_root = config.default_home()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/home/some/data")
    as_user = config.default_home()

    assert as_root.parent == Path("/var/lib/hango")
    assert as_user.name == as_root.name
    assert len(as_root.name) == 8
    if sys.platform == "linux":
        assert as_user.parent == Path("/home/some/data/hango")


def test_a_home_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative home is meant from the working folder of the start."""
    monkeypatch.chdir(tmp_path)

    made = Settings.from_env({"HANGO_HOME": "here"})

    assert (made.home, made.up_file) == (tmp_path / "here", tmp_path / "here" / "up.json")


def test_a_secret_url_that_is_no_url_is_masked_too() -> None:
    """Whatever the text, account, password and query are not shown."""
    assert str(SecretUrl(f"postgresql://a:{CANARY}@/db?x={CANARY}#{CANARY}")) == "postgresql://***@/db"


def test_a_dotenv_file_is_read(tmp_path: Path) -> None:
    """`NAME=value` lines, with comments, quotes and `export`; the last one wins."""
    path = tmp_path / ".env"
    path.write_text(
        "\ufeff# where\nHANGO_PORT=1\nexport HANGO_PORT = 2 # two\nHANGO_API_KEY='a # b'\n"
        'HANGO_HOST="::1"\nEMPTY=\n\nURL=postgresql://a:b@c/d\n'
    )

    assert dotenv.read(path) == {
        "HANGO_PORT": "2",
        "HANGO_API_KEY": "a # b",
        "HANGO_HOST": "::1",
        "EMPTY": "",
        "URL": "postgresql://a:b@c/d",
    }
    assert dotenv.read(tmp_path / "nowhere") == {}


def test_a_dotenv_line_that_cannot_be_read_is_named_by_its_number(tmp_path: Path) -> None:
    """The sentence names file and line, and does not show the line: it may hold a key."""
    path = tmp_path / ".env"
    path.write_text(f"HANGO_PORT=1\n{CANARY}\n")

    with pytest.raises(WrongSetting) as refused:
        dotenv.read(path)

    assert str(refused.value) == f"{path} line 2 is no setting: write NAME=value."


def test_importing_the_settings_is_light() -> None:
    """The command line waits for this import: no pydantic, no network library, no platformdirs."""
    heavy = "{'pydantic', 'aiohttp', 'psycopg', 'msgspec', 'opentelemetry', 'platformdirs', 'asyncio', 'rich'}"
    code = f"import sys, hango.config; print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
