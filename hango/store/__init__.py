"""Rows in, records out, one tenant at a time.

Two rules. Every query names `tenant_id`; the few that cannot are in system.py, each with its reason. Every
function takes a `Scope`, which is an open transaction of somebody who is asking; nothing here opens or ends
one. `queries/` holds the SQL, `db/` the functions that sqlc made of it.
"""
