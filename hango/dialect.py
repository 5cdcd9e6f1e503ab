"""What a provider's wire takes: block types, names, ids. Rules read it and adapters obey it, so that both agree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Dialect:
    """Limits of one wire format. `block_types` None means: any block goes out as it came."""

    name: str  # "anthropic", "openai", "offline"
    block_types: frozenset[str] | None
    thinking: bool  # takes thinking blocks that its own model signed
    system_in_history: bool  # takes role system inside the history
    tool_blocks_need_tools: bool  # refuses calls and results in a request without tools
    cache_marks: bool
    tool_name: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
    tool_id: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
    max_tools: int | None = None
    params: frozenset[str] = frozenset()  # the params that it takes


def takes_block(dialect: Dialect, type: str, role: str) -> bool:
    """Whether a block goes out in a message of this role: Anthropic takes no picture or document of an assistant."""
    if dialect.name == "anthropic" and role == "assistant" and type in ("image", "document"):
        return False
    return dialect.block_types is None or type in dialect.block_types


def takes_system(dialect: Dialect, before: str | None, after: str | None, *, only_text: bool) -> bool:
    """Whether a system message of the history goes out as one, between turns of these roles (None: there is none).

    Anthropic takes it only with text alone, after a turn of the user, before one of the assistant or last.
    """
    if not dialect.system_in_history:
        return False
    return dialect.name != "anthropic" or (only_text and before == "user" and after in ("assistant", None))


def fitting(base: str, tail: str, allowed: re.Pattern[str]) -> str:
    """`base` and `tail` as one name, the base cut until the name is allowed."""
    while base and not allowed.fullmatch(base + tail):
        base = base[:-1]
    return base + tail


def clean_names(names: Iterable[str], allowed: re.Pattern[str]) -> dict[str, str]:
    """Each name with the name it gets on the wire: itself when allowed, else a cleaned one, never two the same.

    Depends on the names alone, not on their order: the same state gives the same bytes.
    """
    wanted = sorted(set(names))
    cleaned = {name: name for name in wanted if allowed.fullmatch(name)}
    taken = set(cleaned)
    for name in wanted:
        if name in cleaned:
            continue
        base = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:55] or "x"
        made = fitting(base, f"_{sha256(name.encode()).hexdigest()[:8]}", allowed)
        while made in taken:
            made = fitting(base, f"_{sha256(made.encode()).hexdigest()[:8]}", allowed)
        taken.add(made)
        cleaned[name] = made
    return cleaned
