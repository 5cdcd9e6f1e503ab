"""Estimates: additive, of text as text, of pictures and documents by size."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hango.chain import estimator
from hango.chain.estimator import block_texts, count, picture_size, scaled, tool_text
from hango.messages import Block, ToolSpec

texts = st.text(st.characters(codec="utf-8"), max_size=60)


def tokens(block: Block) -> int:
    counted, sized = block_texts(block)
    return sum(count(counted)) + sized


def image(data: str, **source: Any) -> Block:
    return Block.make("image", source={"type": "base64", "media_type": "image/png", "data": data} | source)


def document(**source: Any) -> Block:
    return Block.make("document", source=source)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(head)) + chunk + struct.pack(">I", zlib.crc32(chunk))


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\x00" + b"\x00" * 9
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x00" * 9
    return b"\xff\xd8" + app + frame + b"\xff\xd9"


@given(st.lists(texts, max_size=6))
@example(["<|endoftext|>", "<|im_start|>", "", "\x00", "a" * 5000])
def test_counting_many_is_counting_each(many: list[str]) -> None:
    """One call of the tokenizer for many texts gives what a call for each gives; it never raises."""
    assert count(many) == [count([text])[0] for text in many]


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "<|endofprompt|>"])
def test_text_that_looks_like_a_special_token_is_text(text: str) -> None:
    """Special-token text such as <|endoftext|> is text: several tokens, no failure."""
    assert count([text])[0] >= 3


def test_half_a_surrogate_pair_still_counts() -> None:
    """A fault in the encoder does not hide the context: four bytes are a token then."""
    assert count(["\ud800" * 8]) == [2]


@given(st.integers(0, 10**9), st.sampled_from((1.0, 1.1, 1.2, 1.35, 0.37)))
@example(100, 1.1)
def test_a_part_is_rounded_up_once(tokens: int, factor: float) -> None:
    """Each part is rounded once; a product such as 110.00000000000001 is 110."""
    exact = tokens * round(factor * 100)

    assert scaled(tokens, factor) == -(-exact // 100)


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [(1000, 750, 1000), (200, 200, 64), (1092, 1092, 1590), (8000, 8000, 1600), (1, 1, 64)],
)
def test_a_picture_counts_by_its_area(width: int, height: int, expected: int) -> None:
    """Pictures are counted by size: about one token for 750 pixels, between the least and the most of one picture."""
    assert tokens(image(encoded(png(width, height)))) == expected
    assert tokens(image(encoded(jpeg(width, height)))) == expected


@pytest.mark.parametrize(
    "block",
    [
        image("iVBORw0KGgoAAAANSUhEUgAA" * 16_000),
        image("no base64 at all"),
        image(""),
        image("", type="url", url="https://pictures.example/a.png"),
        image("", type="file", file_id="f1"),
        Block.make("image"),
        Block.make("image", source=5),
        Block.make("image", source={"type": "base64", "data": 7}),
    ],
)
def test_a_picture_of_unknown_size_counts_as_a_large_one(block: Block) -> None:
    """A picture whose size cannot be read counts as a large one, never as text, never as a failure."""
    assert tokens(block) <= 1600
    assert block_texts(block)[0] == []


@given(st.binary(max_size=64) | st.sampled_from((png(4, 5), jpeg(4, 5))).flatmap(
    lambda whole: st.integers(0, len(whole)).map(lambda end: whole[:end])))  # fmt: skip
def test_a_broken_picture_never_fails(data: bytes) -> None:
    """The first bytes of a picture tell its size or do not."""
    size = picture_size(data)

    assert size is None or (size[0] > 0 and size[1] > 0)
    assert picture_size(png(4, 5)) == picture_size(jpeg(4, 5)) == (4, 5)


def test_a_document_counts_by_its_pages() -> None:
    """Documents are counted by size: pages when they can be seen, else bytes; text as text."""
    pdf = b"%PDF-1.7\n" + b"1 0 obj <</Type /Pages>>\n" + b"2 0 obj <</Type /Page>>\n" * 3
    big = encoded(b"%PDF" + b"\x00" * 10_000_000)

    assert tokens(document(type="base64", media_type="application/pdf", data=encoded(pdf))) == 3 * 2250
    assert tokens(document(type="base64", media_type="application/pdf", data=encoded(b"%PDF"))) == 2250
    assert tokens(document(type="base64", media_type="application/pdf", data=big)) == 110_000
    assert tokens(document(type="url", url="https://papers.example/a.pdf")) == 2250
    assert tokens(document(type="text", media_type="text/plain", data="Forty bolts.")) == count(["Forty bolts."])[0]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("Forty.", ["Forty."]),
        ([{"type": "text", "text": "Forty."}, {"type": "text", "text": "Fifty."}], ["Forty.", "Fifty."]),
        ([], ["[]"]),
        (None, []),
        ({"odd": 1}, ['{"odd":1}']),
        ([1, 2], ["[1,2]"]),
    ],
)
def test_a_result_counts_as_its_content(content: Any, texts: list[str]) -> None:
    """A result is counted by what the model reads of it."""
    assert block_texts(Block.make("tool_result", tool_use_id="c1", content=content)) == (texts, 0)


def test_a_picture_inside_a_result_is_no_text() -> None:
    """Pictures are counted by size wherever they stand."""
    inner = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(png(750, 100))}}

    assert block_texts(Block.make("tool_result", tool_use_id="c1", content=[inner])) == ([], 100)


@given(st.dictionaries(texts, texts | st.integers(), max_size=3))
def test_one_call_has_one_count(input: dict[str, Any]) -> None:
    """Two serialisers give one count for one tool call: escapes are written out, white space is off."""
    kinds = [
        Block.of(
            json.dumps(
                {"type": "tool_use", "id": "c1", "name": "ls", "input": input}, ensure_ascii=ascii_only, indent=i
            )
        )
        for ascii_only, i in ((True, None), (False, 2))
    ]

    assert block_texts(kinds[0]) == block_texts(kinds[1])


def test_a_schema_counts() -> None:
    """Tool schemas count, as one canonical text; a provider's own tool counts as it came."""
    small = ToolSpec("ls", "Lists.", '{"type":"object"}')
    own = ToolSpec("web_search", definition='{"type":"web_search_20250305","name":"web_search"}')

    assert tool_text(small) == '{"name":"ls","description":"Lists.","input_schema":{"type":"object"}}'
    assert json.loads(tool_text(small))["input_schema"] == {"type": "object"}
    assert tool_text(own) == own.definition


def test_an_unknown_block_counts_as_its_text() -> None:
    """A block nobody knows is counted as it stands."""
    block = Block.make("hologram", beams=[msgspec.Raw(b"1.10")])

    assert block_texts(block) == (['{"type":"hologram","beams":[1.10]}'], 0)


def test_thinking_counts_and_encrypted_thinking_by_size() -> None:
    """What cannot be read is counted by size."""
    assert block_texts(Block.make("thinking", thinking="Hm.", signature="s" * 999)) == (["Hm."], 0)
    assert block_texts(Block.make("redacted_thinking", data="a" * 160)) == ([], 30)


def test_the_encoding_is_o200k() -> None:
    """Texts are counted with o200k."""
    assert estimator.ENCODING == "o200k_base"
    assert count(["Hello, world!", "Kho còn bốn mươi con ốc"]) == [4, 9]
