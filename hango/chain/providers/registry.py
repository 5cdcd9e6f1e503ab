"""The providers of this process by name, built from the settings. One HTTP session for all, opened when needed."""

from __future__ import annotations

from hango.chain.models import Models
from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.base import Completer, Provider, TokenCounter
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Http
from hango.chain.providers.offline import OfflineProvider
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.config import Secret, Settings
from hango.errors import Invalid, Reason


class Providers:
    """Addresses and keys come from the settings alone, never from a request."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self._http = Http(max_bytes=settings.context_try_max_response, hidden=Hidden(_secrets(settings)))
        self._anthropic = AnthropicProvider(models, self._http, settings.anthropic_base_url, settings.anthropic_api_key)
        self._openai = OpenAICompatibleProvider(models, self._http, settings.openai_base_url, settings.openai_api_key)
        self._offline = OfflineProvider(models)
        self._providers: dict[str, Provider] = {
            "anthropic": self._anthropic,
            "openai": self._openai,
            "offline": self._offline,
        }
        self._counters: dict[str, TokenCounter] = {}
        if settings.anthropic_api_key is not None:
            self._counters["anthropic"] = self._anthropic
        self._completers: dict[str, Completer] = {"offline": self._offline}
        if self._anthropic.answers:
            self._completers["anthropic"] = self._anthropic
        if self._openai.answers:
            self._completers["openai"] = self._openai

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._providers)

    def get(self, name: str) -> Provider:
        """Raises Invalid (`bad_model`) for a name that is none."""
        if name not in self._providers:
            known = ", ".join(self._providers)
            message = f"There is no provider '{name}': a model is '<provider>/<model>', the providers are {known}."
            raise Invalid.because(Reason.BAD_MODEL, message)
        return self._providers[name]

    def counter(self, name: str) -> TokenCounter | None:
        """The provider's own counter; None when it has none or no key is set."""
        return self._counters.get(name)

    def completer(self, name: str) -> Completer | None:
        """What answers requests; None when a key is missing without which nothing would be answered."""
        return self._completers.get(name)

    def is_priced(self, name: str) -> bool:
        """Whether the makers' price lists hold for a provider: a compatible server has prices of its own."""
        return name != "openai" or self._openai.public

    async def close(self) -> None:
        await self._http.close()


def _secrets(settings: Settings) -> list[Secret]:
    keys = (settings.anthropic_api_key, settings.openai_api_key, settings.api_key)
    return [*(key for key in keys if key is not None), *(value for _, value in settings.otlp_headers)]
