"""What it means for a call that an exchange with a provider broke off."""

from __future__ import annotations

import aiohttp

from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import broken_off
from hango.errors import ProviderFailed, ProviderFault
from tests.providers_server import FakeProvider, says


def meaning(failure: ProviderFailed) -> tuple[ProviderFault, int | None, str | None]:
    return failure.fault, failure.http_status, failure.request_id


async def test_a_value_that_cannot_be_is_no_answer_once_one_has_begun(server: FakeProvider) -> None:
    """A ValueError before an answer is an address that leads nowhere; after it, a call that may be charged for."""
    server.answer = says({}, headers={"x-request-id": "req_9"})
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}/v1/messages", json={}) as answer:
        begun = broken_off("openai", ValueError(), answer, Hidden())
    never_sent = broken_off("openai", ValueError(), None, Hidden())
    cut = broken_off("openai", aiohttp.ServerDisconnectedError(), None, Hidden())

    assert [meaning(one) for one in (begun, never_sent, cut)] == [
        (ProviderFault.PROTOCOL, 200, "req_9"),
        (ProviderFault.UNREACHABLE, None, None),
        (ProviderFault.PROTOCOL, None, None),
    ]
