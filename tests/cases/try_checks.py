"""Each key of a case with a try as one check of its outcome, and what holds of every try."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.cases.checks import CHECKS, always, compare
from tests.cases.try_outcome import TryOutcome
from tests.cases.try_world import ENDED
from tests.faults.canaries import Search

# The words of the inputs and hango's own: status, and the code of the error.
JOB_FINAL: Mapping[str, list[tuple[str, str | None]]] = {
    "done": [("succeeded", None)],
    "failed: interrupted": [("lost", "worker_lost")],
    "failed: timeout": [("timed_out", "timeout")],
    "failed: overloaded": [("failed", "provider_overloaded")],
}
ANY_END = "failed: unknown job"


def check(outcome: TryOutcome, then: Mapping[str, Any]) -> None:
    """Raise AssertionError where the outcome is not as `then` says. A key that nobody knows is a failure."""
    always_of_a_try(outcome)
    compare(outcome, then, TRY_CHECKS)


def always_of_a_try(outcome: TryOutcome) -> None:
    """A refused one calls nobody. An accepted one ends, sends what a preview shows, is billed once if it was called,
    has its two audit rows, and leaves the session as it was."""
    assert outcome.reply is not None
    assert outcome.reply.status_code < 500, outcome.body
    if outcome.ended is None:
        assert outcome.calls == []
        return
    assert outcome.ended["status"] in ENDED
    if outcome.accepted:
        always(outcome)
    assert outcome.session == outcome.before
    assert outcome.stored == outcome.stored_before
    assert {call.body for call in outcome.calls} <= {outcome.preview_body}
    parts = [part["id"] for part in outcome.parts if part["sent"]]
    assert outcome.ended["sent"] == parts
    _is_accounted_for(outcome)


def _is_accounted_for(outcome: TryOutcome) -> None:
    records = [one for one in outcome.usage_records() if str(one["try_id"]) == outcome.try_ids[0]]
    assert len(records) <= 1
    assert bool(records) is (outcome.ended is not None and outcome.ended["usage"] is not None)
    for one in records:
        assert (one["purpose"], one["run_id"]) == ("context_try", None)
    tenant = outcome.person.send(outcome.server, "GET", "/v1/me").raise_for_status().json()["tenant"]
    spent = tenant["quota_used"] + tenant["quota_reserved"]
    assert tenant["quota_tokens"] is None or spent <= tenant["quota_tokens"]
    assert [row["action"] for row in outcome.audit_rows() if row["target_id"] == outcome.try_ids[0]] == [
        "context.try",
        "context.try_finished",
    ]


def _job_final(outcome: TryOutcome, wanted: str) -> None:
    _job_final_any(outcome, [wanted])


def _job_final_any(outcome: TryOutcome, wanted: list[str]) -> None:
    ends = [end for word in wanted for end in JOB_FINAL.get(word, [])]
    assert outcome.status in ends or ANY_END in wanted, outcome.status


def _sent_tools(outcome: TryOutcome, wanted: list[str]) -> None:
    tools = outcome.wire["tools"]
    assert [tool["function"]["name"] if "function" in tool else tool["name"] for tool in tools] == wanted


def _wire_text(outcome: TryOutcome, wanted: dict[str, str]) -> None:
    """The texts of these messages, each to the letter, in their order."""
    texts = ["".join(block.get("text", "") for block in blocks) for _, blocks in outcome.wire_messages]
    assert texts == list(wanted.values()), texts


def _usage_records_max(outcome: TryOutcome, wanted: int) -> None:
    assert len(outcome.usage_records()) <= wanted


def _jobs(outcome: TryOutcome, wanted: int) -> None:
    assert outcome.made is not None
    assert len(outcome.at.rows("select from tries where session_id = %s", outcome.made.session_id)) == wanted


def _same_job_id(outcome: TryOutcome, wanted: bool) -> None:
    assert wanted is (len(outcome.try_ids) > 1 and len(set(outcome.try_ids)) == 1), outcome.try_ids


def _worker_free(outcome: TryOutcome, wanted: bool) -> None:
    assert outcome.worker_answers() is wanted


def _absent(outcome: TryOutcome, wanted: dict[str, list[str]]) -> None:
    """In no place that is for no content; the one that is for it has it."""
    words = {word: word for texts in wanted.values() for word in texts}
    search, (try_id, *_) = Search(words), outcome.try_ids
    places = {
        "audit": json.dumps(outcome.audit_rows()).encode(),
        "spans and metrics": outcome.at.exported(try_id),
        "broker": outcome.at.of_redis(),
        **{one.name: one.read_bytes() for one in outcome.at.logs()},
    }
    assert [(name, search.found(text)) for name, text in places.items() if search.found(text)] == []
    assert {one.name for one in outcome.at.receiver.counters}
    assert search.found(outcome.body + json.dumps(outcome.calls[-1].json).encode())


def _audit_has(outcome: TryOutcome, wanted: list[str]) -> None:
    rows = json.dumps(outcome.audit_rows())
    assert [word for word in wanted if word not in rows] == [], rows


TRY_CHECKS: Mapping[str, Callable[[TryOutcome, Any], None]] = {
    **CHECKS,
    "job_final": _job_final,
    "job_final_any": _job_final_any,
    "sent_tools": _sent_tools,
    "wire_text": _wire_text,
    "usage_records_max": _usage_records_max,
    "jobs": _jobs,
    "same_job_id": _same_job_id,
    "worker_free_after": _worker_free,
    "absent_in": _absent,
    "audit_has": _audit_has,
}
