"""`hango agents`: the agents that the key may read."""

from __future__ import annotations

from hango.cli import listing
from hango.cli.listing import AsJson, Limit, Search
from hango.cli.own_command import own_command


def agents(*, q: Search = None, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List agents, the latest first.

    Example: hango agents --q stock
    """
    listing.show(
        listing.Listed(
            path="/v1/agents",
            command="agents",
            columns=("id", "model", "updated_at", "name"),
            none=f"no agents. `{own_command()} import FILE` makes one.",
        ),
        q=q,
        limit=limit,
        as_json=as_json,
    )
