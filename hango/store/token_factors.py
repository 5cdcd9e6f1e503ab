"""What was learnt of how a model counts: tokens billed for one token of the counting encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from hango.store.connection import Scope
from hango.store.db import token_factors as rows

_decoder = msgspec.json.Decoder(dict[str, tuple[float, int]])


@dataclass(frozen=True, slots=True)
class TokenFactor:
    """`calls` is how many billed calls it was learnt from."""

    factor: float
    calls: int


Factors = Mapping[str, TokenFactor]  # by "<provider>/<model>"


async def learn(
    scope: Scope, model: str, *, ratio: float, first: float, weight: float, least: float, most: float, calls: int = 1
) -> None:
    """Move a model's factor towards `ratio`, as so many calls do together; `first` is where the first ones leave it."""
    await rows.learn_token_factor(
        scope.conn,
        tenant_id=scope.tenant_id,
        model=model,
        first_factor=first,
        calls=calls,
        weight=weight,
        ratio=ratio,
        least_factor=least,
        most_factor=most,
    )


def from_json(text: str) -> Factors:
    """The factors of a base."""
    if text == "{}":
        return {}
    return {model: TokenFactor(factor, calls) for model, (factor, calls) in _decoder.decode(text).items()}
