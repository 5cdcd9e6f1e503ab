"""The providers by name, from the settings alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.offline import OfflineProvider
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.errors import Invalid, ProviderFailed, ProviderFault
from tests.providers_server import fake_provider, says
from tests.unit.chain.providers.answering import WIRES, Wire
from tests.unit.chain.providers.making import MODELS, request


@pytest.fixture
async def providers() -> AsyncIterator[Providers]:
    made = Providers(Settings.from_env({}), MODELS)
    yield made
    await made.close()


async def test_the_three_providers(providers: Providers) -> None:
    """`anthropic`, `openai` and `offline`, each under its own name."""
    found = {name: type(providers.get(name)) for name in providers.names}

    assert found == {
        "anthropic": AnthropicProvider,
        "openai": OpenAICompatibleProvider,
        "offline": OfflineProvider,
    }
    assert [providers.get(name).name for name in providers.names] == list(providers.names)
    assert [providers.get(name).dialect.name for name in providers.names] == list(providers.names)


@pytest.mark.parametrize("name", ["", "google", "Anthropic", "openai/"])
async def test_an_unknown_provider_is_refused(providers: Providers, name: str) -> None:
    """Another name is `bad_model`, and the sentence says which there are."""
    with pytest.raises(Invalid, match="anthropic, openai, offline") as failure:
        providers.get(name)

    assert failure.value.closed_code == "bad_model"


async def test_only_a_provider_with_a_key_counts(providers: Providers) -> None:
    """The counter is used when the provider has one and a key is set."""
    assert [providers.counter(name) for name in providers.names] == [None, None, None]

    async with fake_provider(says({"input_tokens": 42})) as server:
        env = {"HANGO_ANTHROPIC_API_KEY": "sk-ant", "HANGO_ANTHROPIC_BASE_URL": server.url}
        with_key = Providers(Settings.from_env(env), MODELS)
        counter = with_key.counter("anthropic")

        assert counter is not None
        assert await counter.count_tokens(request()) == 42
        assert [with_key.counter(name) for name in ("openai", "offline")] == [None, None]
        await with_key.close()
        await with_key.close()


async def test_without_a_key_the_public_apis_answer_nothing(providers: Providers) -> None:
    """Without keys there is one answerer; the others would refuse every call."""
    assert isinstance(providers.completer("offline"), OfflineProvider)
    assert [providers.completer(name) for name in ("anthropic", "openai", "nobody")] == [None, None, None]


async def test_with_a_key_each_provider_answers() -> None:
    """All three, each by its own adapter."""
    env = {"HANGO_ANTHROPIC_API_KEY": "sk-ant", "HANGO_OPENAI_API_KEY": "sk"}
    with_keys = Providers(Settings.from_env(env), MODELS)

    found = {name: type(with_keys.completer(name)) for name in with_keys.names}
    assert found == {
        "anthropic": AnthropicProvider,
        "openai": OpenAICompatibleProvider,
        "offline": OfflineProvider,
    }


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("key", [None, "sk-canary-0123456789"])
async def test_a_server_of_ones_own(wire: Wire, key: str | None) -> None:
    """At another address a key is sent when there is one; what comes back is bounded and without any key."""
    async with fake_provider(says(wire.answer("Hello."))) as server:
        name = wire.name.upper()
        env = {f"HANGO_{name}_BASE_URL": server.url, "HANGO_CONTEXT_TRY_MAX_RESPONSE": "1KiB"}
        if key is not None:
            env |= {f"HANGO_{name}_API_KEY": key, "HANGO_OTLP_HEADERS": "x-token=telemetry-canary"}
        own = Providers(Settings.from_env(env), MODELS)
        completer = own.completer(wire.name)
        assert completer is not None

        response = await completer.complete(request(), deadline=10)
        server.answer = says(wire.answer("x" * 1024))
        with pytest.raises(ProviderFailed) as large:
            await completer.complete(request(), deadline=10)
        server.answer = says(wire.error("Bad sk-canary-0123456789 or telemetry-canary."), status=400)
        with pytest.raises(ProviderFailed) as echo:
            await completer.complete(request(), deadline=10)
        await own.close()

    assert response.content[0].view.text == "Hello."
    assert any(name in server.seen[0].headers for name in ("authorization", "x-api-key")) == (key is not None)
    assert large.value.fault is ProviderFault.TOO_LARGE
    assert echo.value.said == ("Bad *** or ***." if key else "Bad *** or telemetry-canary.")


async def test_whose_prices_are_listed(providers: Providers) -> None:
    """The makers' lists hold for the makers: a compatible server has prices of its own."""
    own = Providers(Settings.from_env({"HANGO_OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}), MODELS)

    assert [providers.is_priced(name) for name in providers.names] == [True, True, True]
    assert [own.is_priced(name) for name in own.names] == [True, False, True]


async def test_building_the_registry_opens_nothing() -> None:
    """No work at import or at the start: the session opens at the first call, so that any loop may build it."""
    Providers(Settings.from_env({}), MODELS)
