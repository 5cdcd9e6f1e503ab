-- name: learn_token_factor :exec
-- Move a model's factor towards what calls were billed at: an average in which they weigh `weight`, kept between the
-- bounds. The first ones start from what the caller worked out.
insert into token_factors (tenant_id, model, factor, calls)
values (@tenant_id, @model, @first_factor, @calls)
on conflict (tenant_id, model) do update
set
  factor = least(
    greatest(
      token_factors.factor + sqlc.arg(weight)::float8 * (sqlc.arg(ratio)::float8 - token_factors.factor),
      sqlc.arg(least_factor)::float8
    ),
    sqlc.arg(most_factor)::float8
  ),
  calls = token_factors.calls + excluded.calls,
  updated_at = clock_timestamp()
where token_factors.tenant_id = @tenant_id;
