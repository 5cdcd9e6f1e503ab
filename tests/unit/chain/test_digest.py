"""Digests: all that rules, totals and the list need of a message, worked out once."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given

from hango.chain import estimator
from hango.chain.digest import body_sha256, digest, digests, shown, shown_text
from hango.digests import BlockDigest, MessageDigest
from hango.messages import Block, Message, read_content
from tests.histories import OWN_MODEL, Said, build, histories, said


def of(content: Any, role: str = "user", model: str | None = None) -> MessageDigest:
    return digest(role, read_content(json.dumps(content)), model)


@given(histories)
def test_a_digest_is_the_one_recomputed_from_its_body(history: list[Said]) -> None:
    """Every digest equals one recomputed from its body, alone or among many."""
    messages = build(history)

    assert digests(messages) == [digest(one.role, one.content, one.model) for one in messages]
    for message, made in zip(messages, digests(messages), strict=True):
        again = tuple(Block.of(block.json) for block in message.content)
        assert digest(message.role, again, message.model) == made
        assert msgspec.json.decode(msgspec.json.encode(made), type=MessageDigest) == made


@given(histories)
def test_a_digest_adds_up(history: list[Said]) -> None:
    """A message's tokens are the sum of its blocks', each counted by the estimator."""
    for message, made in zip(messages := build(history), digests(messages), strict=True):
        counted = []
        for block in message.content:
            texts, sized = estimator.block_texts(block)
            counted.append(sum(estimator.count(texts)) + sized)
        assert [block.tokens for block in made.blocks] == counted
        assert made.tokens == sum(counted)
        assert [block.type for block in made.blocks] == [block.type for block in message.content]


def test_every_field_of_a_digest() -> None:
    """Role, writer, size, preview, hash, and of each block what rules ask for."""
    content = '[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"ls","input":{"p":"/"}}]'

    made = digest("assistant", read_content(content), OWN_MODEL)

    assert (made.seq, made.role, made.model, made.form, made.ids) == (0, "assistant", OWN_MODEL, "calls", "c1")
    assert made.preview == 'I look.\nls({"p":"/"})'
    assert made.chars == len(made.preview)
    assert made.sha256 == sha256(f"assistant\n{OWN_MODEL}\n{content}".encode()).hexdigest()
    assert made.blocks == (
        BlockDigest("text", estimator.count(["I look."])[0]),
        BlockDigest("tool_use", estimator.count(['ls {"p":"/"}'])[0], "c1", "ls"),
    )


@pytest.mark.parametrize(
    ("role", "content", "form"),
    [
        ("user", "Hi.", "plain"),
        ("assistant", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "plain"),
        ("system", "Be brief.", "other"),
        ("user", [], "other"),
        ("user", "", "other"),
        ("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "\u00a0"}], "other"),
        ("user", [{"type": "image", "source": {}}], "other"),
        ("assistant", [{"type": "tool_use", "id": "a", "name": "x", "input": {}}], "calls"),
        ("assistant", [{"type": "tool_use", "id": "a", "name": "x", "input": []}], "other"),
        ("assistant", [{"type": "tool_use", "id": "a.b", "name": "x", "input": {}}], "other"),
        ("assistant", [{"type": "tool_use", "id": "a", "name": "x", "input": {}}] * 2, "other"),
        ("user", [{"type": "tool_use", "id": "a", "name": "x", "input": {}}], "other"),
        ("user", [{"type": "tool_result", "tool_use_id": "a"}, {"type": "text", "text": "b"}], "results"),
        ("user", [{"type": "text", "text": "b"}, {"type": "tool_result", "tool_use_id": "a"}], "other"),
        ("assistant", [{"type": "tool_result", "tool_use_id": "a"}], "other"),
        ("assistant", [{"type": "thinking", "thinking": "x", "signature": "s"}], "other"),
    ],
)
def test_forms(role: str, content: Any, form: str) -> None:
    """How much of a message the rules must look at: anything unusual is looked at block by block."""
    assert of(content, role).form == form


@pytest.mark.parametrize(
    ("block", "model", "signer"),
    [
        ({"type": "thinking", "thinking": "x", "signature": "s"}, None, ""),
        ({"type": "thinking", "thinking": "x", "signature": "s"}, "maker/k", "maker/k"),
        ({"type": "thinking", "thinking": "x"}, "maker/k", None),
        ({"type": "thinking", "thinking": "x", "signature": ""}, None, None),
        ({"type": "redacted_thinking", "data": "RW5j"}, None, ""),
        ({"type": "redacted_thinking", "data": ""}, None, None),
        ({"type": "text", "text": "x", "signature": "s"}, "maker/k", None),
    ],
)
def test_who_signed_thinking(block: dict[str, str], model: str | None, signer: str | None) -> None:
    """Thinking is sent only to the model that signed it; unsigned thinking has no signer."""
    assert of([block], "assistant", model).blocks[0].signer == signer


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "<b>[/red]\u202e"}, "<b>[/red]\u202e"),
        ({"type": "tool_use", "id": "c", "name": "ls", "input": {"p": "é"}}, 'ls({"p":"é"})'),
        ({"type": "tool_result", "tool_use_id": "c", "content": "40"}, "40"),
        ({"type": "tool_result", "tool_use_id": "c"}, ""),
        ({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a"}, PICTURE]},
         "a\n[image image/png, 9 bytes]"),
        ({"type": "thinking", "thinking": "Hm.", "signature": "c2VjcmV0"}, "Hm."),
        ({"type": "thinking", "thinking": "", "signature": "c2VjcmV0"}, "[thinking, encrypted]"),
        ({"type": "redacted_thinking", "data": "c2VjcmV0"}, "[thinking, redacted]"),
        (PICTURE, "[image image/png, 9 bytes]"),
        ({"type": "image", "source": {"type": "url", "url": "https://pictures.example/a"}}, "[image by url]"),
        ({"type": "document", "source": {"type": "text", "data": "Forty."}}, "Forty."),
        ({"type": "document"}, "[document by reference]"),
        ({"type": "hologram", "beams": [1]}, "[hologram, 31 characters]"),
    ],
)  # fmt: skip
def test_blocks_are_shown_as_text(block: dict[str, Any], text: str) -> None:
    """Content is shown as text; binary, encrypted and redacted content is described, not shown."""
    assert shown(Block.of(json.dumps(block))) == text


def test_a_message_is_shown_block_by_block() -> None:
    """A message of several blocks is shown one under the other."""
    blocks = said("user", [{"type": "text", "text": "a"}, PICTURE, {"type": "text", "text": "b"}]).content

    assert shown_text(blocks) == "a\n[image image/png, 9 bytes]\nb"
    assert shown_text(()) == ""


@pytest.mark.parametrize(
    ("text", "preview"),
    [
        ("a" * 199 + "\U0001f600tail", "a" * 199 + "\U0001f600"),
        ("c" * 199 + "e\u0302\u0301 end", "c" * 199 + "e"),
        ("The file ends with <|endoftext|> and <|fim_prefix|>. Why?",) * 2,
        ("<img src=x onerror=alert(3)>",) * 2,
    ],
)
def test_previews(text: str, preview: str) -> None:
    """The first 200 code points, nothing added."""
    made = of(text)

    assert (made.preview, made.chars) == (preview, len(text))


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Kho còn bốn mươi con ốc, hai cuộn dây và một lưỡi cưa mới; tuần sau cần đặt thêm dầu xích. " * 4, 109, 364),
        ("工坊还剩四十颗螺栓，两卷电线，一片新锯条。" * 5, 52, 231),
        ("The file ends with <|endoftext|> and <|fim_prefix|>. Why?", 10, 60),
    ],
)
def test_tokens_of_texts(text: str, least: int, most: int) -> None:
    """Letters of two or three bytes and special-token text are within what public tokenizers give."""
    assert least <= of(text).tokens <= most


def test_equal_texts_of_different_writers_are_different_bodies() -> None:
    """The hash covers role, model and the body's text."""
    body = '[{"type":"text","text":"a"}]'

    assert (
        len({body_sha256("user", body, None), body_sha256("assistant", body, None), body_sha256("user", body, "m")})
        == 3
    )


def test_many_messages_are_one_call_of_the_tokenizer() -> None:
    """No message, no digest."""
    assert digests([]) == []
    assert digests([Message(said("user", "a").role, ())])[0].tokens == 0
