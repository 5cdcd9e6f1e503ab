"""Plain SQL migrations in goose's form, and their runner.

`NNNNN_name.sql` holds `-- +goose Up` and `-- +goose Down`; a released file is never edited. Every constraint
is named. Every tenant-owned table has `tenant_id`, composite foreign keys (a plain one would accept another
tenant's row), row level security ENABLE and FORCE, and only the grants that the app role needs. A data step
in a migration stands between `no force row level security` and `force row level security`, else the owner
sees no row.
"""
