"""Extractive answering without a model: the sentences of a context that share most with a question. Pure.

Deterministic and of no language in particular: words are compared by their first letters, so that "Mondays" meets
"Monday", and a word counts the more the fewer sentences have it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Five letters: enough to tell words apart, few enough to meet their endings.
STEM_LETTERS = 5
QUOTE_LETTERS = 300
MOST_QUOTES = 3
# A sentence with less than half of the best one's score is about something else.
LEAST_SHARE = 0.5

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\w+")
# Scripts that are written without spaces: a pair of letters stands for a word.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")

# Words that say nothing of the matter, of a few languages.
STOP_WORDS = frozenset(
    """
    a an and any are as at be been but by can could did do does for from had has have he her his how i if in into is
    it its just let like may me more my no not of on one or our out she should so some tell than that the their them
    then there these they this those to up us was we were what when where which while who whom whose why will with
    would you your
    aber als am auch auf aus bei bin bist das dass dem den der des die ein eine einem einen einer es für hat ich ihr
    im ist kann man mein mit nach nicht noch oder sie sind um und uns von vom war was wann wo warum welche welcher
    welches wenn wer wie wir wird zu zum zur
    au aux avec ce cette dans de du elle en est et il ils je la le les leur mais ne nous ou où par pas pour qu que qui
    quand quel quelle sa se ses son sont sur un une vous y
    al como con cuando cual cuál del donde dónde el ella ellos es esta este la las lo los más mi para pero por qué
    quién se si sin su sus una uno unos
    và là của có cho không một những các này đó khi nào ai gì thì ở
    """.split()  # noqa: SIM905  (a list of two hundred strings reads worse)
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of the request and its place in it, as people would say it."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    place: str
    sentence: str


def best_quotes(passages: Iterable[Passage], question: str) -> list[Quote]:
    """The sentences nearest to the question, best first, none twice; none when no word is shared."""
    wanted = _question_stems(question)
    if not wanted:
        return []
    sentences = [
        (Quote(passage.place, sentence), set(_stems(sentence)) & wanted)
        for passage in passages
        for sentence in _sentences(passage.text)
    ]
    spread = Counter(stem for _, shared in sentences for stem in shared)
    weights = {stem: math.log(1 + len(sentences) / times) for stem, times in spread.items()}
    scored = [
        # Sorted, because a sum of floats depends on its order.
        (sum(sorted(weights[stem] for stem in shared)), -place, quote)
        for place, (quote, shared) in enumerate(sentences)
        if shared
    ]
    return _distinct(sorted(scored, key=lambda one: one[:2], reverse=True))


def _distinct(scored: Sequence[tuple[float, int, Quote]]) -> list[Quote]:
    found: dict[str, Quote] = {}
    for score, _, quote in scored:
        if score < scored[0][0] * LEAST_SHARE or len(found) == MOST_QUOTES:
            break
        found.setdefault(quote.sentence, quote)
    return list(found.values())


def _sentences(text: str) -> list[str]:
    """What a text states, white space taken together, cut to a length that can be quoted. No question answers."""
    found = [" ".join(piece.split()) for piece in _SENTENCE_END.split(text)]
    return [
        one if len(one) <= QUOTE_LETTERS else one[:QUOTE_LETTERS] + "…"
        for one in found
        if one and not one.endswith(("?", "？"))
    ]


def _question_stems(question: str) -> set[str]:
    """The question's words without stop words; all of them when nothing else is left."""
    words = _words(question)
    telling = [word for word in words if word not in STOP_WORDS]
    return set(_stemmed(telling or words))


def _stems(text: str) -> list[str]:
    return _stemmed(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def _stemmed(words: Iterable[str]) -> list[str]:
    stems: list[str] = []
    for word in words:
        if _UNSPACED.search(word):
            stems += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        else:
            stems.append(word[:STEM_LETTERS])
    return stems
