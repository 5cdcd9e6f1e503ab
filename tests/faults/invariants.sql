-- What breaks a rule of docs/faults.md, one statement a rule: each finds the rows that break it. Asked as superuser when
-- no try and no run is under way any more.

-- rule: I2 tries that never ended
select id
from tries
where finished_at is null;

-- rule: I2 runs that never ended
select id
from runs
where finished_at is null;

-- rule: I4 tries called and not billed
select t.id
from tries t
where t.called_at is not null
  and t.finished_at is not null
  and not exists (select from usage_records u where u.tenant_id = t.tenant_id and u.try_id = t.id);

-- rule: I4 tries billed and not called
select u.try_id
from usage_records u
left join tries t on t.tenant_id = u.tenant_id and t.id = u.try_id
where u.purpose = 'context_try' and t.called_at is null;

-- rule: I4 tries billed twice
select try_id
from usage_records
where try_id is not null
group by try_id
having count(*) > 1;

-- rule: I4 calls of runs without exactly one bill
select c.id
from run_calls c
where 1 <> (select count(*) from usage_records u where u.tenant_id = c.tenant_id and u.call_id = c.id);

-- rule: I4 bills of runs that are no call's
select u.id
from usage_records u
where u.run_id is not null
  and not exists (
    select
    from run_calls c
    where c.tenant_id = u.tenant_id and c.id = u.call_id and c.run_id = u.run_id and c.purpose = u.purpose
  );

-- rule: I5 months whose 'used' is not the sum of their bills
select q.tenant_id
from quotas q
where q.used <> (
  select coalesce(sum(u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens), 0)
  from usage_records u
  left join tries t on t.tenant_id = u.tenant_id and t.id = u.try_id
  left join run_calls c on c.tenant_id = u.tenant_id and c.id = u.call_id
  where u.tenant_id = q.tenant_id and coalesce(t.quota_period, c.quota_period) = q.period
);

-- rule: I5 months whose 'reserved' is not what is under way
select q.tenant_id
from quotas q
where q.reserved <> (
  select coalesce(sum(t.reserved), 0)
  from tries t
  where t.tenant_id = q.tenant_id and t.quota_period = q.period and t.finished_at is null
) + (
  select coalesce(sum(c.reserved), 0)
  from run_calls c
  where c.tenant_id = q.tenant_id and c.quota_period = q.period and c.ended_at is null
);

-- rule: I5 ended runs that hold tokens
select id
from runs
where finished_at is not null and reserved <> 0;

-- rule: I5 months beyond their quota
select q.tenant_id
from quotas q
join tenants n on n.id = q.tenant_id
where q.used + q.reserved > n.quota_tokens;

-- rule: I6 tries without exactly one 'context.try' event
select t.id
from tries t
where 1 <> (
  select count(*)
  from audit_events a
  where a.tenant_id = t.tenant_id and a.action = 'context.try' and a.target_id = t.id
);

-- rule: I6 ended tries without exactly one 'context.try_finished' event
select t.id
from tries t
where t.finished_at is not null
  and 1 <> (
    select count(*)
    from audit_events a
    where a.tenant_id = t.tenant_id and a.action = 'context.try_finished' and a.target_id = t.id
  );

-- rule: I6 runs without exactly one 'run.start' event
select r.id
from runs r
where 1 <> (
  select count(*)
  from audit_events a
  where a.tenant_id = r.tenant_id and a.action = 'run.start' and a.target_id = r.id
);

-- rule: I6 ended runs without exactly one 'run.finish' event
select r.id
from runs r
where r.finished_at is not null
  and 1 <> (
    select count(*)
    from audit_events a
    where a.tenant_id = r.tenant_id and a.action = 'run.finish' and a.target_id = r.id
  );

-- rule: I6 'context.try' events without a try
select a.target_id
from audit_events a
where a.action = 'context.try'
  and not exists (select from tries t where t.tenant_id = a.tenant_id and t.id = a.target_id);

-- rule: I7 changes of a try after its end
select try_id
from faults.history
where ended_before;

-- rule: I7 changes of a run after its end
select run_id
from faults.run_history
where ended_before;

-- rule: I7 batches whose count of tries under way is wrong
select b.id
from try_batches b
where b.remaining <> (
  select count(*)
  from tries t
  where t.tenant_id = b.tenant_id and t.batch_id = b.id and t.finished_at is null
);

-- rule: I9 runs whose turns are not the answers that they left
select r.id
from runs r
where r.turns <> (
  select count(*)
  from messages m
  where m.tenant_id = r.tenant_id and m.session_id = r.session_id and m.run_id = r.id and m.role = 'assistant'
);
