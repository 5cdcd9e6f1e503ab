"""Why a file could not be imported, in words for who named the file: the API's sentence speaks of a body."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from hango.cli.client import Refused
from hango.cli.own_command import own_command

# A fault is looked for once more in a file of this size or less: the API's sentence says no place in a line.
MOST_BYTES = 8 * 1024 * 1024
STDIN = "-"
AUTO = "auto"

_OF_THE_BODY = re.compile(r"(?:Line (?P<line>\d+): )?The body (?P<fault>.*)", re.DOTALL)
_OF_AN_OPTION = "The query parameter "
_ANOTHER_FORMAT = frozenset({"bad_field", "missing_field", "bad_line"})


def told(refused: Refused, file: str, format_name: str) -> Refused:
    """The same refusal with the file's name, the place where it can be found, and what to do."""
    sentence = refused.sentence
    if sentence.startswith(_OF_AN_OPTION) or refused.reason in {"rate_limited", "bad_model"}:
        return refused
    if of_body := _OF_THE_BODY.fullmatch(sentence):
        line = None if of_body["line"] is None else int(of_body["line"])
        sentence = _of_the_file(file, of_body["fault"], line)
    else:
        name = "the standard input" if file == STDIN else file
        sentence = f"{name} cannot be imported: {sentence}"
    if refused.reason == "unknown_format":
        sentence = sentence.replace("`format`", "`--format`")
    elif format_name != AUTO and refused.reason in _ANOTHER_FORMAT:
        sentence += f" Where it is no {format_name} file, try `--format auto`."
    return Refused(sentence, reason=refused.reason, more=_without_said(refused.more, refused.sentence))


def _of_the_file(file: str, fault: str, line: int | None) -> str:
    name = "the standard input" if file == STDIN else f"the file {file}"
    place = _place(file, line)
    at = f" ({place})" if place else ""
    takes = f"Import takes a transcript or a request body as JSON; `{own_command()} import -h` names the formats."
    return f"{name} {fault.removesuffix('.')}{at}. {takes}"


def _place(file: str, line: int | None) -> str:
    """Line and column of what is no JSON; of one line of JSON Lines where it is named."""
    found = _column(file, line)
    if found is not None:
        return f"line {found[0]}, column {found[1]}"
    return "" if line is None else f"line {line}"


def _column(file: str, line: int | None) -> tuple[int, int] | None:
    path = Path(file)
    try:
        if file == STDIN or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        text = path.read_text(encoding="utf-8-sig")
        json.loads(text if line is None else text.split("\n")[line - 1])
    except json.JSONDecodeError as error:
        return (error.lineno if line is None else line), error.colno
    except (OSError, ValueError, IndexError, RecursionError):  # no UTF-8, or changed meanwhile
        return None
    return None


def _without_said(more: Sequence[str], sentence: str) -> tuple[str, ...]:
    """Further faults; what the sentence says is not said again."""
    return tuple(one for one in more if not one.endswith(sentence))
