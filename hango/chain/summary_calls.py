"""The call that asks for a summary, made from the call whose history it is to shorten. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hango.chain import estimator, summaries
from hango.chain.calls import NextCall
from hango.chain.request_hash import request_sha256
from hango.messages import Response, StopReason, is_blank

# Models count tokens in other ways; an answer of more than so many times what was asked for did not keep to it.
MOST_TIMES_ASKED: Final = 4
# With these the text is no summary, whatever it says.
_NO_SUMMARY: Final = frozenset({StopReason.REFUSAL, StopReason.CONTEXT_EXCEEDED})


def summary_call(planned: NextCall, through_seq: int) -> NextCall:
    """The call that asks for the summary of a base's history up to a message."""
    what = summaries.covered(planned.drafted.draft, planned.bodies, through_seq)
    state, draft = summaries.summarizer(planned.drafted.state, planned.drafted.draft, what)
    drafted = replace(planned.drafted, state=state, draft=draft, sha256=request_sha256(state, draft))
    return replace(planned, drafted=drafted, bodies={})


def summary_of(response: Response, window: int) -> str | None:
    """The text of an answer, without its thinking, if it may stand for the history of a model with this window.

    A refusal would lose what it covers, and a text that fills the window would leave no room for the next call.
    """
    text = "\n\n".join(block.view.text or "" for block in response.content if block.type == "text").strip()
    if is_blank(text) or response.stop_reason in _NO_SUMMARY:
        return None
    most = min(MOST_TIMES_ASKED * summaries.MAX_OUTPUT_TOKENS, window // 2)
    return text if estimator.text_tokens(text) <= most else None
