-- name: find_idempotency_key :one
-- What a key stands for, within its day. The time is the transaction's, so that taking and finding agree.
select request_hash, resource_id
from idempotency_keys
where tenant_id = @tenant_id
  and user_id = @user_id
  and key_hash = @key_hash
  and created_at > now() - interval '24 hours';

-- name: take_idempotency_key :one
-- Take a key that nobody has, or whose day is over. Whoever takes the same at once waits for this transaction.
insert into idempotency_keys (tenant_id, user_id, key_hash, request_hash, resource_id)
values (@tenant_id, @user_id, @key_hash, @request_hash, @resource_id)
on conflict (tenant_id, user_id, key_hash) do update
set request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = clock_timestamp()
where idempotency_keys.created_at <= now() - interval '24 hours'
returning resource_id;

-- name: purge_idempotency_keys :exec
-- Keys whose day is over, with time for a transaction that is about to read one.
delete from idempotency_keys
where tenant_id = @tenant_id and created_at <= clock_timestamp() - interval '25 hours';
