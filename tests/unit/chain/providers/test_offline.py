"""The offline provider: quotes the sentences nearest to the question, the same ones every time."""

from __future__ import annotations

import json
import time

import pytest

from hango.chain import estimator
from hango.chain.digest import digests
from hango.chain.providers import extract
from hango.chain.providers.extract import Passage, Quote, best_quotes
from hango.chain.providers.offline import NO_QUESTION, NOTHING, WHAT_IT_IS, answer
from hango.errors import ProviderTimeout
from hango.messages import Request, Response, StopReason, SystemText, ToolSpec, Usage, text_block
from tests.unit.chain.providers.making import OFFLINE, assistant, block, call, request, result, user

MEMORY = "The owner is away on Mondays. Bolts are kept in the red box."


def text_of(made: Request) -> str:
    return answer(made).content[0].view.text or ""


def test_the_answer_quotes_the_context_with_its_place() -> None:
    """The answer is the sentences that overlap the question most, quoted with their place in the request."""
    made = request(
        user("What is in the box?"),
        assistant(call("c1", path="box.txt")),
        user(result("c1", [{"type": "text", "text": "Forty bolts. Two cords."}])),
        assistant("Let me see."),
        user("Where are the bolts kept?"),
        system=(SystemText("You look after the stock list."), SystemText(MEMORY)),
    )

    assert text_of(made) == (f"“Bolts are kept in the red box.” (from system block 2)\n{WHAT_IT_IS}")


def test_leaving_a_memory_out_changes_the_answer() -> None:
    """Leaving a memory out visibly changes an answer."""
    asked = user("When is the owner away?")
    with_memory = request(asked, system=(SystemText("You look after the stock list."), SystemText(MEMORY)))
    without = request(asked, system=(SystemText("You look after the stock list."),))

    assert "The owner is away on Mondays." in text_of(with_memory)
    assert text_of(without) == f"{NOTHING}\n{WHAT_IT_IS}"


def test_every_place_of_a_request_can_be_quoted() -> None:
    """System blocks, messages, calls, results and text documents are read."""
    document = block(
        type="document", source={"type": "text", "media_type": "text/plain", "data": "Zinc in a document."}
    )
    made = request(
        user("Zinc said the user.", document),
        assistant("Zinc said the model.", call("c1", metal="zinc")),
        user(result("c1", "Zinc in a result."), "Zinc?"),
        system=(SystemText("Zinc in the system."),),
    )
    words = ("system", "user", "document", "model", "metal", "result")

    assert sorted(_nearest(made, word) for word in words) == [
        "“Zinc in a document.” (from a document in message 1)",
        "“Zinc in a result.” (from a tool's result in message 3)",
        "“Zinc in the system.” (from system block 1)",
        "“Zinc said the model.” (from message 2, assistant)",
        "“Zinc said the user.” (from message 1, user)",
        '“{"metal":"zinc"}” (from a call of read_file in message 2)',
    ]


def _nearest(made: Request, word: str) -> str:
    asked = request(*made.messages[:-1], user(result("c1", "Zinc in a result."), f"{word}?"), system=made.system)
    return text_of(asked).split("\n")[0]


def test_the_answer_says_what_it_is_when_there_is_no_question() -> None:
    """It says plainly what it is, also without anything to answer."""
    assert text_of(request(user(result("c1", "12 kg")))) == f"{NO_QUESTION}\n{WHAT_IT_IS}"


def test_usage_and_stop_reason() -> None:
    """Usage counts what was read and written; the limit and the stop texts of the request are kept."""
    made = request(user("Where are the bolts?"), system=(SystemText("Bolts: red box."),), max_output_tokens=1000)
    text = f"“Bolts: red box.” (from system block 1)\n{WHAT_IT_IS}"
    read = sum(estimator.count(["Where are the bolts?", "Bolts: red box."])) + estimator.MESSAGE_OVERHEAD

    assert answer(made) == Response((text_block(text),), StopReason.END_TURN, Usage(read, estimator.count([text])[0]))
    assert answer(request(user("Where are the bolts?"), max_output_tokens=5)) == Response(
        (text_block("Nothing in this request shares"),), StopReason.MAX_TOKENS, Usage(input_tokens=8, output_tokens=5)
    )
    stopped = answer(request(user("Where?"), params={"stop": [" shares"]}))
    assert (stopped.content, stopped.stop_reason) == (
        (text_block("Nothing in this request"),),
        StopReason.STOP_SEQUENCE,
    )


def test_usage_counts_the_whole_request() -> None:
    """Every system block, tool and message of the request is counted as estimates count it."""
    tool = ToolSpec("now", "The time.")
    messages = (user("Hi."), assistant(call("c1", path="a")), user(result("c1", "Forty.")))
    made = request(*messages, system=(SystemText("Be brief."),), tools=(tool,))

    parts = sum(estimator.count(["Be brief.", estimator.tool_text(tool)]))
    parts += sum(one.tokens + estimator.MESSAGE_OVERHEAD for one in digests(messages))
    assert answer(made).usage.input_tokens == parts


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Wann ist der Besitzer abwesend?", "Der Besitzer ist montags abwesend."),
        ("Quand le propriétaire est-il absent ?", "Le propriétaire est absent le lundi."),
        ("店主什么时候不在？", "店主星期一不在。"),
        ("Chủ vắng mặt ngày nào?", "Chủ vắng mặt vào thứ Hai."),
        ("Cafe\u0301?", "The café opens at nine."),
    ],
)
def test_questions_of_several_languages(question: str, sentence: str) -> None:
    """Words meet in any script, with or without spaces, however their accents are written."""
    others = [Passage("a", "Forty bolts. Vierzig Schrauben. Quarante vis. 四十颗螺栓。 Bốn mươi con ốc.")]

    assert best_quotes([*others, Passage("b", sentence)], question)[0] == Quote("b", sentence)


def test_words_meet_their_endings() -> None:
    """Words are compared by their first letters."""
    found = best_quotes([Passage("a", "Closed on Mondays. Open on Friday.")], "And Monday?")

    assert found == [Quote("a", "Closed on Mondays.")]


def test_a_question_is_no_answer_and_nothing_is_quoted_twice() -> None:
    """An earlier question is not quoted; the same sentence in two places is quoted once."""
    passages = [Passage("a", "Where are the bolts?"), Passage("b", "Bolts: box."), Passage("c", "Bolts: box.")]

    assert best_quotes(passages, "Where are the bolts?") == [Quote("b", "Bolts: box.")]


def test_a_long_sentence_is_cut() -> None:
    """A text without an end is quoted up to a length."""
    found = best_quotes([Passage("a", "zinc " * 1000)], "zinc")

    assert found == [Quote("a", ("zinc " * 1000)[: extract.QUOTE_LETTERS] + "…")]


def test_a_very_long_line_is_read_in_linear_time() -> None:
    """No text makes the reading slow: five times the text takes no more than ten times as long."""

    def seconds(letters: int) -> float:
        passages = [Passage("a", "." * letters), Passage("b", " " * letters), Passage("c", "a." * (letters // 2))]
        begun = time.process_time()
        best_quotes(passages, "zinc")
        return time.process_time() - begun

    seconds(100_000)
    assert seconds(1_000_000) < 10 * max(seconds(200_000), 0.02)


async def test_complete_answers_and_keeps_its_deadline() -> None:
    """One call, one answer; a request that takes longer than the deadline ends in ProviderTimeout."""
    made = request(user("Where are the bolts?"), system=(SystemText(MEMORY),), max_output_tokens=1000)

    assert await OFFLINE.complete(made, deadline=60) == answer(made)
    with pytest.raises(ProviderTimeout):
        await OFFLINE.complete(made, deadline=0)


def test_the_body_shows_everything_that_is_sent() -> None:
    """Its own plain shape: nothing of the request is hidden, cache marks apart."""
    made = request(
        user(block(type="text", text="Hi.", cache_control={"type": "ephemeral"})),
        model="extract",
        system=(SystemText("A.", marked=True),),
        tools=(ToolSpec("now", "The time."),),
        params={"temperature": 0, "stop": "END"},
    )

    assert json.loads(OFFLINE.body(made)) == {
        "model": "extract",
        "max_output_tokens": 64,
        "stop": ["END"],
        "temperature": 0,
        "system": ["A."],
        "tools": [{"name": "now", "description": "The time.", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    }
