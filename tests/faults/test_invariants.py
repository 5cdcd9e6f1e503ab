"""The checks of the fault runs find what they are for: each rule is broken once, on purpose."""

# ruff: noqa: S608  every value is a literal of this file

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from tests.conftest import Database
from tests.faults.history import install
from tests.faults.invariants import broken_rules

TENANT = "00000000-0000-7000-8000-000000000001"
TRY = "00000000-0000-7000-8000-000000000002"
OTHER = "00000000-0000-7000-8000-000000000003"
MONTH = "2026-11-01"

# An ended try of 100 reserved tokens that was called and billed at 15, as it should be.
QUEUED = f"""
insert into tries (tenant_id, id, session_id, user_id, api_key_id, request_id, queue_expires_at, timeout_ms,
  quota_period, reserved)
values ('{TENANT}', '{TRY}', '{OTHER}', '{OTHER}', '{OTHER}', '{OTHER}', now(), 1000, '{MONTH}', 100);
insert into tenants (id, name, quota_tokens) values ('{TENANT}', 'a tenant', 1000);
"""
ASKED = f"""
insert into audit_events (tenant_id, id, action, target_kind, target_id, detail)
values ('{TENANT}', gen_random_uuid(), 'context.try', 'try', '{TRY}', '{{}}');
"""
ENDED = f"update tries set status = 'failed', error_code = 'internal', finished_at = now() where id = '{TRY}';"
CALLED = f"update tries set called_at = now() where id = '{TRY}';"
TOLD = ASKED.replace("context.try", "context.try_finished")
BILLED = f"""
insert into usage_records (tenant_id, id, purpose, try_id, session_id, user_id, model, input_tokens, output_tokens,
  cache_read_tokens, cache_write_tokens)
values ('{TENANT}', gen_random_uuid(), 'context_try', '{TRY}', '{OTHER}', '{OTHER}', 'x/y', 12, 3, 0, 0);
"""


def quota(used: int, reserved: int) -> str:
    return f"insert into quotas values ('{TENANT}', '{MONTH}', {used}, {reserved});"


def batch(remaining: int) -> str:
    ended = "null" if remaining else "now()"
    return f"""
    insert into try_batches (tenant_id, id, session_id, user_id, base_id, tries, remaining, finished_at)
    values ('{TENANT}', '{OTHER}', '{OTHER}', '{OTHER}', '{OTHER}', 1, {remaining}, {ended});
    """


GOOD = QUEUED + ASKED + ENDED + CALLED + TOLD + BILLED + quota(15, 0)


# An ended run of one turn, whose call was billed at 15 of 40 reserved tokens.
RUN = "00000000-0000-7000-8000-000000000004"
CALL = "00000000-0000-7000-8000-000000000005"
RUNNING = f"""
insert into runs (tenant_id, id, session_id, user_id, status, turns, api_key_id, base_id, model, first_seq, overrides,
  queue_expires_at, timeout_ms, lease_owner, lease_until)
values ('{TENANT}', '{RUN}', '{OTHER}', '{OTHER}', 'running', 1, '{OTHER}', '{OTHER}', 'x/y', 1, 0, now(), 1000,
  '{OTHER}', now());
"""
STARTED = ASKED.replace("context.try", "run.start").replace("'try'", "'run'").replace(TRY, RUN)
FINISHED = STARTED.replace("run.start", "run.finish")
RUN_CALL = f"""
insert into run_calls (tenant_id, id, run_id, n, purpose, session_id, base_id, model, request_sha256, version,
  overrides, excluded_tokens, max_output_tokens, quota_period, reserved, ended_at)
values ('{TENANT}', '{CALL}', '{RUN}', 1, 'run', '{OTHER}', '{OTHER}', 'x/y', '', '', 0, 0, 9, '{MONTH}', 40, now());
"""
CALL_BILLED = f"""
insert into usage_records (tenant_id, id, purpose, run_id, call_id, session_id, user_id, model, input_tokens,
  output_tokens, cache_read_tokens, cache_write_tokens)
values ('{TENANT}', gen_random_uuid(), 'run', '{RUN}', '{CALL}', '{OTHER}', '{OTHER}', 'x/y', 12, 3, 0, 0);
"""
SAID = f"""
insert into messages (tenant_id, session_id, seq, role, run_id, tokens, tokens_through, digest)
values ('{TENANT}', '{OTHER}', 2, 'assistant', '{RUN}', 1, 1, '');
"""
RUN_ENDED = f"""
update runs set status = 'succeeded', finished_at = now(), lease_owner = null, lease_until = null where id = '{RUN}';
"""
GOOD_RUN = (
    GOOD.replace(quota(15, 0), quota(30, 0))
    + RUNNING
    + STARTED
    + RUN_CALL
    + CALL_BILLED
    + SAID
    + (RUN_ENDED + FINISHED)
)


# What is done, and the one rule that it breaks.
CASES: Mapping[str, tuple[str, str | None]] = {
    "nothing": (GOOD, None),
    "never ended": (QUEUED + ASKED + quota(0, 100), "I2 tries that never ended"),
    "not billed": (QUEUED + ASKED + ENDED + CALLED + TOLD + quota(0, 0), "I4 tries called and not billed"),
    "not called": (QUEUED + ASKED + ENDED + TOLD + BILLED + quota(15, 0), "I4 tries billed and not called"),
    "billed twice": (
        "alter table usage_records drop constraint usage_records_try_key;"
        + GOOD.replace(quota(15, 0), BILLED + quota(30, 0)),
        "I4 tries billed twice",
    ),
    "used too much": (
        GOOD.replace(quota(15, 0), quota(16, 0)),
        "I5 months whose 'used' is not the sum of their bills",
    ),
    "reserved too much": (
        GOOD.replace(quota(15, 0), quota(15, 1)),
        "I5 months whose 'reserved' is not what is under way",
    ),
    "beyond the quota": (GOOD.replace("'a tenant', 1000", "'a tenant', 14"), "I5 months beyond their quota"),
    "accepted in silence": (GOOD.replace(ASKED, "", 1), "I6 tries without exactly one 'context.try' event"),
    "its end told twice": (GOOD + TOLD, "I6 ended tries without exactly one 'context.try_finished' event"),
    "told of no try": (GOOD + ASKED.replace(TRY, OTHER), "I6 'context.try' events without a try"),
    "changed after its end": (
        GOOD + "alter table tries enable always trigger faults_note;" + ENDED,
        "I7 changes of a try after its end",
    ),
    "a run": (GOOD_RUN, None),
    "a run that never ended": (GOOD_RUN.replace(RUN_ENDED + FINISHED, ""), "I2 runs that never ended"),
    "a run's call not billed": (
        GOOD_RUN.replace(quota(30, 0), quota(15, 0)).replace(CALL_BILLED, ""),
        "I4 calls of runs without exactly one bill",
    ),
    "a run billed without a call": (
        GOOD_RUN.replace(RUN_CALL, "").replace(quota(30, 0), quota(15, 0)),
        "I4 bills of runs that are no call's",
    ),
    "an ended run that holds tokens": (
        GOOD_RUN + f"update runs set reserved = 1, quota_period = '{MONTH}' where id = '{RUN}';",
        "I5 ended runs that hold tokens",
    ),
    "a run accepted in silence": (
        GOOD_RUN.replace(STARTED, "", 1),
        "I6 runs without exactly one 'run.start' event",
    ),
    "a run's end told twice": (GOOD_RUN + FINISHED, "I6 ended runs without exactly one 'run.finish' event"),
    "a run changed after its end": (
        GOOD_RUN + "alter table runs enable always trigger faults_note_run;" + RUN_ENDED,
        "I7 changes of a run after its end",
    ),
    "an answer that was lost": (GOOD_RUN.replace(SAID, ""), "I9 runs whose turns are not the answers that they left"),
    "a batch that never ends": (GOOD + batch(1), "I7 batches whose count of tries under way is wrong"),
}


def test_a_broken_rule_is_found(fresh_database: Database) -> None:
    """What a rule forbids is found by that rule and no other, and every rule is broken by one case."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(fresh_database.superuser_dsn) as connection:
        install(connection)
        # Without foreign keys and triggers: the database itself would not let most of this be.
        connection.execute("set session_replication_role = replica")
        for name, (statements, _) in CASES.items():
            with connection.transaction(force_rollback=True):
                connection.execute(statements.encode())
                broken = broken_rules(connection)
            found[name] = [rule for rule, breaking in broken.items() if breaking]

    assert found == {name: [rule] if rule else [] for name, (_, rule) in CASES.items()}
    assert {rule for _, rule in CASES.values() if rule} == broken.keys()
