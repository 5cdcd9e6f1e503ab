"""The two roles that the product runs as: made when missing and allowed, never dropped, given no password."""

from __future__ import annotations

import psycopg

from hango.errors import HangoError

APP, SYSTEM = "hango_app", "hango_system"

# NOINHERIT: the app holds the system role's rights only after `set role`, never by the way.
_CREATE = {
    APP: b"create role hango_app login noinherit",
    SYSTEM: b"create role hango_system nologin noinherit",
}
_GRANT = b"grant hango_system to hango_app with inherit false, set true"
_TRIES = 20


class RolesMissing(HangoError):
    """The roles hango_app and hango_system are missing and may not be made."""


def ensure(conn: psycopg.Connection) -> None:
    """Make both roles and the grant between them. `conn` is in autocommit.

    Roles belong to the whole server, so migrators of two databases may meet here: whoever comes second finds
    the role made. Raises RolesMissing when a role is missing and the connected role may not make it.
    """
    for role in (APP, SYSTEM):
        if not _exists(conn, role):
            _allowed(conn, _CREATE[role], f"create role {role}", psycopg.errors.DuplicateObject)
    for _ in range(_TRIES):
        if _may_become_system(conn):
            return
        # Two grants of one role at once fail with an internal error (XX000); the next look finds the other's.
        _allowed(conn, _GRANT, f"grant {SYSTEM} to {APP}", psycopg.errors.InternalError_)


def _allowed(conn: psycopg.Connection, statement: bytes, words: str, came_second: type[psycopg.Error]) -> None:
    try:
        conn.execute(statement)
    except (came_second, psycopg.errors.UniqueViolation):
        return
    except psycopg.errors.InsufficientPrivilege:
        pass
    else:
        return
    raise RolesMissing(f"The database role that migrates may not {words}: have an administrator of the server do it.")


def _exists(conn: psycopg.Connection, role: str) -> bool:
    return conn.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is not None


def _may_become_system(conn: psycopg.Connection) -> bool:
    found = conn.execute("select pg_has_role(%s, %s, 'set')", (APP, SYSTEM)).fetchone()
    return found is not None and bool(found[0])
