"""Where `hango up` listens, and how that is written as an address."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hango.cli.api_process import ApiProcess, listen, url_of
from hango.errors import Unavailable


def test_a_taken_port_is_passed_over() -> None:
    """With more than one try the next free port is taken; with one try a taken port is refused."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with listen("127.0.0.1", port, tries=50) as found:
            assert port < found.getsockname()[1] < port + 50
        with pytest.raises(Unavailable, match=rf"127\.0\.0\.1 port {port} \(Address already in use\)"):
            listen("127.0.0.1", port, tries=1)


def test_port_0_is_any_free_port() -> None:
    with listen("127.0.0.1", 0, tries=1) as found:
        assert found.getsockname()[1] > 0


def test_a_host_that_is_not_here_is_refused() -> None:
    """One sentence with what to set."""
    with pytest.raises(Unavailable) as caught:
        listen("192.0.2.1", 8787, tries=50)

    assert str(caught.value).startswith("hango cannot listen on 192.0.2.1 port 8787 (")
    assert str(caught.value).endswith("); set HANGO_HOST and HANGO_PORT.")


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    """Something else in the place of the log is one sentence with what to set."""
    log = tmp_path / "api.log"
    log.mkdir()
    with listen("127.0.0.1", 0, tries=1) as found, pytest.raises(Unavailable) as caught:
        ApiProcess(tmp_path, {}, found).load()

    assert str(caught.value) == f"{log} cannot be used (Is a directory); set HANGO_HOME to a folder of your own."


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:{}"), ("0.0.0.0", "http://127.0.0.1:{}")],  # noqa: S104
)
def test_the_address_reaches_the_socket(host: str, address: str) -> None:
    """A socket on every interface is reached by the loopback address."""
    with listen(host, 0, tries=1) as found:
        url = url_of(found)
        assert url == address.format(found.getsockname()[1])
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))).close()
