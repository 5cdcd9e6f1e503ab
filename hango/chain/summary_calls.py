"""The call that asks for a summary, made from the call whose history it is to shorten. Pure."""

from __future__ import annotations

from dataclasses import replace

from hango.chain import summaries
from hango.chain.calls import NextCall
from hango.chain.request_hash import request_sha256
from hango.messages import Response


def summary_call(planned: NextCall, through_seq: int) -> NextCall:
    """The call that asks for the summary of a base's history up to a message."""
    what = summaries.covered(planned.drafted.draft, planned.bodies, through_seq)
    state, draft = summaries.summarizer(planned.drafted.state, planned.drafted.draft, what)
    drafted = replace(planned.drafted, state=state, draft=draft, sha256=request_sha256(state, draft))
    return replace(planned, drafted=drafted, bodies={})


def text_of(response: Response) -> str:
    """The text of an answer, without its thinking."""
    return "\n\n".join(block.view.text or "" for block in response.content if block.type == "text").strip()
