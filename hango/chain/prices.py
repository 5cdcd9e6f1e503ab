"""What a call costs, by the lists that come with genai-prices. Asks nobody: they are as old as the package."""

from __future__ import annotations

from typing import Any

from hango.messages import Usage


def cost_usd(model: str, usage: Usage, *, priced: bool = True, cache_ttl: str = "5m") -> float | None:
    """US dollars by the maker's list; None where nobody can say. Never raises.

    `model` is "<provider>/<name>". `priced` False: the lists do not hold at
    that provider's address (`Providers.is_priced`). `cache_ttl` is the request's: an hour costs more to write.
    """
    provider, _, name = model.partition("/")
    if provider == "offline":
        return 0.0
    if not priced or not name:
        return None
    # The lists take a fifth of a second to load, and most commands never ask for a price.
    from genai_prices import calc_price

    try:
        return float(calc_price(_counted(usage, cache_ttl), name, provider_id=provider).total_price)
    except (LookupError, ValueError, ArithmeticError):  # an unknown model, or figures that the lists cannot price
        return None


def _counted(usage: Usage, cache_ttl: str) -> Any:
    """The lists count cached and written tokens among those of the input."""
    from genai_prices import Usage as Counted

    return Counted(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_tokens if cache_ttl == "1h" else 0,
    )
