"""What a conversation needs next, read from its last message."""

from __future__ import annotations

import pytest

from hango.chain.turns import Need, Next, next_of
from hango.messages import Block, StopReason, text_block, tool_result

SAID = text_block("Done.")
BUILTIN = Block.make("tool_use", id="a", name="ls", input={"path": "/"})
CLIENTS = Block.make("tool_use", id="b", name="order_parts", input={})
SERVERS = Block.make("server_tool_use", id="c", name="web_search", input={})
DECLARED = {"order_parts"}


@pytest.mark.parametrize(
    ("content", "stop_reason", "wanted"),
    [
        ((SAID,), StopReason.END_TURN, Next(Need.NOTHING)),
        ((), StopReason.END_TURN, Next(Need.NOTHING)),
        ((SAID, SERVERS), StopReason.END_TURN, Next(Need.NOTHING)),
        ((SAID, BUILTIN), StopReason.TOOL_USE, Next(Need.TOOLS, (BUILTIN,))),
        ((CLIENTS,), StopReason.TOOL_USE, Next(Need.ACTION, (), (CLIENTS,))),
        ((CLIENTS, BUILTIN), StopReason.TOOL_USE, Next(Need.TOOLS, (BUILTIN,), (CLIENTS,))),
        ((BUILTIN,), StopReason.MAX_TOKENS, Next(Need.NOTHING)),
        ((BUILTIN,), StopReason.REFUSAL, Next(Need.NOTHING)),
        ((SERVERS,), StopReason.PAUSE_TURN, Next(Need.CALL)),
        ((BUILTIN,), None, Next(Need.TOOLS, (BUILTIN,))),
    ],
)
def test_after_an_answer_its_calls_say_what_comes(
    content: tuple[Block, ...], stop_reason: StopReason | None, wanted: Next
) -> None:
    """Built-in tools are carried out, the client's wait for it, a cut answer's calls are not, a paused turn goes on."""
    assert next_of("assistant", content, stop_reason, DECLARED, is_own=True) == wanted


@pytest.mark.parametrize(
    ("role", "content", "is_own"),
    [
        ("user", (SAID,), False),
        ("user", (tool_result("a", "/a.md"),), True),
        ("assistant", (SAID,), False),
        ("assistant", (BUILTIN,), False),
    ],
)
def test_what_the_run_has_not_answered_itself_wants_a_call(role: str, content: tuple[Block, ...], is_own: bool) -> None:
    """Words of the user, results, and whatever stood there before the run."""
    assert next_of(role, content, StopReason.END_TURN, DECLARED, is_own=is_own) == Next(Need.CALL)
