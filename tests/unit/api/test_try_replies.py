"""Replies about tries: closed sets with a sentence each, sums of variants, nothing that was purged."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from hango.api.try_replies import SENTENCES, BatchOut, TryOut
from hango.domain import BaseID, BatchID, SessionID, TryID, UserID
from hango.messages import StopReason, Usage
from hango.tries import Changes, Texts, Try, TryBatch, TryError, TryStatus, TryUsage, VariantSum

ID = UUID(int=7)
MOMENT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
MADE = Try(
    id=TryID(ID),
    session_id=SessionID(ID),
    session_owner=UserID(ID),
    batch_id=None,
    variant=None,
    label=None,
    status=TryStatus.QUEUED,
    base_id=BaseID(ID),
    model="offline/extract",
    changes=Changes(exclude=("message:2",), replace=("message:4",), include=("*",), until=5),
    texts=Texts({"message:4": "Forty."}, "And now?"),
    sent='["system:agent",[1,1],[4,5],"extra"]',
    excluded="[[2,3]]",
    request_sha256="5" * 64,
    tokens_before=60,
    tokens_after=50,
    answer=None,
    said=None,
    stop_reason=None,
    usage=None,
    error=None,
    provider_status=None,
    attempts=0,
    created_at=MOMENT,
    started_at=None,
    finished_at=None,
    purged=False,
)
BILLED = TryUsage(Usage(10, 5), None, estimated=True)
NOTHING = TryUsage(Usage(), 0.0, estimated=False)  # the provider took no call


def shown(made: Try) -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(TryOut.of(made)))
    return read


def test_every_error_has_one_sentence() -> None:
    """The error of a try is a closed code and a sentence for people."""
    assert set(SENTENCES) == set(TryError)
    assert all(sentence.endswith((".", "?")) for sentence in SENTENCES.values())


def test_a_request_is_shown_with_its_texts() -> None:
    """request: ids of excluded and included parts, replacements by part, the extra text, the end, the model."""
    made = shown(MADE)

    assert (made["request"], made["sent"], made["excluded"]) == (
        {
            "exclude": ["message:2"],
            "include": ["*"],
            "replace": {"message:4": "Forty."},
            "message": "And now?",
            "until": 5,
            "model": "offline/extract",
        },
        ["system:agent", "message:1", "message:4", "message:5", "extra"],
        ["message:2", "message:3"],
    )


def test_without_its_texts_a_request_names_its_parts() -> None:
    """In lists and once purged the texts are null; which parts were replaced is still told."""
    listed = shown(replace(MADE, texts=None, sent=None))

    assert (listed["request"]["replace"], listed["request"]["message"], listed["sent"]) == (
        {"message:4": None},
        None,
        None,
    )


def test_an_answer_is_the_text_that_was_kept() -> None:
    """The blocks of an answer keep their digits and what hango does not know."""
    answer = '[{"type":"new","n":1.10,"big":123456789012345678901234567890}]'
    ended = replace(MADE, status=TryStatus.SUCCEEDED, answer=answer, stop_reason=StopReason.TOOL_USE)

    assert f'"answer":{{"role":"assistant","content":{answer}}}'.encode() in msgspec.json.encode(TryOut.of(ended))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"error": TryError.PROVIDER_ERROR}, "The provider failed. Try again later."),
        (
            {"error": TryError.PROVIDER_ERROR, "provider_status": 500},
            "The provider failed. Try again later. It answered with status 500.",
        ),
        (
            {"error": TryError.PROVIDER_REFUSED, "provider_status": 400, "said": "max_tokens is too large"},
            "The provider refused the request. It answered with status 400. It said: max_tokens is too large",
        ),
        *(
            (
                {"error": TryError.PROVIDER_REFUSED, "provider_status": status, "model": "openai/gpt-6", "said": "No."},
                f"The provider refused the request. It answered with status {status}. {way} It said: No.",
            )
            for status, way in (
                (401, "Check HANGO_OPENAI_API_KEY, and whether that key may call this model."),
                (403, "Check HANGO_OPENAI_API_KEY, and whether that key may call this model."),
                (404, "Check the model's name 'gpt-6' and HANGO_OPENAI_BASE_URL."),
            )
        ),
        ({"status": TryStatus.CANCELLED, "error": TryError.CANCELLED}, "The try was cancelled."),
        (
            {"status": TryStatus.CANCELLED, "error": TryError.CANCELLED, "usage": BILLED},
            "The try was cancelled. The call was under way: the provider may charge for it.",
        ),
        ({"status": TryStatus.CANCELLED, "error": TryError.CANCELLED, "usage": NOTHING}, "The try was cancelled."),
    ],
)
def test_an_error_says_what_is_known(fields: dict[str, Any], message: str) -> None:
    """The sentence, the provider's status and words where there are any, and whether a call may be charged."""
    made = shown(replace(MADE, **{"status": TryStatus.FAILED, **fields}))

    assert made["error"] == {"code": fields["error"].value, "message": message}


def test_a_batch_counts_its_variants() -> None:
    """counts by status over all variants, without the empty ones and in the order of the statuses; done: the ended."""
    batch = TryBatch(BatchID(ID), SessionID(ID), UserID(ID), "b", 6, 2, MOMENT, None)
    counts = [
        {TryStatus.SUCCEEDED: 2, TryStatus.QUEUED: 1},
        {TryStatus.RUNNING: 1, TryStatus.EXPIRED: 1, TryStatus.SUCCEEDED: 1},
    ]
    sums = [VariantSum(at, f"v{at}", one, BILLED if at else None, (TryID(ID),)) for at, one in enumerate(counts)]

    made = msgspec.json.decode(msgspec.json.encode(BatchOut.of(batch, sums)))

    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0}
    assert made == {
        "id": str(ID),
        "session_id": str(ID),
        "label": "b",
        "tries": 6,
        "done": 4,
        "counts": {"queued": 1, "running": 1, "succeeded": 3, "expired": 1},
        "variants": [
            {"label": "v0", "counts": {"queued": 1, "succeeded": 2}, "usage": None, "tries": [str(ID)]},
            {
                "label": "v1",
                "counts": {"running": 1, "succeeded": 1, "expired": 1},
                "usage": {**usage, "cost_usd": None, "estimated": True},
                "tries": [str(ID)],
            },
        ],
        "created_at": "2026-11-30T09:00:00Z",
        "finished_at": None,
    }
