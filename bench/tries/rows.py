"""What the references share: what is asked, the calls of it, what they were billed. No tenants, quotas, claims."""

from __future__ import annotations

import psycopg

THREADS = 8  # of the stock worker: Dramatiq's own number for a process

TABLES = """
create table requests (id integer primary key, body text not null);
create table jobs (
  id uuid primary key,
  batch_id uuid,
  model text not null,
  status text not null,
  answer text,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index jobs_batch_id_idx on jobs (batch_id);
create table usage (
  job_id uuid primary key references jobs (id),
  input_tokens integer not null,
  output_tokens integer not null
);
"""
ONE_REQUEST = "select body from requests where id = 1"
ADD_JOB = "insert into jobs (id, batch_id, model, status) values (%s, %s, %s, 'queued')"
ADD_DONE = "insert into jobs (id, model, status, answer, finished_at) values (%s, %s, 'done', %s, now())"
BEGIN_JOB = "update jobs set status = 'running' where id = %s and status = 'queued' returning model"
END_JOB = "update jobs set status = 'done', answer = %s, finished_at = now() where id = %s and status = 'running'"
ADD_USAGE = "insert into usage (job_id, input_tokens, output_tokens) values (%s, %s, %s)"
TELL = "select pg_notify('done', %s)"
COUNT_OPEN = "select count(*) from jobs where batch_id = %s and status <> 'done'"


def make(url: str, request: str, model: str) -> None:
    """`request` is a body that the product would send; its model's name is left out, to be put in at the call."""
    assert request.count(quoted(model)) == 1, "the name of the model stands in the request once"
    with psycopg.connect(url) as connection:
        connection.execute(TABLES.encode())
        connection.execute("insert into requests values (1, %s)", [request.replace(quoted(model), "MODEL")])


def named(request: str, model: str) -> bytes:
    """The body of a call."""
    return request.replace("MODEL", quoted(model), 1).encode()


def quoted(model: str) -> str:
    return f'"model":"{model}"'
