"""What is said when PostgreSQL fails: its error's code and constraint, never its text, which may hold a
row."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from hango.errors import HangoError, Unavailable

# Classes of errors after which the same statement may well succeed: the connection, the server's resources,
# an operator's stop, a statement's or a lock's time limit, two transactions in each other's way.
_PASSING = ("08", "53", "57", "55P03", "40")


class StatementRefused(HangoError):
    """The database refused a statement."""


def reduced(error: psycopg.Error) -> HangoError:
    """An error without content: Unavailable when it may pass, else StatementRefused.

    The text of `error` is replaced too: it may hang on to what is raised, as its context.
    """
    failure = _reduced(error)
    error.args = (str(failure),)
    return failure


def _reduced(error: psycopg.Error) -> HangoError:
    if isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return Unavailable("The database has no free connection. Try again in a moment.")
    state = error.sqlstate
    if state is None:
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return Unavailable("The database cannot be reached. Try again in a moment.")
        return StatementRefused(f"A value does not fit the database ({type(error).__name__}).")
    if state.startswith(_PASSING):
        return Unavailable(f"The database could not do this now (sqlstate {state}). Try again in a moment.")
    constraint = error.diag.constraint_name
    where = f", constraint {constraint}" if constraint else ""
    return StatementRefused(f"The database refused a statement (sqlstate {state}{where}).")
