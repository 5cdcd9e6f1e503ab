"""Inputs read from their files: long texts and deep objects written out, halves of letters kept as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("inputs")

# The words of the inputs and hango's own.
PROVIDERS = {"openai-compatible": "openai"}
DEFAULT_MODELS = {
    "offline": "offline/extract",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-4o",
}
WITHOUT_PREFILL = "anthropic/claude-sonnet-4-6"
# What these ask about is said in the blocks of one provider.
OF_ONE_WIRE = frozenset({"wire_blocks", "wire_bytes_unchanged", "wire_cache_marks_max", "cache_mark_on"})


@dataclass(frozen=True, slots=True)
class Case:
    """One input: what there is, what is done, what must be true afterwards."""

    id: str
    given: dict[str, Any]
    when: dict[str, Any]
    then: dict[str, Any]

    @property
    def has_try(self) -> bool:
        """Whether a model is called in it."""
        return "try" in keys(self.when)

    @property
    def has_run(self) -> bool:
        """Whether a run follows."""
        return "then_run_once" in keys(self.when)

    @property
    def models(self) -> list[str]:
        """The models it is run with: the one it names, or one of each provider that it can be true for."""
        settings = self.given.get("settings", {})
        provider = PROVIDERS.get(settings.get("provider"), settings.get("provider"))
        if settings.get("prefill") is False:
            return [WITHOUT_PREFILL]
        if provider is not None:
            return [f"{provider}/{settings['model']}" if "model" in settings else DEFAULT_MODELS[provider]]
        if OF_ONE_WIRE & set(keys(self.then)):
            return [DEFAULT_MODELS["anthropic"]]
        if self.has_try or self.has_run:
            return [DEFAULT_MODELS["anthropic"], DEFAULT_MODELS["openai"]]
        return list(DEFAULT_MODELS.values())

    def asks_for(self, key: str) -> bool:
        return key in keys(self.then)


def read_all() -> list[Case]:
    return [read(path) for path in sorted(FOLDER.glob("*.json"))]


def read(path: Path) -> Case:
    case = json.loads(path.read_text(encoding="utf-8"))
    return Case(case["id"], *(expand(case[part]) for part in ("given", "when", "then")))


def expand(value: Any) -> Any:
    """The value with `$repeat` as the long text and `$nest` as the deep object that they stand for."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$repeat"}:
        return str(value["$repeat"]["text"]) * int(value["$repeat"]["times"])
    if set(value) == {"$nest"}:
        nest = value["$nest"]
        made = expand(nest["leaf"])
        for _ in range(int(nest["depth"])):
            made = {nest["key"]: made}
        return made
    return {key: expand(item) for key, item in value.items()}


def keys(value: Any) -> Iterator[str]:
    """Every key in it, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


def parts_of(given: dict[str, Any]) -> list[str]:
    """The parts of what is given that overrides could name, by group and order."""
    return [
        *(f"system:{block['contributor']}" for block in given.get("system", ())),
        *(f"tool:{tool['name']}" for tool in given.get("tools", ())),
        *(f"message:{message['seq']}" for message in given.get("messages", ())),
    ]
