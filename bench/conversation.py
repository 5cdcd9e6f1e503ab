"""The content that every contestant gets: a history, tools, a system prompt, memory and skills. The same at every call.

About 150 tokens a message, in turns of four: the user's text, text with a tool call, its result, an answer. Standard
library only, because the peers' environments read it too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

TOOLS = 40
SKILLS = 10
LAST_WORDS = "And what follows from that?"

_VOCABULARY = (
    "agent answer audit batch block body budget cache call cause chain change check client column commit context copy "
    "count cursor deadline default digest draft entry error estimate event export field file filter folder format "
    "guard handler header history index inspect invoice job key label ledger limit line list lock log mark memory "
    "merge message method migration model module note number option order override owner page pair parser part path "
    "plan policy pool prefix preview process prompt provider query queue quota range reader reason record region "
    "release reply report request result retry role route row rule run sample schema scope server session setting "
    "shape signal skill slot snapshot source span stage state statement store stream summary table task tenant test "
    "text thread token tool total trace turn type unit update usage user value version view window worker write"
)
_WORDS = _VOCABULARY.split()


def messages(count: int) -> Iterator[dict[str, Any]]:
    """The first `count` messages of the one history: a shorter history is the beginning of a longer one."""
    rng = random.Random(1)
    for at in range(count):
        chars = rng.randint(350, 850)
        yield _TURN[at % 4](rng, chars, at)


def tools() -> list[dict[str, Any]]:
    """Definitions as an agent declares them."""
    rng = random.Random(2)
    made = []
    for number in range(TOOLS):
        fields = {
            f"{rng.choice(_WORDS)}_{at}": {"type": rng.choice(("string", "integer")), "description": _text(rng, 90)}
            for at in range(5)
        }
        schema = {"type": "object", "properties": fields, "required": list(fields)[:2]}
        made.append({"name": tool_name(number), "description": _text(rng, 500), "input_schema": schema})
    return made


def tool_name(number: int) -> str:
    return f"tool_{number % TOOLS:02d}"


def system_prompt() -> str:
    return _text(random.Random(3), 3000)


def memory() -> str:
    """The text of /memories/AGENTS.md."""
    return "# Memory\n\n" + _text(random.Random(4), 6000)


def skills() -> dict[str, str]:
    """Texts of skill files by name."""
    rng = random.Random(5)
    made = {}
    for number in range(SKILLS):
        name = f"skill-{number}"
        head = f"---\nname: {name}\ndescription: {_text(rng, 200)}\n---\n"
        made[name] = f"{head}\n# {name}\n\n{_text(rng, 3000)}\n"
    return made


def _text(rng: random.Random, chars: int) -> str:
    words = []
    while chars > 0:
        word = rng.choice(_WORDS)
        words.append(word)
        chars -= len(word) + 1
    return " ".join(words).capitalize() + "."


def _listing(rng: random.Random, chars: int) -> str:
    lines: list[str] = []
    while chars > 0:
        a, b, c = rng.sample(_WORDS, 3)
        line = f"{len(lines) + 1:>6}\tdef {a}_{b}(self, {c}: int = {rng.randint(0, 999)}) -> dict[str, int]:"
        lines.append(line)
        chars -= len(line) + 1
    return "\n".join(lines)


def _said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _question(rng: random.Random, chars: int, at: int) -> dict[str, Any]:
    return _said("user", _words(_text(rng, chars)))


def _call(rng: random.Random, chars: int, at: int) -> dict[str, Any]:
    path = f"/project/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py"
    wanted = {"path": path, "query": _text(rng, chars // 3), "limit": rng.randint(1, 500)}
    call = {"type": "tool_use", "id": _call_id(at), "name": tool_name(at), "input": wanted}
    return _said("assistant", _words(_text(rng, chars // 2)), call)


def _result(rng: random.Random, chars: int, at: int) -> dict[str, Any]:
    content = [_words(_listing(rng, chars))]
    return _said("user", {"type": "tool_result", "tool_use_id": _call_id(at - 1), "content": content})


def _answer(rng: random.Random, chars: int, at: int) -> dict[str, Any]:
    return _said("assistant", _words(_text(rng, chars)))


def _call_id(at: int) -> str:
    return f"toolu_{at:08d}"


_TURN = (_question, _call, _result, _answer)
