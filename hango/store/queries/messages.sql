-- name: extend_session :one
-- Take the next seqs of a session. Its row is held until the transaction ends: appends come one after another.
update sessions
set last_seq = last_seq + @count::integer, tokens = tokens + @tokens::bigint
where tenant_id = @tenant_id and id = @session_id and deleted_at is null
returning last_seq, tokens;

-- name: add_messages :exec
-- Many messages with their bodies in one statement, one array a column.
with added as (
  insert into messages (tenant_id, session_id, seq, role, model, run_id, tokens, tokens_through, digest, created_at)
  select
    @tenant_id, @session_id, n.seq, n.role, n.model, n.run_id, n.tokens, n.tokens_through, n.digest,
    coalesce(n.created_at, now())
  from (
    select
      unnest(@seqs::integer[]) as seq,
      unnest(@roles::text[]) as role,
      unnest(@models::text[]) as model,
      unnest(@run_ids::uuid[]) as run_id,
      unnest(@token_counts::integer[]) as tokens,
      unnest(@tokens_through::bigint[]) as tokens_through,
      unnest(@digests::text[]) as digest,
      unnest(@created_ats::timestamptz[]) as created_at
  ) n
)
insert into message_bodies (tenant_id, session_id, seq, content)
select @tenant_id, @session_id, n.seq, n.content
from (select unnest(@seqs::integer[]) as seq, unnest(@contents::text[]) as content) n;

-- name: page_messages :many
-- Messages with their bodies, in order.
select m.seq, m.role, b.content, m.model, m.run_id, m.created_at
from messages m
join message_bodies b on b.tenant_id = m.tenant_id and b.session_id = m.session_id and b.seq = m.seq
where m.tenant_id = @tenant_id and m.session_id = @session_id and m.seq > @after::integer
order by m.seq
limit @most;

-- name: list_bodies :many
-- The bodies of a stretch of the history.
select seq, content
from message_bodies
where tenant_id = @tenant_id and session_id = @session_id and seq > @after::integer and seq <= @through::integer
order by seq;

-- name: get_body :one
-- One body.
select content
from message_bodies
where tenant_id = @tenant_id and session_id = @session_id and seq = @seq;

-- name: join_digests :many
-- The digests of a stretch as JSON arrays of 256: an array is read several times faster than as many rows, and one text
-- of all is slower again, because its memory is taken anew at every call. Bytes, because the JSON reader takes bytes.
select
  (
    select convert_to('[' || coalesce(string_agg(m.digest, ',' order by m.seq), '') || ']', 'UTF8')
    from messages m
    where m.tenant_id = @tenant_id
      and m.session_id = @session_id
      and m.seq > chunk.start
      and m.seq <= chunk.start + 256
      and m.seq <= @through::integer
  )::bytea as digests
from generate_series(@after::integer, sqlc.arg(through)::integer - 1, 256) as chunk (start)
order by chunk.start;

-- name: sum_tokens :one
-- The tokens of a stretch: the difference of two running sums, however long it is.
select
  (
    coalesce((
      select m.tokens_through
      from messages m
      where m.tenant_id = @tenant_id and m.session_id = @session_id and m.seq <= @through::integer
      order by m.seq desc
      limit 1
    ), 0)
    - coalesce((
      select m.tokens_through
      from messages m
      where m.tenant_id = @tenant_id and m.session_id = @session_id and m.seq <= @after::integer
      order by m.seq desc
      limit 1
    ), 0)
  )::bigint as tokens;

-- name: get_last_message :one
-- The last message of a session that is not deleted, with its body; of a subagent's too.
select m.seq, m.role, m.run_id, b.content
from sessions s
join messages m on m.tenant_id = s.tenant_id and m.session_id = s.id and m.seq = s.last_seq
join message_bodies b on b.tenant_id = m.tenant_id and b.session_id = m.session_id and b.seq = m.seq
where s.tenant_id = @tenant_id and s.id = @session_id and s.deleted_at is null;
