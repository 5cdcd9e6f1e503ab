"""`hango sessions`: the sessions that the key may read."""

from __future__ import annotations

from hango.cli import listing
from hango.cli.listing import AsJson, Limit, Search
from hango.cli.own_command import own_command


def sessions(*, q: Search = None, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List sessions, the latest first.

    Example: hango sessions --q bolts
    """
    listing.show(
        listing.Listed(
            path="/v1/sessions",
            command="sessions",
            columns=("id", "messages", "tokens", "created_at", "title"),
            none=f"no sessions. `{own_command()} import FILE` makes one.",
        ),
        q=q,
        limit=limit,
        as_json=as_json,
    )
