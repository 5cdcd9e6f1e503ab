"""Compaction: which messages a summary covers, the request that asks for it, and what it no longer mentions. Pure.

The summarizer gets the filtered history as one text: what overrides leave out is not in it, and what they replace is in
its new words. Where that is more than its model holds, the middles of the longest messages are left out. The cut never
separates a call from its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as replace_item

from hango.chain import estimator, history
from hango.chain.digest import digest, shown_text
from hango.chain.draft import EXTRA_SEQ, SUMMARY_SEQ, Bodies, Draft
from hango.chain.measure import measure
from hango.chain.middleware.base import block
from hango.chain.pairs import together
from hango.chain.parts import message_part, system_part
from hango.chain.replacement import replaced_blocks
from hango.chain.state import State
from hango.messages import MessageRole, text_block

SUMMARIZER = system_part("summarizer")
PROMPT = """\
You summarize the beginning of a conversation between a user and an assistant, so that the assistant can go on without
reading it again. Write what it needs: what the user wants and has decided, what was done and found out, what is open.
Keep every file path, number, URL, identifier and command that may be needed again, letter by letter. Do not answer the
conversation, do not add anything that is not in it. Write plain text."""
TASK = "Summarize the conversation above."
MAX_SHOWN_CHARS: Final = 20_000  # of one message: the middle of a longer one is left out
MAX_OUTPUT_TOKENS: Final = 4096
# Of the model's window without the answer. The rest is for the prompt, and for estimates that are too low; no learnt
# factor stands here, by which the same base would ask for something else tomorrow.
SHOWN_SHARE: Final = 0.7
LEAST_SHOWN_TOKENS: Final = 500
MARK_CHARS: Final = 60  # who said it, and how much of it is left out

# What a reader would look for again. Linear patterns: every alternative begins with another kind of character.
_FACTS = re.compile(
    r"https?://[^\s<>\"'`)\]]{1,500}"
    r"|(?<![\w/.])~?(?:/[\w.@+-]{1,200}){2,40}/?"
    r"|(?<![\w.])[\w-]{1,100}(?:/[\w.-]{1,100}){1,20}\.[A-Za-z0-9]{1,10}"
    r"|(?<![\w.-])[\w-]{1,100}\.[A-Za-z]{1,5}[A-Za-z0-9]{0,5}(?![\w.])"
    r"|`[^`\n]{2,300}`"
    r"|(?<![\w.])[A-Za-z]{1,20}[-_]?\d[\w-]{2,60}"
    r"|(?<![\w.,-])\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?![\d-])"
    r"|(?<![\w.,])\d{1,3}(?:[ ,]\d{3}){1,6}(?!\w|,\d)"
    r"|(?<![\w.,])\d{1,20}(?:[.,:]\d{1,10}){1,3}(?!\w)"
    r"|(?<![\w.,])\d{2,20}(?!\w)"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
MAX_MISSING: Final = 200
MAX_SEARCHED_CHARS: Final = 2_000_000
PIECE_CHARS: Final = 4_000  # hostile ones take 20 ms


@dataclass(frozen=True, slots=True)
class Covered:
    """The beginning of a history that a summary would stand for: who said what, and the last message of it."""

    said: tuple[tuple[str, str], ...]
    through_seq: int

    @property
    def text(self) -> str:
        return self.cut(None)

    def cut(self, most: int | None) -> str:
        """One text, without the middle of what has more than so many characters."""
        return "\n\n".join(f"[{who}]\n{text if most is None else _middle_out(text, most)}" for who, text in self.said)


def cut_of(draft: Draft, keep: int) -> int | None:
    """The last message that a summary would cover; None when there is nothing to cover."""
    items = [item for item in draft.messages if item.seq > 0]
    at = len(items) - keep
    groups = together(items)
    while at > 0:
        first = min((min(group) for i, group in groups.items() if i < at <= max(group)), default=at)
        if first == at:
            return items[at - 1].seq
        at = first
    return None


def may_cut(draft: Draft, through_seq: int) -> bool:
    """Whether a summary may end with a message: it is one of those that are not under a summary yet, and no pair's."""
    items = [item for item in draft.messages if item.seq > 0]
    at = next((i + 1 for i, item in enumerate(items) if item.seq == through_seq), None)
    return at is not None and not any(i < at <= max(group) for i, group in together(items).items())


def covered(draft: Draft, bodies: Bodies, through_seq: int) -> Covered:
    """What the summary covers, the summary before it first."""
    found = list[tuple[str, str]]()
    if SUMMARY_SEQ in draft.texts and SUMMARY_SEQ not in draft.left_out:
        text = draft.mark(message_part(SUMMARY_SEQ)).replacement or draft.texts[SUMMARY_SEQ]
        found.append(("summary of what was before", text))
    for item in draft.kept_messages():
        if not 0 < item.seq <= through_seq:
            continue
        replacement = draft.mark(message_part(item.seq)).replacement
        blocks = bodies[item.seq] if replacement is None else replaced_blocks(bodies[item.seq], replacement)
        found.append((item.role, shown_text(blocks)))
    return Covered(tuple(found), through_seq)


def summarizer(state: State, draft: Draft, what: Covered) -> tuple[State, Draft]:
    """The call that asks for the summary: the agent's model, no tools, one message."""
    agent = replace(
        state.agent,
        system=(),
        tools=(),
        params={},
        max_output_tokens=min(MAX_OUTPUT_TOKENS, state.agent.max_output_tokens),
    )
    room = int(SHOWN_SHARE * (state.window - agent.max_output_tokens))
    text = f"{_fitted(what, max(room, LEAST_SHOWN_TOKENS))}\n\n{TASK}"
    item = replace_item(digest(MessageRole.USER, (text_block(text),), None), seq=EXTRA_SEQ)
    repaired = history.repair([item], state.dialect, agent.model, has_tools=False, prefill=False)
    made = Draft(
        system=(block(SUMMARIZER, PROMPT),),
        tools=(),
        messages=(item,),
        texts={EXTRA_SEQ: text},
        repair=repaired,
        unmarked=repaired,
    )
    asked = replace(state, agent=agent, messages=(), summary=None, saved=())
    return asked, replace(made, size=measure(made, state.factor))


def missing(what: Covered, summary: str) -> list[str]:
    """File paths, numbers, URLs, identifiers and commands of the covered text that the summary does not have."""
    missed: dict[str, None] = {}
    for piece in _pieces(what.text):
        for fact in map(_trimmed, _FACTS.findall(piece)):
            if fact and fact not in missed and fact not in summary:
                missed[fact] = None
                if len(missed) == MAX_MISSING:
                    return [*missed]
    return [*missed]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that end with a line or a word: a search lets nobody else work until it is over."""
    at, end = 0, min(len(text), MAX_SEARCHED_CHARS)
    while at < end:
        stop = min(at + PIECE_CHARS, end)
        if stop < end:
            cut = max(text.rfind("\n", at, stop), text.rfind(" ", at, stop))
            stop = cut + 1 if cut > at else stop
        yield text[at:stop]
        at = stop


def _trimmed(fact: str) -> str:
    return fact.strip("`").rstrip(".,;:!?")


def _fitted(what: Covered, most_tokens: int) -> str:
    """The covered text in so many tokens of the counting encoding."""
    text = what.cut(MAX_SHOWN_CHARS)
    while (tokens := estimator.count([text])[0]) > most_tokens:
        chars = int(0.95 * len(text) * most_tokens / tokens)
        most = _shared([len(said) for _, said in what.said], chars - MARK_CHARS * len(what.said))
        text = _middle_out(what.cut(most), chars)
    return text


def _shared(lengths: Sequence[int], most: int) -> int:
    """So much of each is at most `most` of all: what the short ones do not need is the long ones'."""
    left = max(most, 0)
    for at, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - at)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _middle_out(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[len(text) - half :]}"
