"""The persisted history, by seq: appended, never changed. Bodies and digests are read apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from uuid import UUID

import msgspec

from hango.digests import MessageDigest
from hango.domain import RunID, SessionMessage
from hango.errors import NotFound
from hango.store.connection import Scope, one
from hango.store.db import messages as rows

# Messages of one statement: its parameters are made between two turns of the event loop.
STRETCH = 500

# Messages whose digests are read at once: some megabytes.
LONG = 16_384

_digests = msgspec.json.Decoder(list[MessageDigest])
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append. `content` is compact JSON text of its blocks; the digest's seq is given at the append."""

    role: str
    content: str
    digest: MessageDigest
    model: str | None = None
    created_at: datetime | None = None  # None: now
    run_id: RunID | None = None


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The end of a history. `content` is the JSON text of its blocks."""

    seq: int
    role: str
    content: str
    run_id: RunID | None


async def append(scope: Scope, session_id: UUID, new: Sequence[NewMessage]) -> list[int]:
    """Append in order, all or none; returns the seqs, which have no gaps. Raises NotFound.

    The session is held until the transaction ends. May be called many times in one transaction. A long history goes
    in stretches, each in two statements, so that writing it does not hold up everybody else's requests.
    """
    seqs: list[int] = []
    for start in range(0, len(new), STRETCH):
        seqs += await _append_stretch(scope, session_id, new[start : start + STRETCH])
    return seqs


async def _append_stretch(scope: Scope, session_id: UUID, new: Sequence[NewMessage]) -> list[int]:
    tokens = [message.digest.tokens for message in new]
    after = one_session(
        await rows.extend_session(
            scope.conn,
            tenant_id=scope.tenant_id,
            session_id=session_id,
            count=len(new),
            tokens=sum(tokens),
        )
    )
    seqs = list(range(after.last_seq - len(new) + 1, after.last_seq + 1))
    sums = list(accumulate(tokens, initial=after.tokens - sum(tokens)))[1:]
    await rows.add_messages(
        scope.conn,
        tenant_id=scope.tenant_id,
        session_id=session_id,
        seqs=seqs,
        roles=[message.role for message in new],
        models=[message.model for message in new],
        run_ids=[message.run_id for message in new],
        token_counts=tokens,
        tokens_through=sums,
        digests=[_digest_text(message.digest, seq) for message, seq in zip(new, seqs, strict=True)],
        created_ats=[message.created_at for message in new],
        contents=[message.content for message in new],
    )
    return seqs


async def page(scope: Scope, session_id: UUID, after: int, limit: int) -> list[SessionMessage]:
    """At most `limit` messages after a seq, in order."""
    found = await rows.page_messages(
        scope.conn, tenant_id=scope.tenant_id, session_id=session_id, after=after, most=limit
    )
    return [
        SessionMessage(
            seq=row.seq,
            role=row.role,
            content=row.content,
            model=row.model,
            run_id=None if row.run_id is None else RunID(row.run_id),
            created_at=row.created_at,
        )
        for row in found
    ]


async def last(scope: Scope, session_id: UUID) -> LastMessage | None:
    """The last message of a session, of a subagent's too. None: there is none, or no such session."""
    row = await rows.get_last_message(scope.conn, tenant_id=scope.tenant_id, session_id=session_id)
    if row is None:
        return None
    return LastMessage(row.seq, row.role, row.content, None if row.run_id is None else RunID(row.run_id))


async def bodies(scope: Scope, session_id: UUID, *, after_seq: int, through_seq: int) -> dict[int, str]:
    """JSON texts of the blocks of a stretch, by seq."""
    found = await rows.list_bodies(
        scope.conn, tenant_id=scope.tenant_id, session_id=session_id, after=after_seq, through=through_seq
    )
    return {row.seq: row.content for row in found}


async def body(scope: Scope, session_id: UUID, seq: int) -> str | None:
    """JSON text of the blocks of one message."""
    return await rows.get_body(scope.conn, tenant_id=scope.tenant_id, session_id=session_id, seq=seq)


async def digests(scope: Scope, session_id: UUID, *, after_seq: int, through_seq: int) -> list[MessageDigest]:
    """Digests of a stretch, in order. A long one is read in parts: its text is never in memory as a whole."""
    found: list[MessageDigest] = []
    for start in range(after_seq, through_seq, LONG):
        joined = await rows.join_digests(
            scope.conn,
            tenant_id=scope.tenant_id,
            session_id=session_id,
            after=start,
            through=min(start + LONG, through_seq),
        )
        for text in joined:
            read = _digests.decode(text)
            found += read if through_seq - after_seq <= LONG else map(_without_text, read)
    return found


async def tokens(scope: Scope, session_id: UUID, *, after_seq: int, through_seq: int) -> int:
    """The sum of the tokens of a stretch, in a time that does not grow with it."""
    return one(
        await rows.sum_tokens(
            scope.conn, tenant_id=scope.tenant_id, session_id=session_id, after=after_seq, through=through_seq
        )
    )


def _without_text(digest: MessageDigest) -> MessageDigest:
    """The same, without a hold on the text that it was read from."""
    return msgspec.structs.replace(digest, raw_blocks=digest.raw_blocks.copy())


def one_session(row: rows.ExtendSessionRow | None) -> rows.ExtendSessionRow:
    if row is None:
        raise NotFound
    return row


def _digest_text(digest: MessageDigest, seq: int) -> str:
    return _encode(msgspec.structs.replace(digest, seq=seq)).decode()
