"""Made by sqlc from messages.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_messages', 'extend_session', 'get_body', 'get_last_message', 'join_digests', 'list_bodies', 'page_messages', 'sum_tokens']


EXTEND_SESSION = """\
update sessions
set last_seq = last_seq + %(count)s::integer, tokens = tokens + %(tokens)s::bigint
where tenant_id = %(tenant_id)s and id = %(session_id)s and deleted_at is null
returning last_seq, tokens
"""


@dataclass(frozen=True, slots=True)
class ExtendSessionRow:
    last_seq: int
    tokens: int


async def extend_session(
    conn: AsyncConnection[Any],
    *,
    count: int,
    tokens: int,
    tenant_id: UUID,
    session_id: UUID,
) -> ExtendSessionRow | None:
    """Take the next seqs of a session. Its row is held until the transaction ends: appends come one after another."""
    cursor = conn.cursor(row_factory=args_row(ExtendSessionRow))
    await cursor.execute(EXTEND_SESSION, {"count": count, "tokens": tokens, "tenant_id": tenant_id, "session_id": session_id})
    return await cursor.fetchone()


ADD_MESSAGES = """\
with added as (
  insert into messages (tenant_id, session_id, seq, role, model, run_id, tokens, tokens_through, digest, created_at)
  select
    %(tenant_id)s, %(session_id)s, n.seq, n.role, n.model, n.run_id, n.tokens, n.tokens_through, n.digest,
    coalesce(n.created_at, now())
  from (
    select
      unnest(%(seqs)s::integer[]) as seq,
      unnest(%(roles)s::text[]) as role,
      unnest(%(models)s::text[]) as model,
      unnest(%(run_ids)s::uuid[]) as run_id,
      unnest(%(token_counts)s::integer[]) as tokens,
      unnest(%(tokens_through)s::bigint[]) as tokens_through,
      unnest(%(digests)s::text[]) as digest,
      unnest(%(created_ats)s::timestamptz[]) as created_at
  ) n
)
insert into message_bodies (tenant_id, session_id, seq, content)
select %(tenant_id)s, %(session_id)s, n.seq, n.content
from (select unnest(%(seqs)s::integer[]) as seq, unnest(%(contents)s::text[]) as content) n
"""


async def add_messages(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    seqs: Sequence[int | None],
    contents: Sequence[str | None],
    roles: Sequence[str | None],
    models: Sequence[str | None],
    run_ids: Sequence[UUID | None],
    token_counts: Sequence[int | None],
    tokens_through: Sequence[int | None],
    digests: Sequence[str | None],
    created_ats: Sequence[datetime | None],
) -> None:
    """Many messages with their bodies in one statement, one array a column."""
    cursor = conn.cursor()
    await cursor.execute(ADD_MESSAGES, {"tenant_id": tenant_id, "session_id": session_id, "seqs": list(seqs), "contents": list(contents), "roles": list(roles), "models": list(models), "run_ids": list(run_ids), "token_counts": list(token_counts), "tokens_through": list(tokens_through), "digests": list(digests), "created_ats": list(created_ats)})


PAGE_MESSAGES = """\
select m.seq, m.role, b.content, m.model, m.run_id, m.created_at
from messages m
join message_bodies b on b.tenant_id = m.tenant_id and b.session_id = m.session_id and b.seq = m.seq
where m.tenant_id = %(tenant_id)s and m.session_id = %(session_id)s and m.seq > %(after)s::integer
order by m.seq
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class PageMessagesRow:
    seq: int
    role: str
    content: str
    model: str | None
    run_id: UUID | None
    created_at: datetime


async def page_messages(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    after: int,
    most: int,
) -> list[PageMessagesRow]:
    """Messages with their bodies, in order."""
    cursor = conn.cursor(row_factory=args_row(PageMessagesRow))
    await cursor.execute(PAGE_MESSAGES, {"tenant_id": tenant_id, "session_id": session_id, "after": after, "most": most})
    return await cursor.fetchall()


LIST_BODIES = """\
select seq, content
from message_bodies
where tenant_id = %(tenant_id)s and session_id = %(session_id)s and seq > %(after)s::integer and seq <= %(through)s::integer
order by seq
"""


@dataclass(frozen=True, slots=True)
class ListBodiesRow:
    seq: int
    content: str


async def list_bodies(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    after: int,
    through: int,
) -> list[ListBodiesRow]:
    """The bodies of a stretch of the history."""
    cursor = conn.cursor(row_factory=args_row(ListBodiesRow))
    await cursor.execute(LIST_BODIES, {"tenant_id": tenant_id, "session_id": session_id, "after": after, "through": through})
    return await cursor.fetchall()


GET_BODY = """\
select content
from message_bodies
where tenant_id = %(tenant_id)s and session_id = %(session_id)s and seq = %(seq)s
"""


async def get_body(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    seq: int,
) -> str | None:
    """One body."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(GET_BODY, {"tenant_id": tenant_id, "session_id": session_id, "seq": seq})
    return await cursor.fetchone()


JOIN_DIGESTS = """\
select
  (
    select convert_to('[' || coalesce(string_agg(m.digest, ',' order by m.seq), '') || ']', 'UTF8')
    from messages m
    where m.tenant_id = %(tenant_id)s
      and m.session_id = %(session_id)s
      and m.seq > chunk.start
      and m.seq <= chunk.start + 256
      and m.seq <= %(through)s::integer
  )::bytea as digests
from generate_series(%(after)s::integer, %(through)s::integer - 1, 256) as chunk (start)
order by chunk.start
"""


async def join_digests(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    through: int,
    after: int,
) -> list[bytes]:
    """The digests of a stretch as JSON arrays of 256: an array is read several times faster than as many rows, and one text of all is slower again, because its memory is taken anew at every call. Bytes, because the JSON reader takes bytes."""
    cursor = conn.cursor(row_factory=scalar_row, binary=True)
    await cursor.execute(JOIN_DIGESTS, {"tenant_id": tenant_id, "session_id": session_id, "through": through, "after": after})
    return await cursor.fetchall()


SUM_TOKENS = """\
select
  (
    coalesce((
      select m.tokens_through
      from messages m
      where m.tenant_id = %(tenant_id)s and m.session_id = %(session_id)s and m.seq <= %(through)s::integer
      order by m.seq desc
      limit 1
    ), 0)
    - coalesce((
      select m.tokens_through
      from messages m
      where m.tenant_id = %(tenant_id)s and m.session_id = %(session_id)s and m.seq <= %(after)s::integer
      order by m.seq desc
      limit 1
    ), 0)
  )::bigint as tokens
"""


async def sum_tokens(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
    through: int,
    after: int,
) -> int | None:
    """The tokens of a stretch: the difference of two running sums, however long it is."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(SUM_TOKENS, {"tenant_id": tenant_id, "session_id": session_id, "through": through, "after": after})
    return await cursor.fetchone()


GET_LAST_MESSAGE = """\
select m.seq, m.role, m.run_id, b.content
from sessions s
join messages m on m.tenant_id = s.tenant_id and m.session_id = s.id and m.seq = s.last_seq
join message_bodies b on b.tenant_id = m.tenant_id and b.session_id = m.session_id and b.seq = m.seq
where s.tenant_id = %(tenant_id)s and s.id = %(session_id)s and s.deleted_at is null
"""


@dataclass(frozen=True, slots=True)
class GetLastMessageRow:
    seq: int
    role: str
    run_id: UUID | None
    content: str


async def get_last_message(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    session_id: UUID,
) -> GetLastMessageRow | None:
    """The last message of a session that is not deleted, with its body; of a subagent's too."""
    cursor = conn.cursor(row_factory=args_row(GetLastMessageRow))
    await cursor.execute(GET_LAST_MESSAGE, {"tenant_id": tenant_id, "session_id": session_id})
    return await cursor.fetchone()

