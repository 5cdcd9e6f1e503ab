"""A comparison for programs: one row of comma-separated values a variant, nothing cut. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hango.cli.compare_rows import Row

HEADS = (
    "variant",
    "model",
    "calls",
    "succeeded",
    "failures",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "estimated",
    "cost_usd",
    "seconds",
    "stop_reasons",
    "tools",
    "distinct_answers",
    "commonest_count",
    "commonest_answer",
    "try_ids",
)


def rows(found: Sequence[Row]) -> Iterator[Sequence[object]]:
    """The heads, then one row a variant. Tokens, cost and `estimated` are sums over its calls, seconds the median."""
    yield HEADS
    for row in found:
        usages = [one.usage for one in row.tries if one.usage is not None]
        yield (
            row.label,
            row.model,
            len(row.tries),
            row.succeeded,
            _pairs(row.failures),
            sum(usage.input_tokens for usage in usages),
            sum(usage.cache_read_tokens for usage in usages),
            sum(usage.cache_write_tokens for usage in usages),
            sum(usage.output_tokens for usage in usages),
            sum(usage.estimated for usage in usages),
            "" if row.cost is None else round(row.cost, 9),
            "" if row.seconds is None else round(row.seconds, 3),
            _pairs(row.stops),
            _pairs(row.tools),
            len(row.answers),
            0 if row.commonest is None else row.answers[row.commonest],
            row.commonest or "",
            " ".join(one.id for one in row.tries),
        )


def _pairs(counts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}" for name, count in counts.items())
