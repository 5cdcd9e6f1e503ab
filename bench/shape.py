"""The facts of an inspect that product and reference must share before any time counts."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from bench.contestant import Facts

GROUPS = ("system", "tools", "messages")


def facts(answer: bytes) -> Facts:
    """Of a snapshot's JSON: counts and sums of its parts, its totals, and a hash over every part as it stands."""
    snapshot: dict[str, Any] = json.loads(answer)
    parts = [part for group in GROUPS for part in snapshot[group]]
    return {
        **{group: len(snapshot[group]) for group in GROUPS},
        "sum": sum(part["tokens"] for part in parts),
        "groups": snapshot["groups"],
        "total_before": snapshot["total_before"],
        "total_after": snapshot["total_after"],
        "would_compact": snapshot["would_compact"],
        "parts_sha256": sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(),
    }
