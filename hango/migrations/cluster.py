"""What a superuser prepares once in a cluster of ours: the roles, and a database of an ordinary owner.

A cluster of somebody else's is prepared by whoever runs it; docs/configuration.md has the statements.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from hango.migrations import roles
from hango.migrations.roles import APP

# Owns the tables and migrates. No superuser: row level security does not bind one, and would hide mistakes.
OWNER = "hango_owner"

__all__ = ["APP", "OWNER", "prepare"]


def prepare(superuser_url: str, database: str) -> None:
    """Afterwards the roles are there and the owner has the database. What was there is left as it is."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        roles.ensure(connection)
        if not _there(connection, "select from pg_roles where rolname = %s", OWNER):
            connection.execute(sql.SQL("create role {} login").format(sql.Identifier(OWNER)))
        if not _there(connection, "select from pg_database where datname = %s", database):
            names = sql.Identifier(database), sql.Identifier(OWNER)
            connection.execute(sql.SQL("create database {} owner {}").format(*names))


def _there(connection: psycopg.Connection, question: str, name: str) -> bool:
    return connection.execute(question.encode(), [name]).fetchone() is not None
