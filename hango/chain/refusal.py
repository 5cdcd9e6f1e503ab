"""Why a block of a history is not sent, looking at its message alone."""

from __future__ import annotations

from collections.abc import Mapping

from hango.dialect import Dialect, takes_block
from hango.digests import BlockDigest
from hango.errors import Reason
from hango.messages import THINKING_TYPES

SENTENCES: Mapping[Reason, str] = {
    Reason.EMPTY_TEXT: "The message is empty or white space and is not sent.",
    Reason.UNSIGNED_THINKING: "Thinking without a signature is shown and not sent.",
    Reason.FOREIGN_THINKING: "Thinking that another model signed is shown and not sent.",
    Reason.BLOCK_NOT_TAKEN: "A block of a type that the provider does not take is shown and not sent.",
    Reason.UNPAIRED_TOOL_USE: "A call that cannot have a result is shown and not sent.",
    Reason.UNPAIRED_TOOL_RESULT: "A result without its call is shown and not sent.",
    Reason.DUPLICATE_TOOL_USE_ID: "A second call with an id of the same message is shown and not sent.",
    Reason.DUPLICATE_TOOL_RESULT: "A second result of one call is shown and not sent.",
}


def refusal(block: BlockDigest, role: str, dialect: Dialect, model: str, own_model: str) -> Reason | None:
    """The reason, or None when the block is sent. `model` is called, `own_model` the agent's: "<provider>/<name>"."""
    if block.blank:
        return Reason.EMPTY_TEXT
    if block.type in THINKING_TYPES:
        if block.signer is None:
            return Reason.UNSIGNED_THINKING
        if not dialect.thinking or role != "assistant":
            return Reason.BLOCK_NOT_TAKEN
        # "" is the agent's own model; an import may name the model without its provider.
        if (block.signer or own_model) not in (model, model.partition("/")[2]):
            return Reason.FOREIGN_THINKING
    elif not takes_block(dialect, block.type, role):
        return Reason.BLOCK_NOT_TAKEN
    return None
