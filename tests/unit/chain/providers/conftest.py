"""What every test of an adapter's calls takes: a wire, a server and the session."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Http
from tests.providers_server import FakeProvider, fake_provider, says
from tests.unit.chain.providers.answering import KEY, WIRES, Adapter, Wire


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    made: Wire = request.param
    return made


@pytest.fixture
async def server(wire: Wire) -> AsyncIterator[FakeProvider]:
    async with fake_provider(says(wire.answer("Hello."))) as fake:
        yield fake


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    made = Http(max_bytes=1 << 20, hidden=Hidden([KEY]))
    yield made
    await made.close()


@pytest.fixture
def adapter(wire: Wire, server: FakeProvider, http: Http) -> Adapter:
    return wire.at(server.url, http)
