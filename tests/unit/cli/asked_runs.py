"""Literal replies about runs, their messages and their calls for tests of the command line, as the API gives them."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.asked_tries import CREATED, ENDED, MODEL, STARTED, usage
from tests.unit.cli.snapshots import AGENT, SESSION

RUN = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5d01"
PREVIEW = "0199a3f2-7c1e-7aa0-8d5e-0d5a5a5a5e01"


def waiting(status: str = "queued", **more: Any) -> dict[str, Any]:
    """A run that has not ended."""
    return {
        "id": RUN,
        "session_id": SESSION,
        "status": status,
        "turns": 0,
        "model": MODEL,
        "overrides": 0,
        "stop_reason": None,
        "error": None,
        "usage": None,
        "attempts": 0,
        "created_at": CREATED,
        "started_at": None,
        "finished_at": None,
        **more,
    }


def ended(status: str = "succeeded", **more: Any) -> dict[str, Any]:
    times = {"started_at": STARTED, "finished_at": ENDED, "attempts": 1}
    return waiting(status, **{**times, "turns": 2, "stop_reason": "end_turn", "usage": usage(), **more})


def failed(status: str, code: str, message: str, **more: Any) -> dict[str, Any]:
    return ended(status, error={"code": code, "message": message}, stop_reason=None, **more)


def message(seq: int, role: str, *blocks: dict[str, Any], run_id: str | None = RUN) -> dict[str, Any]:
    return {
        "seq": seq,
        "role": role,
        "content": list(blocks),
        "run_id": run_id,
        "model": None,
        "created_at": CREATED,
    }


def result(call: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def session(messages: int, **more: Any) -> dict[str, Any]:
    return {
        "id": SESSION,
        "agent_id": AGENT,
        "title": "Bolts",
        "messages": messages,
        "tokens": 100,
        "summary": None,
        "last_run": None,
        "created_by": AGENT,
        "created_at": CREATED,
        **more,
    }


def call(n: int, **more: Any) -> dict[str, Any]:
    """A model call of a run."""
    return {
        "n": n,
        "purpose": "run",
        "model": MODEL,
        "request_sha256": "0" * 64,
        "exact": True,
        "overrides": 0,
        "excluded_tokens": 0,
        "usage": usage(),
        "stop_reason": "tool_use",
        "error": None,
        "created_at": CREATED,
        "ended_at": ENDED,
        **more,
    }


def preview(status: str = "succeeded", **more: Any) -> dict[str, Any]:
    """The preview of a summary."""
    return {
        "id": PREVIEW,
        "status": status,
        "text": "Forty bolts.",
        "through_seq": 42,
        "missing": [],
        "usage": usage(),
        "error": None,
        **more,
    }
