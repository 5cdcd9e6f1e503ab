"""One call of either adapter: what goes out, what comes back, and that it goes out once."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterator

import pytest
from aiohttp import web

from hango.chain.providers.http import Http
from hango.config.values import Secret
from hango.messages import Response, StopReason, SystemText, ToolSpec, Usage, text_block
from tests.providers_server import FakeProvider, chat, fake_provider, message, says
from tests.unit.chain.providers.answering import Adapter, Wire
from tests.unit.chain.providers.making import PNG, assistant, block, call, request, result, user

ODD_TOOL = "files.read/all"
REQUEST = request(
    user("What is in it?", block(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG})),
    assistant("Reading.", call("call_0", ODD_TOOL, path="a")),
    user(result("call_0", "Câu hỏi: 你好? 🙂")),
    model="m",
    system=(SystemText("You are brief."),),
    tools=(ToolSpec(ODD_TOOL, "Reads."), ToolSpec("now")),
)


async def test_an_answer_comes_back(adapter: Adapter, server: FakeProvider) -> None:
    """A text, why it ended, what it cost, and the provider's name for the call; the body is the adapter's own."""
    server.answer = says(
        message("Hello.") if adapter.name == "anthropic" else chat("Hello."),
        headers={"request-id": "req_1", "x-request-id": "req_1"},
    )

    response = await adapter.complete(REQUEST, deadline=10)

    assert response == Response((text_block("Hello."),), StopReason.END_TURN, Usage(12, 3), "req_1", usage_known=True)
    assert [(seen.path, seen.body) for seen in server.seen] == [
        ("/v1/messages" if adapter.name == "anthropic" else "/chat/completions", adapter.body(REQUEST))
    ]


async def test_the_headers_of_a_call(wire: Wire, server: FakeProvider, http: Http) -> None:
    """The key stands where the API wants it and nowhere else; packed bytes are not asked for."""
    await wire.at(server.url, http, Secret("sk-one")).complete(REQUEST, deadline=10)

    kept = ("content-type", "accept-encoding", "x-api-key", "anthropic-version", "authorization", "cookie", "expect")
    common = {"content-type": "application/json", "accept-encoding": "identity"}
    own = {
        "anthropic": {"x-api-key": "sk-one", "anthropic-version": "2023-06-01"},
        "openai": {"authorization": "Bearer sk-one"},
    }
    [seen] = server.seen
    assert {name: seen.headers[name] for name in kept if name in seen.headers} == common | own[wire.name]
    assert int(seen.headers["content-length"]) == len(seen.body)


async def test_without_a_key_no_key_is_sent(wire: Wire, server: FakeProvider, http: Http) -> None:
    """A server of one's own is asked without an authorization header."""
    response = await wire.at(server.url, http, None).complete(REQUEST, deadline=10)

    assert response.content == (text_block("Hello."),)
    assert not {"x-api-key", "authorization"} & set(server.seen[0].headers)


async def test_names_come_back_as_the_agents_own(adapter: Adapter, server: FakeProvider) -> None:
    """A name that was cleaned for the wire is the agent's own again in the answer; other names stay."""
    tools = json.loads(adapter.body(REQUEST))["tools"]
    on_wire = tools[0]["name"] if adapter.name == "anthropic" else tools[0]["function"]["name"]
    called = [("c1", on_wire), ("c2", "now"), ("c3", "never_heard_of")]
    if adapter.name == "anthropic":
        blocks = [{"type": "tool_use", "id": id, "name": name, "input": {}} for id, name in called]
        server.answer = says(message(*blocks, stop_reason="tool_use"))
    else:
        calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id, name in called]
        server.answer = says(chat(None, "tool_calls", tool_calls=calls))

    response = await adapter.complete(REQUEST, deadline=10)

    assert on_wire != ODD_TOOL
    assert response.stop_reason is StopReason.TOOL_USE
    assert response.content == (call("c1", ODD_TOOL), call("c2", "now"), call("c3", "never_heard_of"))


@pytest.mark.parametrize("end", ["", "/"])
async def test_the_base_url_may_end_with_a_slash(wire: Wire, server: FakeProvider, http: Http, end: str) -> None:
    """With and without a slash: one address."""
    await wire.at(f"{server.url}/v1{end}", http).complete(REQUEST, deadline=10)

    assert server.seen[0].path == ("/v1/messages" if wire.name == "anthropic" else "/v1/chat/completions")


async def test_a_large_body_goes_out_whole(adapter: Adapter, server: FakeProvider) -> None:
    """Ten megabytes arrive byte for byte, with their length told before."""
    large = request(user("Ω" * 5_000_000))

    await adapter.complete(large, deadline=30)

    [seen] = server.seen
    assert seen.body == adapter.body(large)
    assert "transfer-encoding" not in seen.headers


@pytest.fixture
def _many_sockets() -> Iterator[None]:
    """Both ends of the calls are in this process, and some systems give a process few sockets at first."""
    given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096 if most == resource.RLIM_INFINITY else min(4096, most), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, most))


@pytest.mark.usefixtures("_many_sockets")
async def test_a_thousand_calls_in_flight(adapter: Adapter, server: FakeProvider) -> None:
    """1,024 calls wait for their answers at the same time; each is sent once and gets its own."""
    calls = 1024
    everybody, waiting = asyncio.Event(), 0

    async def echoes(got: web.Request) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        if waiting == calls:
            everybody.set()
        await everybody.wait()
        said = json.loads(await got.read())["messages"][-1]["content"]
        text = said if isinstance(said, str) else said[0]["text"]
        return web.json_response(message(text) if adapter.name == "anthropic" else chat(text))

    server.answer = echoes
    made = [adapter.complete(request(user(f"Number {n}.")), deadline=60) for n in range(calls)]

    answers = await asyncio.gather(*made)

    assert [answer.content for answer in answers] == [(text_block(f"Number {n}."),) for n in range(calls)]
    assert len(server.seen) == calls


async def test_a_connection_is_used_again(adapter: Adapter, server: FakeProvider) -> None:
    """Calls one after the other need one connection."""
    ports = []

    async def notes(got: web.Request) -> web.StreamResponse:
        assert got.transport is not None
        ports.append(got.transport.get_extra_info("peername")[1])
        return web.json_response(message("Yes.") if adapter.name == "anthropic" else chat("Yes."))

    server.answer = notes
    for _ in range(3):
        await adapter.complete(REQUEST, deadline=10)

    assert len(set(ports)) == 1
    assert len(server.seen) == 3


async def test_nothing_of_one_call_is_in_the_next(adapter: Adapter, server: FakeProvider) -> None:
    """Cookies are not kept: equal requests are equal on the wire."""
    answer = message("Yes.") if adapter.name == "anthropic" else chat("Yes.")
    server.answer = says(answer, headers={"set-cookie": "a=b; Path=/"})

    await adapter.complete(REQUEST, deadline=10)
    await adapter.complete(REQUEST, deadline=10)

    first, second = server.seen
    assert first == second


async def test_no_proxy_of_the_environment_is_used(
    adapter: Adapter, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY and its like change nothing: 0 requests get there."""
    async with fake_provider(says({})) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

        await adapter.complete(REQUEST, deadline=10)

        assert (len(server.seen), proxy.seen) == (1, [])
