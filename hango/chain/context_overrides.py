"""Override rules, pure: which sets can be read, and which overrides are in force for a call. Saves nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hango.chain.parts import ParsedPart, PartKind, parse
from hango.domain import Override, OverrideAction, PartID, SavedOverride
from hango.errors import Invalid, Reason
from hango.jsontext import is_text
from hango.messages import is_blank

ALL = "*"  # in `include`: every saved override
CALL = "call"  # the scope of overrides that are not saved


@dataclass(frozen=True, slots=True)
class Applied:
    """An override in force for one request. `scope` is agent, session or call; `against` as in SavedOverride."""

    override: Override
    scope: str = CALL
    against: str = ""


def effective(
    saved: Sequence[SavedOverride], wanted: Sequence[Override], include: Collection[str] = ()
) -> tuple[Applied, ...]:
    """The saved overrides and a call's own. `include` lifts the saved one of a part, "*" every saved one.

    A call's own override of a part takes the place of the saved one.
    """
    lifted = {override.part for override in wanted} | {PartID(text) for text in include}
    kept = [] if ALL in lifted else [one for one in saved if one.part not in lifted]
    return (
        *(Applied(Override(one.part, one.action, one.replacement), one.scope.value, one.against) for one in kept),
        *(Applied(override) for override in wanted),
    )


def read(exclude: Sequence[str], replace: Mapping[str, str]) -> list[Override]:
    """Overrides from a caller's words. Raises Invalid naming the part at fault and what would mend it."""
    made: dict[PartID, Override] = {}
    for text in exclude:
        _add(made, Override(parse(text).id, OverrideAction.EXCLUDE))
    for text, replacement in replace.items():
        part = parse(text)
        check_replacement(part, replacement)
        _add(made, Override(part.id, OverrideAction.REPLACE, replacement))
    return list(made.values())


def check_replacement(part: ParsedPart, replacement: str) -> None:
    """Raise Invalid when a part cannot be replaced, or not by this text."""
    if part.kind is PartKind.TOOL:
        message = (
            f"The part '{part.id}' cannot be replaced: its arguments are validated by its schema. Exclude it instead."
        )
        raise Invalid.because(Reason.REPLACE_TOOL, message, part=part.id)
    if not is_text(replacement):
        message = f"The replacement of '{part.id}' holds NUL or half of a surrogate pair."
        raise Invalid.because(Reason.INVALID_TEXT, message, part=part.id)
    if is_blank(replacement):
        message = f"The replacement of '{part.id}' is empty or white space. Exclude the part instead."
        raise Invalid.because(Reason.EMPTY_REPLACEMENT, message, part=part.id)


def _add(made: dict[PartID, Override], override: Override) -> None:
    if override.part in made:
        message = f"The part '{override.part}' is named twice. Name it once."
        raise Invalid.because(Reason.DUPLICATE_PART, message, part=override.part)
    made[override.part] = override
