"""How a call ended, as the end of its try and its bill. Pure: one closed table, no clock and no database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hango.chain.prices import cost_usd
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from hango.messages import Response, Usage, content_json
from hango.store.try_claims import reservation
from hango.store.usage import total
from hango.tries import Settlement, TryError, TryStatus, TryUsage

# What is reserved is an estimate; figures beyond this many times of it are no figures.
MOST_TIMES_RESERVED = 4
# How long a provider that takes no calls is left alone, whatever it asks for.
LEAST_DELAY_SECONDS = 1.0
MOST_DELAY_SECONDS = 60.0


class Ending(StrEnum):
    """Why hango itself ended a call that was under way."""

    CANCELLED = "cancelled"  # somebody asked for it
    GIVEN_UP = "given_up"  # another has the try, or PostgreSQL is away: what becomes of it is decided elsewhere


class Ended(Exception):
    """The call under way was ended by hango."""

    def __init__(self, why: Ending) -> None:
        super().__init__(why.value)
        self.why = why


@dataclass(frozen=True, slots=True)
class Terms:
    """What a call is billed by. `priced`: the lists of prices hold for its provider."""

    model: str
    reserved: int
    max_output_tokens: int
    priced: bool = True
    cache_ttl: str = "5m"

    def billed(self, tokens: Usage, *, estimated: bool) -> TryUsage:
        cost = cost_usd(self.model, tokens, priced=self.priced, cache_ttl=self.cache_ttl)
        return TryUsage(tokens, cost, estimated)

    @property
    def estimate(self) -> TryUsage:
        """The bill of a call that a provider may have charged for, nobody knows how much."""
        return self.billed(reservation(self.reserved, self.max_output_tokens), estimated=True)


NOTHING = TryUsage(Usage(), 0.0, estimated=False)  # the bill of a call that no provider took

# A provider's fault: whether the call may have been charged for.
CHARGED: dict[ProviderFault, bool] = {
    ProviderFault.UNREACHABLE: False,
    ProviderFault.RATE_LIMITED: False,
    ProviderFault.OVERLOADED: False,
    ProviderFault.REFUSED: False,
    ProviderFault.ERROR: False,
    ProviderFault.PROTOCOL: True,
    ProviderFault.TOO_LARGE: True,
}
# The end of a call that no provider took, and that nobody wants any more.
UNWANTED = Settlement(TryStatus.CANCELLED, NOTHING, TryError.CANCELLED)
NOT_TAKEN = frozenset({ProviderFault.RATE_LIMITED, ProviderFault.OVERLOADED})


def answered(response: Response, terms: Terms) -> Settlement:
    """An answer came. Its figures are the bill, unless there are none or they cannot be."""
    most = MOST_TIMES_RESERVED * terms.reserved
    if not response.usage_known:
        usage = terms.estimate
    elif total(response.usage) > most:
        usage = terms.billed(clamped(response.usage, most), estimated=True)
    else:
        usage = terms.billed(response.usage, estimated=False)
    return Settlement(
        TryStatus.SUCCEEDED,
        usage,
        answer=content_json(response.content),
        stop_reason=response.stop_reason,
        provider_request_id=response.request_id,
    )


def unanswered(error: Exception, terms: Terms) -> Settlement:
    """No answer came, of a call that was marked: the one end for every exception."""
    if isinstance(error, ProviderFailed):
        return Settlement(
            TryStatus.FAILED,
            terms.estimate if CHARGED[error.fault] else NOTHING,
            TryError(error.fault.value),
            said=error.said,
            provider_status=error.http_status,
            provider_request_id=error.request_id,
        )
    if isinstance(error, ProviderTimeout):
        return Settlement(TryStatus.TIMED_OUT, terms.estimate, TryError.TIMEOUT)
    if isinstance(error, Ended) and error.why is Ending.CANCELLED:
        return Settlement(TryStatus.CANCELLED, terms.estimate, TryError.CANCELLED)
    return Settlement(TryStatus.FAILED, terms.estimate, TryError.INTERNAL)


def lost(terms: Terms) -> Settlement:
    """Its worker fell silent during the call: nobody knows what came of it, and it is not repeated."""
    return Settlement(TryStatus.LOST, terms.estimate, TryError.WORKER_LOST)


def delay(error: Exception, attempt: int) -> float | None:
    """After how many seconds a call may be made again that no provider took; None for every other end.

    `attempt` counts the claims of the try, this one included: a provider that names no time is asked after 1, 2, 4,
    ... seconds.
    """
    if not (isinstance(error, ProviderFailed) and error.fault in NOT_TAKEN):
        return None
    wished = 2.0 ** (attempt - 1) if error.retry_after is None else error.retry_after
    return min(max(wished, LEAST_DELAY_SECONDS), MOST_DELAY_SECONDS)


def clamped(usage: Usage, most: int) -> Usage:
    """Figures of `most` tokens together, in the order in which they are named."""
    left, cut = most, []
    for tokens in (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens):
        cut.append(min(tokens, left))
        left -= cut[-1]
    return Usage(*cut)
