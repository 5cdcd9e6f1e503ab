"""What a call costs: by the makers' lists, without a network, or nobody knows."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.prices import cost_usd
from hango.messages import Usage

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("anthropic/claude-sonnet-4-5", Usage(100_000), 0.3),
        ("anthropic/claude-sonnet-4-5", Usage(0, 100_000), 1.5),
        ("anthropic/claude-sonnet-4-5", Usage(0, 0, 100_000), 0.03),
        ("anthropic/claude-sonnet-4-5", Usage(0, 0, 0, 100_000), 0.375),
        ("anthropic/claude-sonnet-4-5", Usage(10_000, 10_000, 10_000, 10_000), 0.03 + 0.15 + 0.003 + 0.0375),
        ("anthropic/claude-sonnet-4-5-20250929", Usage(100_000), 0.3),
        ("openai/gpt-4o", Usage(MILLION, 0), 2.5),
        ("openai/gpt-4o", Usage(0, MILLION), 10.0),
        ("openai/gpt-4o", Usage(0, 0, MILLION), 1.25),
        ("openai/gpt-4o", Usage(), 0.0),
    ],
)
def test_a_known_model_has_its_makers_price(model: str, usage: Usage, dollars: float) -> None:
    """Fresh input, output, cached input and what is written to the cache each have a price of their own."""
    assert cost_usd(model, usage) == pytest.approx(dollars)


def test_an_hour_in_the_cache_costs_more() -> None:
    """Tokens written for an hour have their own price."""
    written = Usage(0, 0, 0, 100_000)

    assert cost_usd("anthropic/claude-sonnet-4-5", written, cache_ttl="1h") == pytest.approx(0.6)


@pytest.mark.parametrize(
    "model",
    [
        "openai/nobody-s-model",
        "anthropic/gpt-4o",
        "openai/",
        "openai",
        "",
        "nobody/gpt-4o",
        "/gpt-4o",
        "a/b/c",
        "\x00/\x00",
    ],
)
def test_an_unknown_model_has_no_price(model: str) -> None:
    """Nobody can say: None, not 0."""
    assert cost_usd(model, Usage(10, 10)) is None


def test_the_offline_provider_costs_nothing() -> None:
    """It runs on this machine."""
    assert cost_usd("offline/any", Usage(10, 10)) == 0.0


def test_a_compatible_server_has_no_list() -> None:
    """A model of a known name at another address has prices of its own."""
    assert cost_usd("openai/gpt-4o", Usage(10, 10), priced=False) is None


figures = st.integers(-(10**12), 10**12)


@given(st.text(max_size=30), st.sampled_from(["openai", "anthropic"]), st.builds(Usage, *[figures] * 4))
def test_it_never_raises(name: str, provider: str, usage: Usage) -> None:
    """Whatever the name and the figures are."""
    for model in (f"{provider}/{name}", f"{provider}/gpt-4o", f"{provider}/claude-opus-4-5", name):
        cost = cost_usd(model, usage)
        assert cost is None or isinstance(cost, float)


def test_no_network_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists come with the package."""

    def refused(*_: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)

    assert cost_usd("openai/gpt-4o-mini", Usage(MILLION)) == pytest.approx(0.15)


def test_the_lists_are_loaded_when_a_price_is_asked_for() -> None:
    """Importing the module does not load them: the start of a process is not for prices."""
    asked = "import sys; from hango.chain import prices; print('genai_prices' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
