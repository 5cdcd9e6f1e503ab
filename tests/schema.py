"""The schema of a migrated database as text: a change of it shows in review as a change of the snapshot."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

# Each gives lines of `table | what it is`, or of a function's name; the runner's own table of migrations is left out.
_SECTIONS = {
    "columns": """
        select c.relname, format('%s %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                                 case when a.attcollation <> t.typcollation then ' collate ' || l.collname else '' end,
                                 case when a.attnotnull then ' not null' else '' end,
                                 coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''))
        from pg_attribute a
        join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
        join pg_type t on t.oid = a.atttypid
        left join pg_collation l on l.oid = a.attcollation
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attnum > 0 and not a.attisdropped and c.relnamespace = 'public'::regnamespace
        order by c.relname, a.attnum
    """,
    "constraints": """
        select c.relname, format('%s: %s', o.conname, pg_get_constraintdef(o.oid))
        from pg_constraint o
        join pg_class c on c.oid = o.conrelid
        where o.contype in ('c', 'f', 'p', 'u') and c.relnamespace = 'public'::regnamespace
        order by c.relname, o.conname
    """,
    "indexes": """
        select i.tablename, i.indexdef
        from pg_indexes i
        where i.schemaname = 'public'
          and not exists (select from pg_constraint o where o.conname = i.indexname)
        order by i.tablename, i.indexname
    """,
    "triggers": """
        select c.relname, format('%s: %s', t.tgname, substring(pg_get_triggerdef(t.oid) from '(?:AFTER|BEFORE) .*'))
        from pg_trigger t
        join pg_class c on c.oid = t.tgrelid
        where not t.tgisinternal and c.relnamespace = 'public'::regnamespace
        order by c.relname, t.tgname
    """,
    "functions": """
        select p.proname, format('(%s) returns %s', pg_get_function_identity_arguments(p.oid),
                                 pg_get_function_result(p.oid))
        from pg_proc p
        where p.pronamespace = 'public'::regnamespace
        order by p.proname
    """,
    "row level security": """
        select c.relname, concat_ws(' ', case when c.relrowsecurity then 'enabled' end,
                                    case when c.relforcerowsecurity then 'forced' end)
        from pg_class c
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
        order by c.relname
    """,
    "policies": """
        select p.tablename, format('%s for %s to %s using %s check %s', p.policyname, lower(p.cmd),
                                   array_to_string(p.roles, ', '), p.qual, coalesce(p.with_check, 'the same'))
        from pg_policies p
        where p.schemaname = 'public'
        order by p.tablename, p.policyname
    """,
    "grants": """
        select g.table_name, format('%s: %s', g.grantee, string_agg(g.privilege, ', ' order by g.privilege))
        from (
          select table_name, grantee, lower(privilege_type) as privilege
          from information_schema.table_privileges
          where table_schema = 'public' and grantee in ('hango_app', 'hango_system')
          union
          select c.table_name, c.grantee,
                 format('%s (%s)', lower(c.privilege_type), string_agg(c.column_name, ', ' order by c.column_name))
          from information_schema.column_privileges c
          where c.table_schema = 'public' and c.grantee in ('hango_app', 'hango_system')
            and not exists (
              select from information_schema.table_privileges t
              where (t.table_schema, t.table_name, t.grantee, t.privilege_type)
                = (c.table_schema, c.table_name, c.grantee, c.privilege_type)
            )
          group by c.table_name, c.grantee, c.privilege_type
        ) g
        group by g.table_name, g.grantee
        order by g.table_name, g.grantee
    """,
}


def snapshot(superuser_dsn: str) -> str:
    """Every table of the schema, a section a kind of thing."""
    parts = []
    with psycopg.connect(superuser_dsn) as conn:
        for title, query in _SECTIONS.items():
            rows = conn.execute(query.encode()).fetchall()
            lines = [f"{table} | {what}".rstrip() for table, what in rows if table != "schema_migrations"]
            parts.append("\n".join([f"## {title}", *lines]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    # Accepts the schema as it is: python -m tests.schema <superuser's address of a migrated database>
    Path(__file__).with_name("schema_snapshot.txt").write_text(snapshot(sys.argv[1]))
