"""Literal replies about tries and batches for tests of the command line, as the API gives them."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.snapshots import SESSION

TRY = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5b01"
BATCH = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5c01"
CREATED = "2026-11-30T10:00:00.000000Z"
STARTED = "2026-11-30T10:00:01.000000Z"
ENDED = "2026-11-30T10:00:04.400000Z"
MODEL = "anthropic/claude-sonnet-4-5"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


def usage(**more: Any) -> dict[str, Any]:
    return {
        "input_tokens": 7942,
        "output_tokens": 11,
        "cache_read_tokens": 31040,
        "cache_write_tokens": 0,
        "cost_usd": 0.0131,
        "estimated": False,
        **more,
    }


def waiting(status: str = "queued", **more: Any) -> dict[str, Any]:
    """A try that has not ended."""
    return {
        "id": TRY,
        "session_id": SESSION,
        "batch_id": None,
        "variant": None,
        "label": None,
        "status": status,
        "request": {"exclude": [], "include": [], "replace": {}, "message": None, "until": None, "model": MODEL},
        "sent": ["system:agent", "message:43"],
        "excluded": [],
        "tokens_before": 41210,
        "tokens_after": 41210,
        "answer": None,
        "stop_reason": None,
        "usage": None,
        "error": None,
        "attempts": 0,
        "purged": False,
        "created_at": CREATED,
        "started_at": None,
        "finished_at": None,
        **more,
    }


def answered(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return waiting(
        "succeeded",
        **{
            "answer": {"role": "assistant", "content": list(blocks)},
            "stop_reason": "end_turn",
            "usage": usage(),
            "attempts": 1,
            "started_at": STARTED,
            "finished_at": ENDED,
            **more,
        },
    )


def failed(status: str, code: str, message: str, **more: Any) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return waiting(status, error=error, **{"started_at": STARTED, "finished_at": ENDED, **more})


def batch(tries: list[dict[str, Any]], labels: list[str], **more: Any) -> dict[str, Any]:
    """A batch of these tries, each of which names its variant."""
    counts: dict[str, int] = {}
    for one in tries:
        counts[one["status"]] = counts.get(one["status"], 0) + 1
    variants: list[dict[str, Any]] = [
        {
            "label": label,
            "counts": {},
            "usage": None,
            "tries": [one["id"] for one in tries if one["variant"] == at],
        }
        for at, label in enumerate(labels)
    ]
    done = not {"queued", "running"} & counts.keys()
    return {
        "id": BATCH,
        "session_id": SESSION,
        "label": None,
        "done": done,
        "counts": counts,
        "variants": variants,
        "created_at": CREATED,
        "finished_at": ENDED if done else None,
        **more,
    }
