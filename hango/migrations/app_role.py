"""Whether the role that hango works as is bound by row level security. Changes nothing."""

from __future__ import annotations

import psycopg

from hango.errors import Conflict, Unavailable

# A superuser and BYPASSRLS see every tenant; an owner, or who may become one, can switch the policies off.
_QUESTION = """
select current_user::text, rolsuper or rolbypassrls, exists (
  select from pg_class
  where relnamespace = current_schema()::regnamespace
  and relkind in ('r', 'p')
  and pg_has_role(current_user, relowner, 'member')
)
from pg_roles
where rolname = current_user
"""


def require_bound(dsn: str) -> None:
    """Raises Conflict for a role that could see the rows of every tenant, Unavailable when nobody answers."""
    failure: Unavailable
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="hango") as connection:
            found = connection.execute(_QUESTION).fetchone()
    except psycopg.Error:
        failure = Unavailable("The database cannot be reached: check HANGO_DATABASE_URL and that it is up.")
    else:
        assert found is not None, "the current role exists"
        name, sees_all, owns = found
        if sees_all or owns:
            what = "is a superuser or has BYPASSRLS" if sees_all else "owns tables"
            raise Conflict(
                f"The role {name} of HANGO_DATABASE_URL {what}, so row level security would not hold for it: connect as"
                " hango_app, and name the owner in HANGO_MIGRATE_DATABASE_URL."
            )
        return
    raise failure
