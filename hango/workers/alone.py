"""Work for many, one after the other: a fault of one must not keep the others waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Unpack

from hango import logs
from hango.domain import Principal
from hango.errors import Unavailable
from hango.logs import Fields, Log


@contextmanager
def alone(principal: Principal, **ids: Unpack[Fields]) -> Iterator[None]:
    """What fails inside is logged, and met again the next time. Raises Unavailable alone."""
    try:
        yield
    except Unavailable:
        raise
    except Exception as error:
        fields: Fields = {**ids, "tenant_id": principal.tenant_id}
        logs.error(Log.UNEXPECTED, error, **fields)
