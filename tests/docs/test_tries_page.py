"""docs/tries.md against the code: its statuses, its errors, its sentences, its settings."""

from __future__ import annotations

import re

from hango import config
from hango.api.try_replies import SENTENCES
from hango.tries import ENDED, TryError, TryStatus
from hango.workers.outcomes import CHARGED
from tests.docs.test_docs import page

TRIES = "docs/tries.md"


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first column has this heading, by their first cell."""
    _, _, table = page(TRIES).partition(f"\n| {heading} |")
    lines = table.partition("\n\n")[0].splitlines()[2:]  # after the rest of the heading and the line under it
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name.strip("`"): others for name, *others in cells}


def test_every_status_is_documented() -> None:
    """The closed set of statuses, in its order; the drawing has each of them as a state, ends without a way out."""
    arrows = re.findall(r"^    (\w+|\[\*\]) --> (\w+)", page(TRIES), re.MULTILINE)

    assert list(rows("status")) == [status.value for status in TryStatus]
    assert {end for _, end in arrows} == {status.value for status in TryStatus}
    assert {start for start, _ in arrows} & {status.value for status in ENDED} == set()


def test_every_error_is_documented_with_its_sentence() -> None:
    """The closed set of errors, in its order, each with the sentence that the API says."""
    found = rows("error")

    assert list(found) == [error.value for error in TryError]
    assert {error: cells[0] for error, cells in found.items()} == {
        error.value: sentence for error, sentence in SENTENCES.items()
    }


def test_what_a_provider_may_charge_for_is_documented_as_it_is_billed() -> None:
    """A fault of a provider is billed by the estimate exactly where the page says so."""
    found = rows("error")

    assert {fault.value: found[fault.value][1] for fault in CHARGED} == {
        fault.value: "by the estimate" if charged else "nothing" for fault, charged in CHARGED.items()
    }


def test_every_setting_that_the_page_names_is_one() -> None:
    """A variable on the page is one of the table of settings."""
    named = set(re.findall(r"`(HANGO_\w+)`", page(TRIES)))

    assert named <= {row.name for row in config.table()}
