"""All that a database holds of a tenant, as its superuser sees it."""

from __future__ import annotations

from uuid import UUID

import psycopg
from psycopg import sql

from tests.conftest import Database


def everything(database: Database, tenant_id: UUID) -> dict[str, list[str]]:
    """Every row of a tenant, as text."""
    with psycopg.connect(database.superuser_dsn) as conn:
        found: dict[str, list[str]] = {}
        for table in tenant_tables(conn):
            column = "id" if table == "tenants" else "tenant_id"
            query = sql.SQL("select t::text from {} t where {} = %s order by 1")
            named = query.format(sql.Identifier(table), sql.Identifier(column))
            found[table] = [row for (row,) in conn.execute(named, (tenant_id,)).fetchall()]
    return found


def tenant_tables(conn: psycopg.Connection) -> list[str]:
    rows = conn.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        " and relname <> 'schema_migrations' order by relname"
    ).fetchall()
    return [name for (name,) in rows]
