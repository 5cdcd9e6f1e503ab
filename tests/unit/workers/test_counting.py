"""What telemetry is told of calls: what they are billed at, by what they were for."""

from __future__ import annotations

from pathlib import Path

from hango import telemetry
from hango.domain import Purpose
from hango.messages import Usage
from hango.tries import TryUsage
from hango.workers import counting
from tests.otlp import receiving
from tests.unit.test_telemetry import settings


def test_a_bill_is_counted_by_purpose_and_model(tmp_path: Path) -> None:
    """Tokens by type, those of the cache apart; dollars; nothing of a kind that there was none of."""
    with receiving() as receiver, telemetry.setup(settings(receiver, tmp_path), "worker"):
        for _ in range(2):
            usage = TryUsage(Usage(10, 3, cache_read_tokens=7), 0.25, estimated=False)
            counting.billed("anthropic/claude-sonnet-4-5", Purpose.SUBAGENT, usage)
        counting.billed("openai/own", Purpose.CONTEXT_TRY, TryUsage(Usage(output_tokens=4), None, estimated=True))

    child = {"hango.call.purpose": "subagent", "gen_ai.request.model": "claude-sonnet-4-5"}
    tried = {"hango.call.purpose": "context_try", "gen_ai.request.model": "own"}
    assert [(one.name, one.value, one.attributes) for one in receiver.counters] == [
        ("hango.usage.tokens", 20, {**child, "gen_ai.token.type": "input"}),
        ("hango.usage.tokens", 6, {**child, "gen_ai.token.type": "output"}),
        ("hango.usage.tokens", 14, {**child, "gen_ai.token.type": "cache_read"}),
        ("hango.usage.tokens", 4, {**tried, "gen_ai.token.type": "output"}),
        ("hango.usage.cost", 0.5, child),
    ]


def test_a_call_that_nobody_took_costs_nothing(tmp_path: Path) -> None:
    """No points of nought, which would be one more series of each model that was ever away."""
    with receiving() as receiver, telemetry.setup(settings(receiver, tmp_path), "worker"):
        counting.billed("openai/own", Purpose.RUN, TryUsage(Usage(), 0.0, estimated=False))

    assert receiver.counters == []
