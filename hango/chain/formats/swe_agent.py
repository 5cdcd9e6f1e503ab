"""SWE-agent trajectories: the history that the model saw, else the steps with thought, action and observation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, openai_chat, openai_parts
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import decode, guess_provider, is_array
from hango.chain.formats.transcript import ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole, text_block


class _Model(msgspec.Struct):
    name: str | None = None
    model_name: str | None = None


class _Agent(msgspec.Struct):
    model: _Model | None = None


class _Config(msgspec.Struct):
    agent: _Agent | None = None
    model: _Model | None = None


class _Info(msgspec.Struct):
    config: _Config | None = None


class _Trajectory(msgspec.Struct):
    history: list[msgspec.Raw] | None = None
    messages: list[msgspec.Raw] | None = None  # mini-swe-agent
    trajectory: list[_Step] | None = None
    replay_config: Any = None  # JSON text, or the value
    info: _Info | None = None
    instance_id: str | None = None
    environment: str | None = None


class _Step(msgspec.Struct):
    thought: str | None = None
    action: str | None = None
    response: str | None = None
    observation: msgspec.Raw = msgspec.Raw(b"")


class _Turn(msgspec.Struct):
    """What a message of the history has beside the members of a chat message."""

    role: str
    tool_call_ids: list[str] | None = None
    tool_call_id: str | None = None
    thinking_blocks: list[msgspec.Raw] | None = None


def read(body: bytes) -> list[Conversation]:
    """One trajectory, or a list of them."""
    if is_array(body):
        return [each for raw in decode(body, list[msgspec.Raw]) for each in read(bytes(raw))]
    file = decode(body, _Trajectory)
    title = file.instance_id or file.environment
    name, raws = ("history", file.history) if file.history else ("messages", file.messages)
    if raws:
        system, rest, skipped = openai_chat.head(raws, f"/{name}")
        agent = agents.make_agent(model=_model(file), system=system)
        return [Conversation(agent, _messages(rest, f"/{name}", skipped), title)]
    if file.trajectory is None:
        sentence = "The trajectory has neither 'history' nor 'trajectory'."
        raise Invalid.because(Reason.MISSING_FIELD, sentence, pointer="/history")
    return [Conversation(agents.make_agent(model=_model(file)), _steps(file.trajectory), title)]


def _messages(raws: Sequence[msgspec.Raw], at: str, skipped: int) -> Iterator[ImportedMessage]:
    asked: dict[str, str] = {}
    for n, raw in enumerate(raws, skipped):
        place = f"{at}/{n}"
        turn = decode(raw, _Turn, place)
        members = decode(raw, dict[str, msgspec.Raw], place)
        if turn.role == "tool" and not turn.tool_call_id and turn.tool_call_ids:
            members["tool_call_id"] = msgspec.Raw(jsontext.dumps(turn.tool_call_ids[0]).encode())
        # `reasoning` and `thought` repeat what stands in the content and the thinking blocks.
        members.pop("reasoning", None)
        message = openai_chat.message(msgspec.Raw(jsontext.dumps(members).encode()), place, asked)
        thinking = tuple(Block.of(block) for block in turn.thinking_blocks or ())
        yield ImportedMessage(message.role, (*thinking, *message.content), None, message.created_at)


def _steps(steps: Sequence[_Step]) -> Iterator[ImportedMessage]:
    """The answer of each step, then what the action showed."""
    for n, step in enumerate(steps):
        said = step.response or "\n\n".join(filter(None, (step.thought, step.action)))
        if said:
            yield ImportedMessage(MessageRole.ASSISTANT, (text_block(said),))
        seen = openai_parts.content(step.observation, f"/trajectory/{n}/observation")
        if seen and (len(seen) > 1 or seen[0].view.text):
            yield ImportedMessage(MessageRole.USER, seen)


def _model(file: _Trajectory) -> str | None:
    """The model of the run's configuration, where the file tells it."""
    found = [file.info.config] if file.info and file.info.config else []
    config = file.replay_config
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            config = None
    if isinstance(config, dict):
        # A configuration of another version leaves the model unknown.
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(config, _Config))
    for each in found:
        model = each.model or (each.agent.model if each.agent else None)
        if model and (model.name or model.model_name):
            return guess_provider(model.name or model.model_name)
    return None
