"""Files that nobody wrote: whatever a file holds, it is read or refused with one of hango's errors."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.formats.transcript import Format
from hango.errors import HangoError
from tests.unit.chain.formats.imported import lines, read

SAMPLES = Path(__file__).parents[3] / "samples"
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "\x00", "\ud800", "data:;base64,", "{", '{"a":1}', "[1]", "system", "tool", "text"]),
    st.sampled_from([[], {}, [[]], [None], {"type": "text"}, {"type": 7}, {"role": "user"}, {"": {"": []}}, [["x"]]]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [path, *(place for key, each in inside for place in places(each, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], odd)
    return copy


def sample(format: Format) -> Any:
    (file,) = SAMPLES.glob(f"{format}.*")
    text = file.read_text()
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)


@pytest.mark.parametrize("format", Format)
@given(data=st.data())
def test_a_sample_with_something_odd_in_it(format: Format, data: st.DataObject) -> None:
    """Any value of a file put in any place: read or refused, by its name and by `auto`, as a document and as lines."""
    value = sample(format)
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(value, data.draw(st.sampled_from(places(value))), data.draw(ODD))
    content = lines(*value) if isinstance(value, list) and data.draw(st.booleans()) else json.dumps(value)

    for named in (format, None):
        with suppress(HangoError):
            read(content, named)


@pytest.mark.parametrize("format", [*Format, None])
@given(
    content=st.binary(max_size=40)
    | st.recursive(
        ODD,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["messages", "type", "role", "content", "mapping", "from", "input", "uuid", "message"]),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_content(format: Format | None, content: bytes) -> None:
    """Any bytes and any JSON: read or refused."""
    with suppress(HangoError):
        read(content, format)
