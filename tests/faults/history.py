"""What the database itself notes of tries and runs while everything around them is killed: each change of a status."""

from __future__ import annotations

from typing import LiteralString

import psycopg

# Of the superuser and in a schema of its own: no role of hango's can see or change it.
HISTORY: LiteralString = """
create schema faults;
create table faults.history (
  place bigint generated always as identity,
  try_id uuid not null,
  before text not null,
  after text not null,
  attempt integer not null,
  ended_before boolean not null,
  at timestamptz not null default clock_timestamp()
);
create function faults.note() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into faults.history (try_id, before, after, attempt, ended_before)
  values (new.id, old.status, new.status, new.attempt, old.finished_at is not null);
  return null;
end
$$;
create trigger faults_note after update on public.tries
  for each row when (old.status <> new.status or old.finished_at is not null)
  execute function faults.note();
create table faults.run_history (
  place bigint generated always as identity,
  run_id uuid not null,
  before text not null,
  after text not null,
  attempt integer not null,
  ended_before boolean not null,
  at timestamptz not null default clock_timestamp()
);
create function faults.note_run() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into faults.run_history (run_id, before, after, attempt, ended_before)
  values (new.id, old.status, new.status, new.attempt, old.finished_at is not null);
  return null;
end
$$;
create trigger faults_note_run after update on public.runs
  for each row when (old.status <> new.status or old.finished_at is not null)
  execute function faults.note_run();
"""


def install(connection: psycopg.Connection) -> None:
    """As superuser, on a migrated database."""
    connection.execute(HISTORY)
