"""Anthropic's token counter over HTTP: what is sent, and that nothing which comes back does harm."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from hango.chain.providers.anthropic import COUNT_SECONDS, AnthropicProvider
from hango.chain.providers.http import Http
from hango.config.values import Secret
from hango.errors import ProviderFailed, ProviderTimeout
from hango.messages import SystemText, ToolSpec
from tests.providers_server import Answer, FakeProvider, Seen, drips, fake_provider, floods, hangs_up, never, says
from tests.unit.chain.providers.making import MODELS, request, user

KEY = Secret("sk-ant-canary")
REQUEST = request(
    user("Hi."),
    system=(SystemText("A.", marked=True),),
    tools=(ToolSpec("now"),),
    params={"temperature": 0.5, "tool_choice": "auto", "stop": "END"},
)


@pytest.fixture
async def server() -> AsyncIterator[FakeProvider]:
    async with fake_provider(says({"input_tokens": 42})) as fake:
        yield fake


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    made = Http()
    yield made
    await made.close()


def counter(server: FakeProvider, http: Http, base: str = "") -> AnthropicProvider:
    return AnthropicProvider(MODELS, http, base or server.url, KEY)


async def test_what_is_sent(server: FakeProvider, http: Http) -> None:
    """The body without what only an answer needs, the key in a header, and no wish for packed bytes."""
    assert await counter(server, http).count_tokens(REQUEST) == 42

    [seen] = server.seen
    kept = ("content-type", "accept-encoding", "x-api-key", "anthropic-version")
    assert (seen.path, {name: seen.headers[name] for name in kept}, list(seen.json)) == (
        "/v1/messages/count_tokens",
        {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "x-api-key": "sk-ant-canary",
            "anthropic-version": "2023-06-01",
        },
        ["model", "messages", "system", "tools", "tool_choice"],
    )


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_may_end_either_way(server: FakeProvider, http: Http, end: str) -> None:
    """With and without the version, with and without a slash: one address."""
    await counter(server, http, server.url + end).count_tokens(REQUEST)

    assert server.seen[0].path == "/v1/messages/count_tokens"


async def test_without_a_key_nothing_is_sent(server: FakeProvider, http: Http) -> None:
    """A provider without a key counts nothing and says which setting is missing."""
    with pytest.raises(ProviderFailed, match="HANGO_ANTHROPIC_API_KEY"):
        await AnthropicProvider(MODELS, http, server.url).count_tokens(REQUEST)

    assert server.seen == []


@pytest.mark.parametrize(
    "answer",
    [
        says({"type": "error", "error": {"message": "bad key sk-ant-canary"}}, status=401),
        says({"input_tokens": 1}, status=529),
        says({"input_tokens": 1}, status=201),
        says({"input_tokens": 1}, headers={"content-encoding": "gzip"}),
        says({"input_tokens": "1"}),
        says({"input_tokens": -1}),
        says({"input_tokens": 1.5}),
        says({"input_tokens": 10**40}),
        says({"input_tokens": True}),
        says({"input_tokens": None}),
        says({}),
        says([]),
        says(b""),
        says(b"<html>"),
        says(b'{"input_tokens": NaN}'),
        says(b"\xff\xfe"),
        says(b"[" * 60_000),
        hangs_up,
        floods,
    ],
)
async def test_a_bad_answer_is_a_failure_and_no_more(server: FakeProvider, http: Http, answer: Answer) -> None:
    """A failing counter is ProviderFailed, which means an estimate; no word of the provider is passed on."""
    server.answer = answer

    with pytest.raises(ProviderFailed) as failure:
        await counter(server, http).count_tokens(REQUEST)

    assert "canary" not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("answer", [never, drips])
async def test_a_slow_answer_ends_after_two_seconds(server: FakeProvider, http: Http, answer: Answer) -> None:
    """The limit is of the whole exchange: a server that drips bytes does not stretch it."""
    server.answer = answer
    begun = time.monotonic()

    with pytest.raises(ProviderTimeout):
        await counter(server, http).count_tokens(REQUEST)

    assert COUNT_SECONDS <= time.monotonic() - begun < COUNT_SECONDS + 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(server: FakeProvider, http: Http, status: int) -> None:
    """A redirect would carry the key and the content to another place: 0 requests get there."""
    async with fake_provider(says({"input_tokens": 1})) as elsewhere:
        server.answer = says({}, status=status, headers={"location": elsewhere.url})

        with pytest.raises(ProviderFailed):
            await counter(server, http).count_tokens(REQUEST)

        assert elsewhere.seen == []


async def test_no_proxy_of_the_environment_is_used(
    server: FakeProvider, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY and its like change nothing."""
    async with fake_provider(says({"input_tokens": 1})) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

        assert await counter(server, http).count_tokens(REQUEST) == 42
        assert proxy.seen == []


async def test_cookies_are_not_kept(server: FakeProvider, http: Http) -> None:
    """Nothing of one call is in the next."""
    server.answer = says({"input_tokens": 1}, headers={"set-cookie": "a=b; Path=/"})
    counting = counter(server, http)

    await counting.count_tokens(REQUEST)
    await counting.count_tokens(REQUEST)

    assert [seen.headers.get("cookie") for seen in server.seen] == [None, None]
    assert _same(server.seen[0]) == _same(server.seen[1])


def _same(seen: Seen) -> tuple[str, dict[str, str], bytes]:
    return seen.path, seen.headers, seen.body


async def test_a_server_that_is_not_there(http: Http) -> None:
    """An address where nobody listens is ProviderFailed."""
    async with fake_provider(never) as gone:
        pass

    with pytest.raises(ProviderFailed, match="cannot be reached"):
        await counter(gone, http).count_tokens(REQUEST)


async def test_a_cancelled_call_stays_cancelled(server: FakeProvider, http: Http) -> None:
    """Cancelling is not a failure of the provider."""
    arrived = asyncio.Event()

    async def takes(request: web.Request) -> web.StreamResponse:
        arrived.set()
        return await never(request)

    server.answer = takes
    call = asyncio.create_task(counter(server, http).count_tokens(REQUEST))
    await arrived.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


async def test_many_at_once_share_one_session(server: FakeProvider, http: Http) -> None:
    """Calls run at the same time and each gets its own answer."""
    counting = counter(server, http)

    assert await asyncio.gather(*(counting.count_tokens(REQUEST) for _ in range(20))) == [42] * 20
    assert json.loads(server.seen[0].body)["model"] == "claude-sonnet-4-5"
