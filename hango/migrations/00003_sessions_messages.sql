-- +goose Up
-- `last_seq` is also the number of messages: seqs have no gaps. It and `tokens` are kept by the append, which holds the
-- row's lock.
create table sessions (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  title text not null,
  last_seq integer not null default 0,
  tokens bigint not null default 0,
  summary_id uuid,
  last_run_id uuid,
  created_by uuid not null,
  created_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint sessions_pk primary key (tenant_id, id),
  constraint sessions_agent_fk foreign key (tenant_id, agent_id) references agents (tenant_id, id),
  constraint sessions_created_by_fk foreign key (tenant_id, created_by) references users (tenant_id, id),
  constraint sessions_last_seq_check check (last_seq >= 0),
  constraint sessions_tokens_check check (tokens >= 0)
);
create index sessions_agent_idx on sessions (tenant_id, agent_id);
create index sessions_created_by_idx on sessions (tenant_id, created_by);

-- Append-only. `digest` is compact JSON text of what rules and totals need; `tokens_through` is the sum up to and with
-- this message, so that the total of any stretch is two look-ups.
create table messages (
  tenant_id uuid not null,
  session_id uuid not null,
  seq integer not null,
  role text not null,
  model text,
  run_id uuid,
  tokens integer not null,
  tokens_through bigint not null,
  digest text not null,
  created_at timestamptz not null default now(),
  constraint messages_pk primary key (tenant_id, session_id, seq),
  constraint messages_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint messages_seq_check check (seq > 0),
  constraint messages_role_check check (role in ('user', 'assistant', 'system')),
  constraint messages_tokens_check check (tokens >= 0 and tokens_through >= tokens)
);
-- A digest is short and read at every inspect: kept in the row, never compressed.
alter table messages alter column digest set storage external;

-- Apart from messages, so that an inspect never touches a body. Compact JSON text: digits, key order and unknown blocks
-- survive, which jsonb would not keep.
create table message_bodies (
  tenant_id uuid not null,
  session_id uuid not null,
  seq integer not null,
  content text not null,
  constraint message_bodies_pk primary key (tenant_id, session_id, seq),
  constraint message_bodies_message_fk
    foreign key (tenant_id, session_id, seq) references messages (tenant_id, session_id, seq)
);

-- Never changed: a new summary is a new row, and taking it back points the session at the one before.
create table summaries (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  text text not null,
  through_seq integer not null,
  tokens integer not null,
  created_at timestamptz not null default now(),
  constraint summaries_pk primary key (tenant_id, id),
  constraint summaries_session_key unique (tenant_id, session_id, id),
  constraint summaries_message_fk
    foreign key (tenant_id, session_id, through_seq) references messages (tenant_id, session_id, seq),
  constraint summaries_tokens_check check (tokens >= 0)
);

-- With the session's id in the key, a session cannot point at another session's summary.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table sessions add constraint sessions_summary_fk
  foreign key (tenant_id, id, summary_id) references summaries (tenant_id, session_id, id);

alter table sessions enable row level security;
alter table sessions force row level security;
create policy tenant_only on sessions
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table messages enable row level security;
alter table messages force row level security;
create policy tenant_only on messages
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table message_bodies enable row level security;
alter table message_bodies force row level security;
create policy tenant_only on message_bodies
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table summaries enable row level security;
alter table summaries force row level security;
create policy tenant_only on summaries
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert, update (title, last_seq, tokens, summary_id, last_run_id, deleted_at) on sessions to hango_app;
grant select, insert on messages, message_bodies, summaries to hango_app;

-- +goose Down
alter table sessions drop constraint sessions_summary_fk;
drop table summaries;
drop table message_bodies;
drop table messages;
drop table sessions;
