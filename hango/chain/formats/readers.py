"""The table of formats: how each is read, and what a line of JSON Lines is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from hango.chain.formats import (
    anthropic,
    chatgpt,
    claude_code,
    langchain,
    openai_chat,
    openai_responses,
    sharegpt,
    swe_agent,
)
from hango.chain.formats.detect import detect
from hango.chain.formats.gather import Reader, gather
from hango.chain.formats.reading import decode, is_object
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import Format, Transcript

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class _Format:
    read: Reader
    pieces: Callable[[bytes], bool]  # true when a line is a message, false when it is a conversation


def _is_message(line: bytes) -> bool:
    return "role" in _members(line)


def _is_item(line: bytes) -> bool:
    members = _members(line)
    return "role" in members or "type" in members


def _is_turn(line: bytes) -> bool:
    return "from" in _members(line)


def _is_langchain_message(line: bytes) -> bool:
    members = _members(line)
    return bool(members) and not members.keys() & {"messages", "values", "input", "inputs", "output", "outputs"}


def _never(line: bytes) -> bool:
    return False


def _members(line: bytes) -> dict[str, msgspec.Raw]:
    return decode(line, dict[str, msgspec.Raw]) if is_object(line) else {}


_FORMATS = {
    Format.ANTHROPIC: _Format(anthropic.read, _is_message),
    Format.OPENAI_CHAT: _Format(openai_chat.read, _is_message),
    Format.OPENAI_RESPONSES: _Format(openai_responses.read, _is_item),
    Format.CHATGPT: _Format(chatgpt.read, _never),
    Format.SHAREGPT: _Format(sharegpt.read, _is_turn),
    Format.LANGCHAIN: _Format(langchain.read, _is_langchain_message),
    Format.SWE_AGENT: _Format(swe_agent.read, _never),
}


def read(source: Source, format: Format | None) -> Transcript:
    """The transcript of a file; None recognises the format.

    Raises Malformed, TooDeep, TooLarge, or Invalid that names the line, the pointer or the part at fault. Messages are
    made while the sessions are read, so a fault in one may show only then.
    """
    format = format or detect(source)
    if format is Format.CLAUDE_CODE:
        return claude_code.read(source)
    known = _FORMATS[format]
    return gather(format, source, known.read, pieces=known.pieces)
