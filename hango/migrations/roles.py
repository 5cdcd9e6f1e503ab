"""The two roles that the product runs as: made when missing and allowed, never dropped, given no password."""

from __future__ import annotations

from contextlib import suppress

import psycopg

from hango.errors import HangoError

APP, SYSTEM = "hango_app", "hango_system"

# NOINHERIT: the app holds the system role's rights only after `set role`, never by the way.
_CREATE = {
    APP: b"create role hango_app login noinherit",
    SYSTEM: b"create role hango_system nologin noinherit",
}
_GRANT_TO_APP = b"grant hango_system to hango_app with inherit false, set true"
_GRANT_TO_SELF = b"grant hango_system to current_user with inherit false, set true"
# Whoever comes second to a grant finds it made at the next look; the looks are bounded so that nothing loops for ever.
_LOOKS = 20


class RolesMissing(HangoError):
    """The roles hango_app and hango_system are missing and may not be made."""


def ensure(conn: psycopg.Connection) -> None:
    """Make both roles, and let the app and (where allowed) the connected role become hango_system.

    `conn` is in autocommit. Roles belong to the whole server, so migrators of two databases may meet here:
    whoever comes second finds the role made.
    Raises RolesMissing when a role is missing and the connected role may not make it.
    """
    for role in (APP, SYSTEM):
        if not _exists(conn, role):
            _allowed(conn, _CREATE[role], f"create role {role}", psycopg.errors.DuplicateObject)
    _grant(conn, APP, _GRANT_TO_APP)
    # An operator may run the app as the owner. Where that is not allowed, the app runs as hango_app alone.
    with suppress(RolesMissing):
        _grant(conn, _current_user(conn), _GRANT_TO_SELF)


def _grant(conn: psycopg.Connection, member: str, statement: bytes) -> None:
    for _ in range(_LOOKS):
        if _may_become_system(conn, member):
            return
        # Two grants of one role at once fail with an internal error (XX000).
        _allowed(conn, statement, f"grant {SYSTEM} to {member}", psycopg.errors.InternalError_)


def _allowed(conn: psycopg.Connection, statement: bytes, words: str, came_second: type[psycopg.Error]) -> None:
    try:
        conn.execute(statement)
        return
    except (came_second, psycopg.errors.UniqueViolation):
        return
    except psycopg.errors.InsufficientPrivilege:
        pass
    raise RolesMissing(f"The database role that migrates may not {words}: have an administrator of the server do it.")


def _exists(conn: psycopg.Connection, role: str) -> bool:
    return conn.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is not None


def _may_become_system(conn: psycopg.Connection, member: str) -> bool:
    found = conn.execute("select pg_has_role(%s, %s, 'set')", (member, SYSTEM)).fetchone()
    return found is not None and bool(found[0])


def _current_user(conn: psycopg.Connection) -> str:
    found = conn.execute("select current_user::text").fetchone()
    assert found is not None, "a select without a table returns its row"
    return str(found[0])
