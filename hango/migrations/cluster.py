"""What a superuser prepares once in a cluster of ours: the roles, and a database of an ordinary owner.

A cluster of somebody else's is prepared by whoever runs it; docs/configuration.md has the statements.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

OWNER = "hango_owner"  # owns the tables and migrates
APP = "hango_app"  # what the API connects as; owns nothing
SYSTEM = "hango_system"  # what the app role becomes for the few queries without a tenant

ROLES = {
    OWNER: "login nosuperuser nocreatedb nocreaterole nobypassrls",
    APP: "login noinherit nosuperuser nocreatedb nocreaterole nobypassrls",
    SYSTEM: "nologin nosuperuser nocreatedb nocreaterole nobypassrls",
}


def prepare(superuser_url: str, database: str) -> None:
    """Afterwards the roles are there and the owner has the database. What was there is left as it is."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        found = connection.execute("select rolname from pg_roles where rolname = any(%s)", [list(ROLES)])
        missing = ROLES.keys() - {row[0] for row in found}
        for role, attributes in ROLES.items():
            if role in missing:
                made = sql.SQL("create role {} {}").format(sql.Identifier(role), sql.SQL(attributes))
                connection.execute(made)
        if missing:
            # To be taken on by `set role` alone: without it the app role sees nothing across tenants.
            connection.execute("grant hango_system to hango_app with inherit false, set true")
        there = connection.execute("select 1 from pg_database where datname = %s", [database]).fetchone()
        if there is None:
            names = sql.Identifier(database), sql.Identifier(OWNER)
            connection.execute(sql.SQL("create database {} owner {}").format(*names))
