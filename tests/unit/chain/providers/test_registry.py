"""The providers by name, from the settings alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.offline import OfflineProvider
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.errors import Invalid
from tests.providers_server import fake_provider, says
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


async def test_only_the_offline_provider_answers(providers: Providers) -> None:
    """Without a network there is one answerer."""
    assert isinstance(providers.completer("offline"), OfflineProvider)
    assert [providers.completer(name) for name in ("anthropic", "openai")] == [None, None]


async def test_building_the_registry_opens_nothing() -> None:
    """No work at import or at the start: the session opens at the first call, so that any loop may build it."""
    Providers(Settings.from_env({}), MODELS)
