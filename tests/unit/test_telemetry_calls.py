"""Telemetry of jobs and model calls: spans across the queue, names of the conventions, content by the gate alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from hango import telemetry
from hango.domain import KeyID, Principal, Role, TenantID, UserID
from hango.messages import Block, Message, MessageRole, Request, Response, StopReason, SystemText, Usage, text_block
from hango.telemetry import Attr, Content, Metric, Name, Span, gen_ai
from hango.telemetry.names import COUNTERS, GAUGES, HISTOGRAMS
from hango.tries import TryStatus
from tests.otlp import receiving
from tests.unit.test_telemetry import PARENT, TRACE, settings

CANARY = "canary-4713"
MEMBER = Principal(TenantID(UUID(int=1)), UserID(UUID(int=2)), KeyID(UUID(int=3)), Role.MEMBER)
CALL = Block.make("tool_use", id="t1", name="look", input={"at": 12345678901234567890123})
RESULT = Block.make("tool_result", tool_use_id="t1", content="a sea")
PICTURE = Block.make("image", source={"type": "base64", "media_type": "image/png", "data": CANARY})
REQUEST = Request(
    model="claude-sonnet-4-5",
    system=(SystemText("Be short."),),
    tools=(),
    messages=(
        Message(MessageRole.USER, (text_block("Look."), PICTURE)),
        Message(MessageRole.ASSISTANT, (CALL,)),
        Message(MessageRole.USER, (RESULT,)),
    ),
    max_output_tokens=64,
)
RESPONSE = Response(
    (text_block("Water."),), StopReason.END_TURN, Usage(10, 3, cache_read_tokens=7, cache_write_tokens=2)
)


@pytest.mark.parametrize(
    ("traceparent", "trace_id", "parent_id"),
    [(f"00-{TRACE}-{PARENT}-01", TRACE, PARENT), ("nonsense", None, ""), (None, None, "")],
)
def test_a_job_goes_on_with_the_trace_that_asked_for_it(
    traceparent: str | None, trace_id: str | None, parent_id: str, tmp_path: Path
) -> None:
    """The `context_try` SERVER span hangs under the request, across the queue, and the CLIENT chat span under it."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "worker"),
        telemetry.job_span(Span.CONTEXT_TRY, traceparent, {Attr.TRY_ATTEMPT: 1}),
        telemetry.chat_span(Name("m"), {Attr.TRY: True}, seconds=Metric.TRY_CALL),
    ):
        pass

    chat, job = receiver.spans
    assert (job.name, job.kind, job.attributes) == ("context_try", 2, {"hango.context.try.attempt": 1})
    assert (chat.name, chat.kind, chat.attributes) == ("chat m", 3, {"hango.context.try": True})
    assert (job.trace_id == trace_id) == (trace_id is not None)
    assert (job.parent_id, chat.parent_id, chat.trace_id) == (parent_id, job.span_id, job.trace_id)
    assert [(one.name, one.unit, one.count) for one in receiver.histograms] == [
        ("hango.context.try.call.duration", "s", 1)
    ]


def test_the_trace_of_a_request_can_be_handed_on(tmp_path: Path) -> None:
    """Trace context travels in the try's row: what a request hands on leads back to it."""
    with receiving() as receiver, telemetry.setup(settings(receiver, tmp_path), "api"):
        with telemetry.request_span("POST", {}):
            handed_on = telemetry.traceparent()
        outside = telemetry.traceparent()

    (request,) = receiver.spans
    assert (handed_on, outside) == (f"00-{request.trace_id}-{request.span_id}-03", None)  # sampled, and a random id


def test_a_call_has_the_names_of_the_conventions() -> None:
    """gen_ai.* of 2026: input tokens with the cached ones; Langfuse gets a generation and the same tokens apart."""
    assert gen_ai.of_request(Name("anthropic"), REQUEST) | gen_ai.of_response(RESPONSE) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.request.max_tokens": 64,
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 19,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 7,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "langfuse.observation.type": "generation",
        "langfuse.observation.usage_details": {
            "input": 10,
            "output": 3,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 2,
        },
    }


def test_a_call_without_figures_has_none() -> None:
    """What the provider did not tell is not made up."""
    assert gen_ai.of_response(replace(RESPONSE, usage_known=False)) == {"gen_ai.response.finish_reasons": ("end_turn",)}


def test_a_cost_is_told_where_it_is_known() -> None:
    """In dollars, and in Langfuse's words; what nobody can price has none."""
    assert gen_ai.of_cost(0.25) == {
        "hango.call.cost_usd": 0.25,
        "langfuse.observation.cost_details": {"total": 0.25},
    }
    assert gen_ai.of_cost(None) == {}


def test_a_tool_has_the_names_of_the_conventions() -> None:
    """Operation execute_tool with the tool's name; Langfuse takes it for a tool."""
    assert gen_ai.of_tool(Name("read_file")) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "langfuse.observation.type": "tool",
    }


def test_a_span_may_get_its_name_while_it_is_open(tmp_path: Path) -> None:
    """What kind of job was claimed shows when it is read."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "worker"),
        telemetry.job_span(Span.CONTEXT_TRY, None) as seen,
    ):
        seen.become(Span.SUMMARY_PREVIEW)

    assert [one.name for one in receiver.spans] == ["summary_preview"]


def test_texts_are_parts_of_the_conventions() -> None:
    """Messages with their parts; digits of a call stay as they came, a picture is named and not copied."""
    assert gen_ai.messages_json(REQUEST.messages) == (
        '[{"role":"user","parts":[{"type":"text","content":"Look."},{"type":"image"}]},'
        '{"role":"assistant","parts":[{"type":"tool_call","id":"t1","name":"look",'
        '"arguments":{"at":12345678901234567890123}}]},'
        '{"role":"user","parts":[{"type":"tool_call_response","id":"t1","response":"a sea"}]}]'
    )
    assert json.loads(gen_ai.system_json(REQUEST.system)) == [{"type": "text", "content": "Be short."}]
    assert json.loads(gen_ai.answer_json(RESPONSE)) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Water."}], "finish_reason": "end_turn"}
    ]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            Block.make("thinking", thinking="Hm.", signature="s"),
            {"type": "reasoning", "content": "Hm."},
        ),
        (Block.make("server_tool_use", id="s1", name="search"), {
            "type": "tool_call", "id": "s1", "name": "search", "arguments": None,
        }),
        (Block.make("odd", what=[1]), {"type": "odd", "what": [1]}),
    ],
)  # fmt: skip
def test_other_blocks_are_parts_too(block: Block, part: dict[str, object]) -> None:
    """A block that the conventions do not know stays as it is."""
    assert json.loads(gen_ai.answer_json(replace(RESPONSE, content=(block,))))[0]["parts"] == [part]


@pytest.mark.parametrize("allowed", [False, True])
def test_content_stands_on_a_span_by_the_tenants_switch_alone(allowed: bool, tmp_path: Path) -> None:
    """Content on telemetry stays controlled by trace_llm_content."""
    written: list[str] = []

    def write() -> str:
        written.append(CANARY)
        return CANARY

    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "worker"),
        telemetry.chat_span(Name("m")) as seen,
    ):
        seen.content(Content.INPUT, replace(MEMBER, trace_llm_content=allowed), write)

    (chat,) = receiver.spans
    assert (chat.attributes, written) == (
        ({"gen_ai.input.messages": CANARY}, [CANARY]) if allowed else ({}, [])
    )  # fmt: skip


def test_lists_and_figures_are_sent_as_the_receivers_take_them(tmp_path: Path) -> None:
    """Finish reasons are a list, Langfuse's usage is the text of a JSON object of numbers."""
    with (
        receiving() as receiver,
        telemetry.setup(settings(receiver, tmp_path), "worker"),
        telemetry.chat_span(Name("m"), gen_ai.of_response(RESPONSE)),
    ):
        pass

    (chat,) = receiver.spans
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert json.loads(chat.attributes["langfuse.observation.usage_details"]) == {
        "input": 10,
        "output": 3,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 2,
    }


def test_what_happens_is_counted_by_its_kind(tmp_path: Path) -> None:
    """Counter hango.context.try by outcome; a time that is no span goes into its histogram."""
    with receiving() as receiver, telemetry.setup(settings(receiver, tmp_path), "worker"):
        telemetry.count(Metric.TRY, {Attr.TRY_OUTCOME: TryStatus.SUCCEEDED})
        telemetry.count(Metric.TRY, {Attr.TRY_OUTCOME: TryStatus.FAILED}, by=2)
        telemetry.count(Metric.TRY, {Attr.TRY_OUTCOME: TryStatus.SUCCEEDED})
        telemetry.measured(Metric.TRY_WAIT, 0.25)

    assert sorted((one.name, one.attributes["hango.context.try.outcome"], one.value) for one in receiver.counters) == [
        ("hango.context.try", "failed", 2),
        ("hango.context.try", "succeeded", 2),
    ]
    assert [(one.name, one.count, one.total) for one in receiver.histograms] == [
        ("hango.context.try.wait.duration", 1, 0.25)
    ]


def test_without_an_endpoint_nothing_is_counted_or_handed_on(tmp_path: Path) -> None:
    """Off without HANGO_OTLP_ENDPOINT."""
    with telemetry.job_span(Span.CONTEXT_TRY, f"00-{TRACE}-{PARENT}-01") as job, telemetry.chat_span(Name("m")) as chat:
        telemetry.count(Metric.TRY, {})
        telemetry.measured(Metric.TRY_WAIT, 1.0)

        assert (job is chat, telemetry.traceparent()) == (True, None)


def test_every_metric_is_of_one_kind() -> None:
    """Each metric has one row, in the table of its kind."""
    assert sorted([*HISTOGRAMS, *GAUGES, *COUNTERS]) == sorted(Metric)
