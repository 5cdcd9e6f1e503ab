"""Literal replies of the API for tests of the command line: what a person could meet, and hostile variants."""

from __future__ import annotations

import json
from typing import Any

from hango.cli import replies

SESSION = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5a01"
AGENT = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5a02"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def part(id_: str, preview: str, tokens: int, **more: Any) -> dict[str, Any]:
    kind, _, name = id_.partition(":")
    label = f"#{name} {more['role']}" if kind == "message" else name.removeprefix("memory:") or kind
    return {
        "id": id_,
        "kind": kind,
        "label": label,
        "preview": preview,
        "tokens": tokens,
        "included": True,
        "sent": True,
        "override": "none",
        "cached_prefix": False,
        "paired": False,
        "drifted": False,
        "chars": len(preview),
        **more,
    }


def excluded(id_: str, preview: str, tokens: int, **more: Any) -> dict[str, Any]:
    return part(id_, preview, tokens, included=False, sent=False, **{"override": "exclude", **more})


def snapshot(
    system: list[dict[str, Any]], tools: list[dict[str, Any]], messages: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """Totals are the sums of the parts; `after` leaves out what is not included."""
    groups = {
        name: {
            "before": sum(one.get("tokens_original", one["tokens"]) for one in parts),
            "after": sum(one["tokens"] for one in parts if one["included"]),
        }
        for name, parts in (("system", system), ("tools", tools), ("messages", messages))
    }
    before = sum(one["before"] for one in groups.values())
    after = sum(one["after"] for one in groups.values())
    return {
        "session_id": SESSION,
        "agent_id": AGENT,
        "model": "anthropic/claude-sonnet-4-5",
        "provider": "anthropic",
        "system": system,
        "tools": tools,
        "messages": messages,
        "groups": groups,
        "total_before": before,
        "total_after": after,
        "counted": "estimate",
        "estimate_before": before,
        "estimate_after": after,
        "would_compact": False,
        "compact_at": 170000,
        "window": 200000,
        "problems": [],
        "stale": [],
        "request_sha256": "ab" * 32,
        **more,
    }


def workshop() -> dict[str, Any]:
    """One of everything that a table shows."""
    return snapshot(
        system=[
            part(
                "system:agent", "You keep the stock list of a small workshop. Answer briefly.", 612, cached_prefix=True
            ),
            part("system:filesystem", "Files are below /stock. Use ls before you read.", 388, cached_prefix=True),
            excluded("system:memory:/memories/AGENTS.md", "The owner is away on Mondays.", 1912),
            part(
                "system:skills",
                "Skills: count, order, label",
                640,
                override="replace",
                drifted=True,
                tokens_original=900,
            ),
        ],
        tools=[
            part("tool:read_file", "Reads one file.", 131, cached_prefix=True),
            part("tool:search_everything_in_the_workshop", "Searches all shelves.", 12739, cached_prefix=True),
        ],
        messages=[
            part("summary", "The user had the bolts counted: forty.", 210, role="user"),
            excluded("message:41", 'read_file({"path":"shelf-a"})', 96, role="assistant"),
            excluded("message:42", "shelf-a: 4 boxes, 2 open", 190, role="user", override="none", paired=True),
            part("message:43", f"And the nuts?\n\n  漢字 {FAMILY} e\u0301 \x1b[2J\u202eleft", 12, role="user"),
            part("message:44", "", 0, role="assistant", sent=False),
        ],
        problems=[
            {"part": "message:44", "reason": "empty_message", "message": "The message has no content and is not sent."}
        ],
        stale=[{"part": "tool:old", "action": "exclude", "scope": "agent", "reason": "not_in_context", "stale": True}],
    )


def read(shot: dict[str, Any]) -> replies.Snapshot:
    return replies.read(json.dumps(shot).encode(), replies.Snapshot)
