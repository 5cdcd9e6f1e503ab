"""What `hango import` says of a file that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hango.cli import import_refusal
from hango.cli.client import Refused
from hango.cli.own_command import own_command

TAKES = f"Import takes a transcript or a request body as JSON; `{own_command()} import -h` names the formats."


def told(sentence: str, reason: str, file: str, format_name: str = "auto", more: tuple[str, ...] = ()) -> list[str]:
    made = import_refusal.told(Refused(sentence, reason=reason, more=more), file, format_name)
    return [made.sentence, *made.more]


@pytest.mark.parametrize(
    ("content", "sentence", "said"),
    [
        ("# Read me\n", "The body is not valid JSON.", "is not valid JSON (line 1, column 1)"),
        ('{"a":\n  [}', "The body is not valid JSON.", "is not valid JSON (line 2, column 4)"),
        ('{}\n{"a" 1}\n', "Line 2: The body is not valid JSON.", "is not valid JSON (line 2, column 6)"),
        ("{}\n{}\n", "Line 2: The body holds one key twice in an object.", "holds one key twice in an object (line 2)"),
        ('{"a": NaN}', "The body holds NaN, which is not JSON.", "holds NaN, which is not JSON"),
        ("", "Line 7: The body is not valid JSON.", "is not valid JSON (line 7)"),
    ],
)
def test_a_file_that_is_no_json(content: str, sentence: str, said: str, tmp_path: Path) -> None:
    """The file, the place in it where that can be found, and what import takes."""
    file = tmp_path / "notes.md"
    file.write_text(content, encoding="utf-8")

    assert told(sentence, "not_json", str(file), more=(sentence,)) == [f"the file {file} {said}. {TAKES}"]


def test_standard_input_has_no_name() -> None:
    """What came through a pipe cannot be read again."""
    said = f"the standard input is not valid JSON. {TAKES}"
    assert told("The body is not valid JSON.", "not_json", "-") == [said]


def test_a_format_that_was_not_recognised() -> None:
    """The option is named as a person writes it."""
    sentence = "The format was not recognised: looked for this. Name it with `format`."
    said = "a.json cannot be imported: The format was not recognised: looked for this. Name it with `--format`."
    assert told(sentence, "unknown_format", "a.json") == [said]


def test_another_format_than_named() -> None:
    """Where a format was named and the file is none, `--format auto` is the way on; further faults are told."""
    sentence = "message:1: Object missing required field `role` at '/0'."
    said = f"a.json cannot be imported: {sentence} Where it is no anthropic file, try `--format auto`."
    assert told(sentence, "bad_field", "a.json", "anthropic", more=("message:2: No role.",)) == [
        said,
        "message:2: No role.",
    ]
    assert told(sentence, "bad_field", "a.json") == [f"a.json cannot be imported: {sentence}"]


def test_a_fault_of_an_option_is_not_the_files() -> None:
    """What is wrong with an option is said as it is."""
    sentence = "The query parameter 'title' cannot be read: too long."
    assert told(sentence, "bad_field", "a.json", "anthropic") == [sentence]
