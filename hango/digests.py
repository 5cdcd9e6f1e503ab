"""The digest of a message, as a record: what is kept beside its body, so that most rules never read the body."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class BlockDigest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What rules and totals need of one block, without its body.

    `id` is the id of a call or the id a result answers; `name` the tool's; `signer` the model that signed a
    thinking block ("" the agent's own, None nobody); `blank` a text of nothing but white space, or a picture or
    document of nothing; `odd` a call whose input is no JSON object.
    """

    type: str
    tokens: int
    id: str | None = None
    name: str | None = None
    signer: str | None = None
    blank: bool = False
    odd: bool = False


class Form(StrEnum):
    """How much of a message the rules must look at. Most messages are of the first three forms."""

    PLAIN = "plain"  # text alone: nothing to do
    CALLS = "calls"  # an assistant's text and client calls with sound ids
    RESULTS = "results"  # a user's results, then text
    OTHER = "other"  # anything else: looked at block by block


class MessageDigest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept beside a message's body, computed once, at the write.

    `ids` are the calls' or results' ids in order of the alphabet, one a line, for the forms that have them. `sha256`
    covers role, model and the body's text. `chars` and `preview` are of the message shown as text (200 code points).
    """

    seq: int
    role: str
    model: str | None
    chars: int
    tokens: int  # sum of the blocks
    preview: str
    sha256: str
    form: str
    ids: str
    raw_blocks: msgspec.Raw  # JSON text of the block digests: read only where a rule looks at them

    @property
    def plain(self) -> bool:
        return self.form == "plain"

    @property
    def blocks(self) -> tuple[BlockDigest, ...]:
        """The digests of the blocks, read anew at each call."""
        return read_block_digests(self.raw_blocks)


read_block_digests = msgspec.json.Decoder(tuple[BlockDigest, ...]).decode
