-- +goose Up
-- squawk-ignore-file adding-required-field, adding-foreign-key-constraint, constraint-missing-not-valid
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion
-- squawk-ignore-file disallowed-unique-constraint, ban-drop-column, ban-drop-function
-- A run in the queue: claimed, leased and fenced as a try is. Its base is fixed when it is accepted, so that the agent's
-- version, its files and the overrides hold for the whole run; the history and the summary grow with it. `first_seq` is
-- the session's end before the run's own message. `skill_version_id` is the skill that the run has loaded last,
-- `reserved` what is held for the call that is under way. No run is there yet: nothing has made any so far.
alter table runs
  add column api_key_id uuid not null,
  add column base_id uuid not null,
  add column model text not null,
  add column first_seq integer not null,
  add column skill_version_id uuid,
  add column overrides integer not null,
  add column attempt integer not null default 0,
  add column rescues integer not null default 0,
  add column lease_owner uuid,
  add column lease_until timestamptz,
  add column queue_expires_at timestamptz not null,
  add column cancel_requested_at timestamptz,
  add column timeout_ms integer not null,
  add column quota_period date,
  add column reserved bigint not null default 0,
  add column traceparent text;
alter table runs
  add constraint runs_api_key_fk foreign key (tenant_id, api_key_id) references api_keys (tenant_id, id),
  add constraint runs_base_fk foreign key (tenant_id, base_id) references context_bases (tenant_id, id),
  add constraint runs_skill_fk foreign key (tenant_id, skill_version_id) references file_versions (tenant_id, id),
  add constraint runs_first_seq_check check (first_seq >= 0),
  add constraint runs_attempt_check check (attempt between 0 and 1000),
  add constraint runs_rescues_check check (rescues >= 0),
  add constraint runs_timeout_ms_check check (timeout_ms > 0),
  add constraint runs_reserved_check check (reserved >= 0 and (reserved = 0 or quota_period is not null)),
  add constraint runs_lease_check check ((status = 'running') = (lease_until is not null and lease_owner is not null)),
  add constraint runs_error_check check ((status in ('failed', 'timed_out', 'cancelled')) = (error_code is not null)),
  add constraint runs_error_code_check check (
    error_code in (
      'timeout', 'queue_expired', 'cancelled', 'worker_lost', 'provider_unreachable', 'provider_rate_limited',
      'provider_overloaded', 'provider_error', 'provider_protocol', 'response_too_large', 'provider_refused',
      'context_changed', 'internal', 'quota_exceeded', 'too_many_turns', 'too_many_tokens', 'unsendable'
    )
  );
create index runs_queued_idx on runs (tenant_id, created_at, id) where status = 'queued';
create index runs_running_idx on runs (tenant_id) where status = 'running';
create index runs_lease_until_idx on runs (lease_until) where status = 'running';
create index runs_session_idx on runs (tenant_id, session_id, id);

-- A subagent's conversation: a session of its own that nobody lists, found again by the call that started it.
alter table sessions
  add column parent_run_id uuid,
  add column parent_call text;
alter table sessions
  add constraint sessions_parent_run_fk foreign key (tenant_id, parent_run_id) references runs (tenant_id, id),
  add constraint sessions_parent_check check ((parent_run_id is null) = (parent_call is null));
create unique index sessions_parent_idx on sessions (tenant_id, parent_run_id, parent_call)
  where parent_run_id is not null;

-- The summary that was in force when one was saved: taking it back puts that one in force again.
alter table summaries add column previous_id uuid;
alter table summaries
  add constraint summaries_previous_fk foreign key (tenant_id, session_id, previous_id)
    references summaries (tenant_id, session_id, id);

-- A loaded skill narrows the tools: it is a part of what a request is made of.
alter table context_bases add column skill_version_id uuid;
alter table context_bases
  add constraint context_bases_skill_fk foreign key (tenant_id, skill_version_id)
    references file_versions (tenant_id, id);

-- Each model call of a run: what it was made of, and what came of it. Written before the first byte goes out, so that a
-- call is never lost and never made twice; `ended_at` is null while it is under way. No content: the base says what was
-- sent, the messages what came.
create table run_calls (
  tenant_id uuid not null,
  id uuid not null,
  run_id uuid not null,
  n integer not null,
  purpose text not null,
  session_id uuid not null,
  base_id uuid not null,
  model text not null,
  request_sha256 text not null,
  version text not null,
  overrides integer not null,
  excluded_tokens bigint not null,
  max_output_tokens integer not null,
  quota_period date not null,
  reserved bigint not null,
  stop_reason text,
  error_code text,
  provider_status integer,
  provider_request_id text,
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  constraint run_calls_pk primary key (tenant_id, id),
  constraint run_calls_n_key unique (tenant_id, run_id, n),
  constraint run_calls_run_fk foreign key (tenant_id, run_id) references runs (tenant_id, id),
  constraint run_calls_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint run_calls_base_fk foreign key (tenant_id, base_id) references context_bases (tenant_id, id),
  constraint run_calls_purpose_check check (purpose in ('run', 'subagent', 'summary')),
  constraint run_calls_n_check check (n > 0),
  constraint run_calls_reserved_check check (reserved >= 0),
  constraint run_calls_provider_request_id_check check (length(provider_request_id) <= 128)
);
create unique index run_calls_open_idx on run_calls (tenant_id, run_id) where ended_at is null;

alter table usage_records add column call_id uuid;
alter table usage_records add constraint usage_records_call_key unique (tenant_id, call_id);
alter table usage_records add constraint usage_records_call_fk
  foreign key (tenant_id, call_id) references run_calls (tenant_id, id);

-- A try of another kind: the summary that a run would make, of the messages up to this one. It stands in no list of tries.
alter table try_requests add column through_seq integer;
alter table try_requests add constraint try_requests_through_seq_check check (
  through_seq is null or (through_seq > 0 and batch_id is null)
);

create trigger runs_end after update on runs
  for each row when (old.finished_at is null and new.finished_at is not null)
  execute function tell_end();
create trigger runs_cancel after update on runs
  for each row when (
    old.cancel_requested_at is null and new.cancel_requested_at is not null and new.status = 'running'
  )
  execute function tell_cancel();

-- The fair pick of runs, as of tries.
-- +goose StatementBegin
create function claim_runs(owner uuid, lease interval, cap integer, most integer) returns uuid[] language plpgsql as $$
declare
  chosen uuid;
  room integer;
  claimed uuid[];
begin
  perform pg_advisory_xact_lock(7003);
  select c.tenant_id, cap - c.running into chosen, room
  from (
    select
      q.tenant_id,
      min(q.created_at) as first_at,
      (select count(*) from runs r where r.status = 'running' and r.tenant_id = q.tenant_id)::integer as running
    from runs q
    where q.status = 'queued'
      and q.queue_expires_at > clock_timestamp()
    group by q.tenant_id
  ) c
  where c.running < cap
  order by c.running, c.first_at
  limit 1;
  if chosen is null then
    return '{}';
  end if;
  with picked as (
    select q.id
    from runs q
    where q.status = 'queued'
      and q.tenant_id = chosen
      and q.queue_expires_at > clock_timestamp()
    order by q.created_at, q.id
    limit least(room, most)
    for update skip locked
  ),
  taken as (
    update runs t
    set
      status = 'running',
      attempt = t.attempt + 1,
      lease_owner = owner,
      lease_until = clock_timestamp() + lease,
      started_at = coalesce(t.started_at, clock_timestamp())
    from picked
    where t.tenant_id = chosen and t.id = picked.id
    returning t.id
  )
  select coalesce(array_agg(taken.id), '{}') into claimed from taken;
  return claimed;
end
$$;
-- +goose StatementEnd

alter table run_calls enable row level security;
alter table run_calls force row level security;
create policy tenant_only on run_calls
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant update on runs to hango_app;
grant select, update on runs to hango_system;
grant select, insert, update (stop_reason, error_code, provider_status, provider_request_id, ended_at)
  on run_calls to hango_app;

-- +goose Down
-- Runs cannot be kept: the schema before has no place for what they are made of, and none to make it of when it comes
-- again. Their bills and their messages stay, without the run; what their open calls hold of a quota is given back;
-- subagents' conversations are deleted as a user deletes one, or they would be listed; bases that name a skill go, or they
-- would tell of other requests than they were kept for. Row level security is not forced meanwhile, or the owner of the
-- tables, who has no tenant, would change nothing.
alter table quotas no force row level security;
alter table runs no force row level security;
alter table sessions no force row level security;
alter table messages no force row level security;
alter table usage_records no force row level security;
alter table context_bases no force row level security;
update quotas q
set reserved = q.reserved - h.reserved
from (select tenant_id, quota_period, sum(reserved) as reserved from runs where reserved > 0 group by 1, 2) h
where q.tenant_id = h.tenant_id and q.period = h.quota_period;
update sessions set last_run_id = null where last_run_id is not null;
update sessions set deleted_at = clock_timestamp() where parent_run_id is not null and deleted_at is null;
update messages set run_id = null where run_id is not null;
update usage_records set run_id = null where run_id is not null;
alter table try_requests drop constraint try_requests_through_seq_check;
alter table try_requests drop column through_seq;
drop trigger runs_cancel on runs;
drop trigger runs_end on runs;
drop function claim_runs(uuid, interval, integer, integer);
alter table usage_records drop constraint usage_records_call_fk;
alter table usage_records drop constraint usage_records_call_key;
alter table usage_records drop column call_id;
drop table run_calls;
alter table summaries drop constraint summaries_previous_fk;
alter table summaries drop column previous_id;
drop index sessions_parent_idx;
alter table sessions drop constraint sessions_parent_check;
alter table sessions drop constraint sessions_parent_run_fk;
alter table sessions drop column parent_call;
alter table sessions drop column parent_run_id;
delete from runs;
delete from context_bases where skill_version_id is not null;
alter table context_bases drop constraint context_bases_skill_fk;
alter table context_bases drop column skill_version_id;
alter table context_bases force row level security;
alter table usage_records force row level security;
alter table messages force row level security;
alter table sessions force row level security;
alter table runs force row level security;
alter table quotas force row level security;
drop index runs_session_idx;
drop index runs_lease_until_idx;
drop index runs_running_idx;
drop index runs_queued_idx;
alter table runs
  drop constraint runs_api_key_fk,
  drop constraint runs_base_fk,
  drop constraint runs_skill_fk,
  drop constraint runs_first_seq_check,
  drop constraint runs_attempt_check,
  drop constraint runs_rescues_check,
  drop constraint runs_timeout_ms_check,
  drop constraint runs_reserved_check,
  drop constraint runs_lease_check,
  drop constraint runs_error_check,
  drop constraint runs_error_code_check,
  drop column api_key_id,
  drop column base_id,
  drop column model,
  drop column first_seq,
  drop column skill_version_id,
  drop column overrides,
  drop column attempt,
  drop column rescues,
  drop column lease_owner,
  drop column lease_until,
  drop column queue_expires_at,
  drop column cancel_requested_at,
  drop column timeout_ms,
  drop column quota_period,
  drop column reserved,
  drop column traceparent;
revoke update on runs from hango_app;
grant update (status, turns, stop_reason, error_code, started_at, finished_at) on runs to hango_app;
revoke select, update on runs from hango_system;
