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
