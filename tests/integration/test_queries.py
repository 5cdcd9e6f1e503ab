"""Every query against the migrated schema, and the rules that each of them keeps."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from hango.store import db
from tests.conftest import Database

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "hango/store/queries").glob("*.sql"))
_HEAD = re.compile(r"^-- name: (\w+) :(?:one|many|exec|execrows)\n", re.MULTILINE)


def written() -> dict[str, tuple[str, str]]:
    """The queries as they are written: name to file and text, its comment included."""
    found: dict[str, tuple[str, str]] = {}
    for path in FILES:
        parts = _HEAD.split(path.read_text())
        assert not parts[0].strip(), f"{path.name} begins with something that is no query"
        found |= {name: (path.name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found


def generated() -> dict[str, str]:
    """The queries as they are sent: name to text."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(db.__path__):
        made = importlib.import_module(f"{db.__name__}.{module.name}")
        found |= {name: getattr(made, name.upper()) for name in made.__all__}
    return found


@pytest.mark.parametrize("name", sorted(generated()))
def test_every_query_is_planned_on_the_migrated_schema(database: Database, name: str) -> None:
    """EXPLAIN with NULL parameters, as the role that runs it: no wrong column, type or table, no missing grant."""
    sql = generated()[name]
    nulls = dict.fromkeys(re.findall(r"%\((\w+)\)s", sql))
    with psycopg.connect(database.app_dsn) as conn:
        if written()[name][0] == "system.sql":
            conn.execute("set local role hango_system")
        plan = conn.execute(f"explain {sql}".encode(), nulls).fetchall()

    assert plan


def test_the_generated_functions_are_those_of_the_queries() -> None:
    """Every query has its function, and no function is left of a query that is gone."""
    assert sorted(generated()) == sorted(written())


def test_the_generated_code_is_fresh() -> None:
    """What is committed is what sqlc makes of the queries."""
    done = subprocess.run([ROOT / "tools/generate_sql", "--check"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(written()))
def test_every_query_names_its_tenant(name: str) -> None:
    """A query names @tenant_id; the escape is an `unscoped` line with its reason, in system.sql alone."""
    file, text = written()[name]
    sql = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    reason = re.search(r"^-- unscoped: \w.{10,}\.$", text, re.MULTILINE)

    assert (reason is not None) == (file == "system.sql")
    assert reason or "@tenant_id" in sql


@pytest.mark.parametrize("name", sorted(written()))
def test_every_query_is_written_as_sql_is_written_here(name: str) -> None:
    """A line of purpose, lower case, columns by name."""
    _, text = written()[name]
    sql = re.sub(r"'[^']*'", "''", re.sub(r"^--.*$", "", text, flags=re.MULTILINE))

    assert re.match(r"-- [A-Z].*\.$", text, re.DOTALL | re.MULTILINE)
    assert sql == sql.lower()
    assert not re.search(r"(select|,|\.)\s*\*", sql)
