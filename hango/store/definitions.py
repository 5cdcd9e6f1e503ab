"""An agent's definition as JSON text and back. Equal definitions have equal text, in another process too."""

from __future__ import annotations

import msgspec

from hango.agent_definition import AgentDefinition

# Sets have no order of their own, so one is given to them.
_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(AgentDefinition)


def to_text(definition: AgentDefinition) -> str:
    return _encoder.encode(definition).decode()


def from_text(text: str) -> AgentDefinition:
    return _decoder.decode(text)
