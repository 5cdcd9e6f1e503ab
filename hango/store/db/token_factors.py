"""Made by sqlc from token_factors.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['learn_token_factor']


LEARN_TOKEN_FACTOR = """\
insert into token_factors (tenant_id, model, factor, calls)
values (%(tenant_id)s, %(model)s, %(first_factor)s, %(calls)s)
on conflict (tenant_id, model) do update
set
  factor = least(
    greatest(
      token_factors.factor + %(weight)s::float8 * (%(ratio)s::float8 - token_factors.factor),
      %(least_factor)s::float8
    ),
    %(most_factor)s::float8
  ),
  calls = token_factors.calls + excluded.calls,
  updated_at = clock_timestamp()
where token_factors.tenant_id = %(tenant_id)s
"""


async def learn_token_factor(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    model: str,
    first_factor: float,
    calls: int,
    weight: float,
    ratio: float,
    least_factor: float,
    most_factor: float,
) -> None:
    """Move a model's factor towards what calls were billed at: an average in which they weigh `weight`, kept between the bounds. The first ones start from what the caller worked out."""
    cursor = conn.cursor()
    await cursor.execute(LEARN_TOKEN_FACTOR, {"tenant_id": tenant_id, "model": model, "first_factor": first_factor, "calls": calls, "weight": weight, "ratio": ratio, "least_factor": least_factor, "most_factor": most_factor})

