"""Tries and batches as replies show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Raw

from hango.api.fields import Moment
from hango.api.listing import Listing
from hango.chain import part_lists
from hango.domain import PartID
from hango.messages import StopReason
from hango.store.pages import Page
from hango.tries import ENDED, Try, TryBatch, TryError, TryStatus, TryUsage, VariantSum

SENTENCES: Mapping[TryError, str] = {
    TryError.TIMEOUT: "The provider did not answer in time. It may charge for the call.",
    TryError.QUEUE_EXPIRED: "No worker took the try in time; nothing was called. Is a worker running?",
    TryError.CANCELLED: "The try was cancelled.",
    TryError.WORKER_LOST: "The worker went away. The call is not repeated, so that nothing is paid twice.",
    TryError.PROVIDER_UNREACHABLE: "The provider cannot be reached.",
    TryError.PROVIDER_RATE_LIMITED: "The provider took no call: its rate limit is reached. Try again later.",
    TryError.PROVIDER_OVERLOADED: "The provider took no call: it is overloaded. Try again later.",
    TryError.PROVIDER_ERROR: "The provider failed. Try again later.",
    TryError.PROVIDER_PROTOCOL: "The provider's answer cannot be read.",
    TryError.RESPONSE_TOO_LARGE: "The provider's answer is larger than is taken.",
    TryError.PROVIDER_REFUSED: "The provider refused the request.",
    TryError.CONTEXT_CHANGED: "The context can no longer be made as it was accepted; nothing was called. Try it again.",
    TryError.INTERNAL: "Something failed inside hango. The server's log says what.",
}


class TryRequestOut(msgspec.Struct, frozen=True):
    """What was changed. Texts are null in lists, and once they are purged."""

    exclude: list[str]
    include: list[str]
    replace: dict[str, str | None]
    message: str | None
    until: int | None
    model: str


class AnswerOut(msgspec.Struct, frozen=True):
    """The assistant's message; its tool calls are shown and never executed."""

    role: str
    content: Raw


class TryUsageOut(msgspec.Struct, frozen=True):
    """`input_tokens` is without the cached ones; `estimated` where the provider gave no figures."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    estimated: bool

    @classmethod
    def of(cls, usage: TryUsage | None) -> TryUsageOut | None:
        if usage is None:
            return None
        tokens = usage.tokens
        return cls(
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cache_read_tokens,
            tokens.cache_write_tokens,
            usage.cost_usd,
            usage.estimated,
        )


class TryErrorOut(msgspec.Struct, frozen=True):
    code: TryError
    message: str


class TryOut(msgspec.Struct, frozen=True):
    """One try. Lists leave out `sent`, the texts, the answer and the provider's own words."""

    id: UUID
    session_id: UUID
    batch_id: UUID | None
    variant: int | None
    label: str | None
    status: TryStatus
    request: TryRequestOut
    sent: list[PartID] | None
    excluded: list[PartID]
    tokens_before: int
    tokens_after: int
    request_sha256: str
    answer: AnswerOut | None
    stop_reason: StopReason | None
    usage: TryUsageOut | None
    error: TryErrorOut | None
    attempts: int
    purged: bool
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None

    @classmethod
    def of(cls, made: Try) -> TryOut:
        return cls(
            id=made.id,
            session_id=made.session_id,
            batch_id=made.batch_id,
            variant=made.variant,
            label=made.label,
            status=made.status,
            request=_request(made),
            sent=None if made.sent is None else part_lists.decode(made.sent),
            excluded=part_lists.decode(made.excluded),
            tokens_before=made.tokens_before,
            tokens_after=made.tokens_after,
            request_sha256=made.request_sha256,
            answer=None if made.answer is None else AnswerOut("assistant", Raw(made.answer.encode())),
            stop_reason=made.stop_reason,
            usage=TryUsageOut.of(made.usage),
            error=error_of(made),
            attempts=made.attempts,
            purged=made.purged,
            created_at=made.created_at,
            started_at=made.started_at,
            finished_at=made.finished_at,
        )


class VariantOut(msgspec.Struct, frozen=True):
    """One variant of a batch: what its tries came to so far."""

    label: str | None
    counts: dict[str, int]
    usage: TryUsageOut | None
    tries: list[UUID]


class BatchOut(msgspec.Struct, frozen=True):
    """`done` of `tries` have ended."""

    id: UUID
    session_id: UUID
    label: str | None
    tries: int
    done: int
    counts: dict[str, int]
    variants: list[VariantOut]
    created_at: Moment
    finished_at: Moment | None

    @classmethod
    def of(cls, batch: TryBatch, variants: Sequence[VariantSum]) -> BatchOut:
        counts: Counter[TryStatus] = Counter()
        for variant in variants:
            counts.update(variant.counts)
        return cls(
            id=batch.id,
            session_id=batch.session_id,
            label=batch.label,
            tries=batch.tries,
            done=sum(number for status, number in counts.items() if status in ENDED),
            counts=_counts(counts),
            variants=[
                VariantOut(one.label, _counts(one.counts), TryUsageOut.of(one.usage), [*one.tries]) for one in variants
            ],
            created_at=batch.created_at,
            finished_at=batch.finished_at,
        )


class CostOut(msgspec.Struct, frozen=True):
    """US dollars: `least` for answers of nothing, `most` for answers as long as they may be."""

    least: float
    most: float


class BatchCheckOut(msgspec.Struct, frozen=True):
    """A batch as it would be sent, by estimates. `cost_usd` is null where a model's price is not known."""

    calls: int
    input_tokens: int
    output_tokens_most: int
    cost_usd: CostOut | None
    quota_left: int | None


def tries_json(page: Page[Try]) -> bytes:
    """A page of tries as its reply. Each may name thousands of parts, so one after the other is spelt out.

    Takes its time: for another thread than the loop's.
    """
    encode = msgspec.json.Encoder().encode
    return encode(Listing([Raw(encode(TryOut.of(one))) for one in page.data], page.next_cursor))


def batches_json(page: Page[TryBatch], sums: Mapping[UUID, Sequence[VariantSum]]) -> bytes:
    """A page of batches as its reply. Each may name a thousand tries, which takes time too."""
    return msgspec.json.encode(Listing([BatchOut.of(one, sums[one.id]) for one in page.data], page.next_cursor))


def _request(made: Try) -> TryRequestOut:
    changes, texts = made.changes, made.texts
    return TryRequestOut(
        exclude=[*changes.exclude],
        include=[*changes.include],
        replace={part: texts.replace.get(part) if texts else None for part in changes.replace},
        message=texts.message if texts else None,
        until=changes.until,
        model=made.model,
    )


def error_of(made: Try) -> TryErrorOut | None:
    if made.error is None:
        return None
    message = SENTENCES[made.error]
    if made.status is TryStatus.CANCELLED and made.usage is not None and made.usage.estimated:
        message = f"{message} The call was under way: the provider may charge for it."
    if made.provider_status is not None:
        message = f"{message} It answered with status {made.provider_status}.{_way_out(made)}"
    if made.said:
        message = f"{message} It said: {made.said}"
    return TryErrorOut(made.error, message)


def _way_out(made: Try) -> str:
    """What to do about a refusal whose status says it."""
    provider, _, model = made.model.partition("/")
    if made.error is not TryError.PROVIDER_REFUSED or provider == "offline":  # which has neither key nor address
        return ""
    if made.provider_status in (401, 403):
        return f" Check HANGO_{provider.upper()}_API_KEY, and whether that key may call this model."
    if made.provider_status == 404:
        return f" Check the model's name '{model}' and HANGO_{provider.upper()}_BASE_URL."
    return ""


def _counts(counts: Mapping[TryStatus, int]) -> dict[str, int]:
    """Every status that there is, in the order of its enum."""
    return {status.value: counts[status] for status in TryStatus if counts.get(status)}
