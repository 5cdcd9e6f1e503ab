"""Tries as people make them, and odder ones: an agent with a history, a saved set, a body, and what the model says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web
from hypothesis import strategies as st

from hango.messages import StopReason, Usage
from tests.cases.population import Given, populations
from tests.cases.try_world import CHAT
from tests.histories import Said
from tests.providers_server import Answer, chat, message, says

MODELS = ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-6", "openai/gpt-4o", "openai/no-such-model")
# A stop reason of Messages, the same in Chat Completions, and hango's own.
STOPS = (
    ("end_turn", "stop", StopReason.END_TURN),
    ("max_tokens", "length", StopReason.MAX_TOKENS),
    ("tool_use", "tool_calls", StopReason.TOOL_USE),
    ("refusal", "content_filter", StopReason.REFUSAL),
)
FIRST = Said("user", (("text", ""),))


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model says, in the words of both wires, and how hango tells it."""

    text: str
    calls: tuple[dict[str, Any], ...]
    stop: tuple[str, str, StopReason]
    usage: Usage

    @property
    def content(self) -> list[dict[str, Any]]:
        return [{"type": "text", "text": self.text}, *({"type": "tool_use", **call} for call in self.calls)]

    def on_its_wire(self) -> Answer:
        """In the words of whoever asks."""
        messages, completions = says(self._message()), says(self._chat())

        async def answer(request: web.Request) -> web.StreamResponse:
            return await (completions if request.path.endswith(CHAT) else messages)(request)

        return answer

    def _message(self) -> dict[str, Any]:
        usage = self.usage
        return message(
            *self.content,
            stop_reason=self.stop[0],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cache_read_tokens,
            cache_creation_input_tokens=usage.cache_write_tokens,
        )

    def _chat(self) -> dict[str, Any]:
        usage = {
            "prompt_tokens": self.usage.input_tokens + self.usage.cache_read_tokens + self.usage.cache_write_tokens,
            "completion_tokens": self.usage.output_tokens,
            "prompt_tokens_details": {
                "cached_tokens": self.usage.cache_read_tokens,
                "cache_write_tokens": self.usage.cache_write_tokens,
            },
        }
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["input"])},
            }
            for call in self.calls
        ]
        return chat(self.text, self.stop[1], usage, **({"tool_calls": calls} if calls else {}))


@dataclass(frozen=True, slots=True)
class Tried:
    """`saved` are a set's overrides by its target; `body` is the try's, without the names of what cannot be known."""

    given: Given
    saved: Mapping[str, list[dict[str, Any]]]
    bodies: list[dict[str, Any]]
    answered: Answered

    def with_model(self, model: str) -> Tried:
        """The same with another model of the agent; what the assistant said stays the first model's."""
        agent = {**self.given.agent, "model": model}
        first = str(self.given.agent["model"])
        history = [replace(said, model=said.model or first) for said in self.given.history]
        return replace(self, given=replace(self.given, agent=agent, history=history))


words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)
figures = st.integers(0, 2000)
inputs = st.dictionaries(
    st.sampled_from(("path", "n", "é")), st.one_of(words, st.integers(-(10**30), 10**30), st.none(), st.booleans())
)


@st.composite
def answers(draw: st.DrawFn) -> Answered:
    names = draw(st.lists(st.sampled_from(("look", "read_file", "no_such_tool")), max_size=2))
    calls = tuple({"id": f"call_{n}", "name": name, "input": draw(inputs)} for n, name in enumerate(names))
    stop = STOPS[2] if calls else draw(st.sampled_from([STOPS[0], STOPS[1], STOPS[3]]))
    return Answered(draw(words), calls, stop, Usage(draw(figures), draw(figures), draw(figures), draw(figures)))


def overrides_of(part: str, text: str | None) -> dict[str, Any]:
    return {"part": part, "action": "exclude"} if text is None else {
        "part": part, "action": "replace", "replacement": text,
    }  # fmt: skip


@st.composite
def changes(draw: st.DrawFn, parts: list[str], seqs: int) -> dict[str, Any]:
    """A few parts left out, replaced or included again; tools are replaced too, which nobody may."""
    named = draw(st.lists(st.sampled_from(parts), max_size=4, unique=True)) if parts else []
    body: dict[str, Any] = {"exclude": [], "replace": {}, "include": []}
    for part in named:
        how = draw(st.sampled_from(("exclude", "exclude", "replace", "include")))
        if how == "replace" and not part.startswith("tool:"):
            body["replace"][part] = draw(words)
        else:
            body["include" if how == "include" else "exclude"].append(part)
    if draw(st.booleans()) and not body["include"]:
        body["include"] = draw(st.sampled_from(([], ["*"])))
    if (text := draw(st.one_of(words, words, st.none()))) is not None:
        body["message"] = text
    if seqs and draw(st.integers(0, 4)) == 0:
        body["until"] = draw(st.integers(1, seqs))
    if draw(st.integers(0, 3)) == 0:
        body["model"] = draw(st.sampled_from(MODELS))
    return body


@st.composite
def tried(draw: st.DrawFn, most: int = 1) -> Tried:
    """Up to `most` bodies for one session. Most histories begin with the user's words."""
    given = draw(populations())
    agent = {**given.agent, "model": draw(st.sampled_from(MODELS))}
    history = [FIRST, *given.history] if draw(st.integers(0, 3)) else given.history
    through = given.summary_through if draw(st.integers(0, 2)) == 0 else None
    given = replace(given, agent=agent, history=history, summary_through=through)
    parts = [*given.expected_system(), *given.expected_tools(), *given.expected_messages()]
    named = draw(st.lists(st.sampled_from(parts), max_size=3, unique=True)) if parts else []
    saved: dict[str, list[dict[str, Any]]] = {"agent": [], "session": []}
    for part in named:
        text = None if part.startswith("tool:") else draw(st.none() | words)
        saved["agent" if part.startswith(("system:", "tool:")) else "session"].append(overrides_of(part, text))
    bodies = draw(st.lists(changes(parts, len(history)), min_size=1, max_size=most))
    return Tried(given, saved, bodies, draw(answers()))
