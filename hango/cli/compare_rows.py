"""What the tries of one variant come to: a row of a comparison. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hango.cli import answers
from hango.cli.try_replies import Batch, Try


@dataclass(frozen=True, slots=True)
class Row:
    """`answers` counts each answer that came, as `answers.as_text` has it, the commonest first."""

    label: str
    tries: tuple[Try, ...]
    answers: Mapping[str, int]

    @classmethod
    def of(cls, label: str, tries: Sequence[Try]) -> Row:
        said = Counter(answers.as_text(one.answer) for one in tries if one.answer is not None)
        return cls(label, tuple(tries), dict(said.most_common()))

    @property
    def model(self) -> str:
        return self.tries[0].request.model if self.tries else ""

    @property
    def changed(self) -> bool:
        """It has overrides of its own."""
        return any(one.request.exclude or one.request.replace or one.request.include for one in self.tries)

    @property
    def succeeded(self) -> int:
        return sum(one.succeeded for one in self.tries)

    @property
    def failures(self) -> Mapping[str, int]:
        """Why there is no answer, counted; by the status where there is no code."""
        ended = (one for one in self.tries if one.ended and not one.succeeded)
        return Counter(one.status if one.error is None else one.error.code for one in ended)

    @property
    def commonest(self) -> str | None:
        """The answer that came most often, the first of those that came alike; None without any."""
        return next(iter(self.answers), None)

    @property
    def input_tokens(self) -> int | None:
        """Of one call."""
        counts = [one.usage.all_input for one in self.tries if one.usage is not None]
        return None if not counts else round(median(counts))

    @property
    def cost(self) -> float | None:
        """Of all calls, in dollars; None when it is known of none."""
        costs = [one.usage.cost_usd for one in self.tries if one.usage is not None and one.usage.cost_usd is not None]
        return None if not costs else sum(costs)

    @property
    def seconds(self) -> float | None:
        """The median of the calls that brought an answer."""
        taken = [one.seconds for one in self.tries if one.succeeded and one.seconds is not None]
        return None if not taken else median(taken)

    @property
    def stops(self) -> Mapping[str, int]:
        return Counter(one.stop_reason for one in self.tries if one.stop_reason is not None)

    @property
    def tools(self) -> Mapping[str, int]:
        """How many times each tool was called."""
        return Counter(call.name for one in self.tries if one.answer is not None for call in answers.calls(one.answer))


def rows(batch: Batch, tries: Sequence[Try]) -> list[Row]:
    """A row for each variant, in their order; its tries are in the order of the batch too."""
    by_id = {one.id: one for one in tries}
    return [
        Row.of(variant.label or f"variant {at}", [by_id[id] for id in variant.tries if id in by_id])
        for at, variant in enumerate(batch.variants, start=1)
    ]


def base_of(row: Row, found: Sequence[Row]) -> Row:
    """What a row is compared with: the first of its model with nothing changed, else the first of all.

    A row with nothing changed is compared with the first of all.
    """
    unchanged = (one for one in found if one.model == row.model and not one.changed)
    base = next(unchanged, found[0])
    return found[0] if base is row else base


def failures(found: Sequence[Row]) -> Mapping[str, int]:
    """Of all rows together."""
    return Counter(code for row in found for code, count in row.failures.items() for _ in range(count))
