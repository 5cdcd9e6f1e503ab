"""Every end of a call: the status, the code and the bill of its try."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.prices import cost_usd
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from hango.messages import Response, StopReason, Usage, text_block
from hango.store.usage import total
from hango.tries import Settlement, TryError, TryStatus, TryUsage
from hango.workers.outcomes import CHARGED, NOTHING, Ended, Ending, Terms, answered, clamped, delay, lost, unanswered

MODEL = "anthropic/claude-sonnet-4-5"
TERMS = Terms(MODEL, reserved=1000, max_output_tokens=400)
ESTIMATE = TryUsage(Usage(600, 400), cost_usd(MODEL, Usage(600, 400)), estimated=True)
FIGURES = Usage(12, 3, cache_read_tokens=2, cache_write_tokens=1)
RESPONSE = Response((text_block("Yes."),), StopReason.END_TURN, FIGURES, request_id="req_1")
ANSWERED = Settlement(
    TryStatus.SUCCEEDED,
    TryUsage(FIGURES, cost_usd(MODEL, FIGURES), estimated=False),
    answer='[{"type":"text","text":"Yes."}]',
    stop_reason=StopReason.END_TURN,
    provider_request_id="req_1",
)


def failed(fault: ProviderFault, **told: object) -> ProviderFailed:
    return ProviderFailed("It failed.", fault=fault, **told)  # type: ignore[arg-type]  # a case's own words


def test_an_answer_is_billed_by_the_providers_figures() -> None:
    """Succeeded: the answer, the stop reason, and the actual usage."""
    assert ANSWERED.usage.cost_usd is not None
    assert ANSWERED.usage.cost_usd > 0
    assert answered(RESPONSE, TERMS) == ANSWERED


@pytest.mark.parametrize(
    ("usage", "terms", "billed"),
    [
        (replace(RESPONSE, usage=Usage(), usage_known=False), TERMS, ESTIMATE),
        (
            replace(RESPONSE, usage=Usage(10, 5000)),
            TERMS,
            TryUsage(Usage(10, 3990), cost_usd(MODEL, Usage(10, 3990)), estimated=True),
        ),
        (
            replace(RESPONSE, usage=Usage(0, 4000)),
            TERMS,
            TryUsage(Usage(0, 4000), cost_usd(MODEL, Usage(0, 4000)), estimated=False),
        ),
        (RESPONSE, replace(TERMS, priced=False), TryUsage(FIGURES, None, estimated=False)),
        (
            RESPONSE,
            replace(TERMS, cache_ttl="1h"),
            TryUsage(FIGURES, cost_usd(MODEL, FIGURES, cache_ttl="1h"), estimated=False),
        ),
    ],
    ids=["none told", "over four times the reservation", "four times", "no price list", "an hour's cache"],
)
def test_figures_that_cannot_be_are_no_bill(usage: Response, terms: Terms, billed: TryUsage) -> None:
    """Usage is clamped to four times the reservation and flagged; what nobody told is estimated."""
    assert answered(usage, terms) == replace(ANSWERED, usage=billed)


FAULTS = {
    ProviderFault.UNREACHABLE: NOTHING,
    ProviderFault.RATE_LIMITED: NOTHING,
    ProviderFault.OVERLOADED: NOTHING,
    ProviderFault.REFUSED: NOTHING,
    ProviderFault.ERROR: NOTHING,
    ProviderFault.PROTOCOL: ESTIMATE,
    ProviderFault.TOO_LARGE: ESTIMATE,
}


@pytest.mark.parametrize("fault", ProviderFault)
def test_a_providers_fault_is_the_code_of_the_try(fault: ProviderFault) -> None:
    """A refusal costs nothing; what was cut, spoilt or too large may have been charged for, and is estimated."""
    error = failed(fault, http_status=418, said="no", request_id="req_2")

    assert unanswered(error, TERMS) == Settlement(
        TryStatus.FAILED,
        FAULTS[fault],
        TryError(fault.value),
        said="no",
        provider_status=418,
        provider_request_id="req_2",
    )


def test_every_fault_has_its_bill() -> None:
    """The table of faults is whole, and nothing that was not taken is charged."""
    assert sorted(CHARGED) == sorted(ProviderFault)
    assert TryUsage(Usage(), 0.0, estimated=False) == NOTHING


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (ProviderTimeout(), Settlement(TryStatus.TIMED_OUT, ESTIMATE, TryError.TIMEOUT)),
        (Ended(Ending.CANCELLED), Settlement(TryStatus.CANCELLED, ESTIMATE, TryError.CANCELLED)),
        (RuntimeError("secret"), Settlement(TryStatus.FAILED, ESTIMATE, TryError.INTERNAL)),
    ],
)
def test_a_call_that_may_have_been_charged_for_is_estimated(error: Exception, ended: Settlement) -> None:
    """Timed out, cancelled after the mark, or a fault of hango: billed at the reservation, and flagged."""
    assert unanswered(error, TERMS) == ended


def test_a_lost_call_is_estimated() -> None:
    """Lost: the outcome is unknown, the bill is the reservation, flagged."""
    assert lost(TERMS) == Settlement(TryStatus.LOST, ESTIMATE, TryError.WORKER_LOST)


@pytest.mark.parametrize(
    ("error", "attempt", "seconds"),
    [
        (failed(ProviderFault.RATE_LIMITED), 1, 1.0),
        (failed(ProviderFault.OVERLOADED), 2, 2.0),
        (failed(ProviderFault.RATE_LIMITED), 4, 8.0),
        (failed(ProviderFault.RATE_LIMITED), 20, 60.0),
        (failed(ProviderFault.RATE_LIMITED, retry_after=7.5), 3, 7.5),
        (failed(ProviderFault.OVERLOADED, retry_after=0.0), 3, 1.0),
        (failed(ProviderFault.RATE_LIMITED, retry_after=3600.0), 1, 60.0),
        (failed(ProviderFault.REFUSED, retry_after=5.0), 1, None),
        (failed(ProviderFault.ERROR, retry_after=5.0), 1, None),
        (failed(ProviderFault.UNREACHABLE), 1, None),
        (failed(ProviderFault.PROTOCOL), 1, None),
        (failed(ProviderFault.TOO_LARGE), 1, None),
        (ProviderTimeout(), 1, None),
        (Ended(Ending.CANCELLED), 1, None),
        (RuntimeError(), 1, None),
    ],
)
def test_only_a_call_that_was_not_taken_waits_again(error: Exception, attempt: int, seconds: float | None) -> None:
    """429 and 529 go back to the queue, after what the provider asks for (1 to 60 s), else 1, 2, 4, ... seconds."""
    assert delay(error, attempt) == seconds


@given(st.builds(Usage, *[st.integers(0, 10_000)] * 4), st.integers(0, 20_000))
def test_clamped_figures_are_the_most_that_fits(usage: Usage, most: int) -> None:
    """No figure grows, and together they are `most` or what they were."""
    cut = clamped(usage, most)

    assert total(cut) == min(total(usage), most)
    assert all(getattr(cut, name) <= getattr(usage, name) for name in Usage.__slots__)
