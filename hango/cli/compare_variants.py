"""The variants of a comparison: from `--without` and from a file of JSON Lines. Pure but for the reading of the file.

The unchanged context is always the first one, so that there is something to compare with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hango.cli.client import Refused
from hango.cli.editor import decoded
from hango.cli.exits import Failure
from hango.cli.imports import opened
from hango.cli.text import cut_middle, one_line

BASE = "base"
MOST_LABEL = 180  # columns of a label that is made here; the API takes 200 characters

_KINDS: Mapping[str, tuple[str, type]] = {
    "label": ("a text", str),
    "exclude": ("a list of part ids", list),
    "replace": ("an object of part ids and texts", dict),
    "include": ("a list of part ids", list),
    "message": ("a text", str),
    "until": ("the number of a message", int),
    "model": ("a text", str),
}
_AT = re.compile(r"^Variant (?P<first>\d+)|/variants/(?P<at>\d+)(?:/(?P<field>[^\s:]*))?")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask. `origin` says where a person wrote it."""

    label: str
    overrides: Mapping[str, Any] = field(default_factory=dict)  # exclude, replace, include
    message: str | None = None
    until: int | None = None
    model: str | None = None
    origin: str = ""

    def as_sent(self) -> dict[str, Any]:
        more = {"message": self.message, "until": self.until, "model": self.model}
        given = {name: value for name, value in more.items() if value is not None}
        return {"label": self.label, "exclude": [], "replace": {}, "include": [], **self.overrides, **given}


def without(parts: Sequence[str]) -> list[Variant]:
    """One variant for each part, without it."""
    each = ({"exclude": [part]} for part in dict.fromkeys(parts))
    return [Variant(_label(one, at), one, origin=f"--without {one['exclude'][0]}") for at, one in enumerate(each)]


def read(file: str) -> list[Variant]:
    """One variant for each line of the file. Raises Failure that names the line."""
    name = "the standard input" if file == "-" else file
    with opened(file) as (stream, _):
        text = decoded(stream.read(), name)
    found = list(_numbered(text, name))
    if not found:
        raise Failure(f'{name} holds no variant. Write one JSON object a line, like {{"exclude": ["message:4"]}}.')
    return found


def asked(
    variants: Iterable[Variant], *, message: str | None, until: int | None, models: Sequence[str]
) -> list[Variant]:
    """The base and the variants, each with every model. What a variant says itself comes before the options.

    Raises Failure when two have one label: nothing would tell them apart.
    """
    each = [Variant(BASE, origin="the unchanged context, which is always compared"), *variants]
    made = [
        replace(
            one,
            message=message if one.message is None else one.message,
            until=until if one.until is None else one.until,
        )
        for one in each
    ]
    if models:
        made = [_with_model(one, model, alone=len(models) == 1) for model in dict.fromkeys(models) for one in made]
    seen: dict[str, Variant] = {}
    for one in made:
        if one.label in seen:
            raise Failure(f"{one.origin or one.label}: the label {one.label!r} is taken. Give each variant its own.")
        seen[one.label] = one
    return made


def told(refused: Refused, variants: Sequence[Variant]) -> Refused:
    """The same refusal with the places of variants as a person knows them."""

    def named(found: re.Match[str]) -> str:
        at = int(found["first"] or found["at"])
        if at >= len(variants):
            return found[0]
        place = variants[at].origin or one_line(variants[at].label)
        return f"{place}, {found['field']}" if found["field"] else place

    said = refused.sentence.partition(": ")[2]
    more = [_AT.sub(named, one) for one in refused.more if not (said and one.endswith(said))]
    return Refused(_AT.sub(named, refused.sentence), reason=refused.reason, more=more)


def _with_model(one: Variant, model: str, *, alone: bool) -> Variant:
    if one.model is not None:
        raise Failure(f"{one.origin}: it names the model {one.model}. Leave it out there, or leave --model out.")
    return replace(
        one, model=model, label=one.label if alone else cut_middle(f"{one.label} · {one_line(model)}", MOST_LABEL)
    )


def _numbered(text: str, name: str) -> Iterator[Variant]:
    # Only a line feed ends a line of JSON Lines: a text may hold other line separators.
    for at, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _variant(line, f"{name}, line {at}", at)


def _variant(line: str, origin: str, at: int) -> Variant:
    found = _parsed(line, origin)
    for name, value in found.items():
        if name not in _KINDS:
            raise Failure(f"{origin}: {name!r} is no field of a variant. It takes {', '.join(_KINDS)}.")
        wanted, kind = _KINDS[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Failure(f"{origin}: {name} is not {wanted}.")
    _check_texts(found, origin)
    overrides: dict[str, Any] = {name: found[name] for name in ("exclude", "replace", "include") if name in found}
    return Variant(
        label=found.get("label") or _label(overrides, at),
        overrides=overrides,
        message=found.get("message"),
        until=found.get("until"),
        model=found.get("model"),
        origin=origin,
    )


def _check_texts(found: Mapping[str, Any], origin: str) -> None:
    for name in ("exclude", "include"):
        if not all(isinstance(part, str) for part in found.get(name, ())):
            raise Failure(f"{origin}: {name} is not {_KINDS[name][0]}.")
    if not all(isinstance(text, str) for text in found.get("replace", {}).values()):
        raise Failure(f"{origin}: replace is not {_KINDS['replace'][0]}.")


def _parsed(line: str, origin: str) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Failure(f"{origin} is no JSON{where}. Write one JSON object a line.") from None
    if not isinstance(found, dict):
        raise Failure(f"{origin} is no JSON object. Write one JSON object a line.")
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _label(overrides: Mapping[str, Any], at: int) -> str:
    """A name from what it changes, for a variant that has none."""
    words = [
        f"{word} {', '.join(overrides[name])}"
        for name, word in (("exclude", "without"), ("replace", "replaced"), ("include", "with"))
        if overrides.get(name)
    ]
    return cut_middle(one_line("; ".join(words)), MOST_LABEL) or f"line {at}"
