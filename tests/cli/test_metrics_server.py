"""The server for /metrics of the console and the shipper: every request gets a response, also without IPv6."""

import errno
import http.client
import socket
from contextlib import suppress
from typing import Any

import pytest

from tests.server.program import free_port
from webhook.cli.metrics_server import start_metrics_server
from webhook.errors import ConfigError
from webhook.gunicorn import check_address


class WithoutIPv6(socket.socket):
    """The sockets of a kernel with ipv6.disable=1."""

    def __init__(self, family: int = -1, *more: Any, **options: Any) -> None:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, *more, **options)


def get(port: int) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    return response.status, response.read()


def test_every_address_is_that_of_ipv4_where_the_kernel_has_no_ipv6(monkeypatch: pytest.MonkeyPatch):
    port = free_port()
    with suppress(OSError):  # this machine's kernel may have none
        socket.socket(socket.AF_INET6).close()
        assert check_address(f"[::]:{port}") == f"[::]:{port}"
    monkeypatch.setattr(socket, "socket", WithoutIPv6)
    assert check_address(f"[::]:{port}") == f"0.0.0.0:{port}"
    start_metrics_server(f"[::]:{port}", lambda: b"metrics")
    assert get(port) == (200, b"metrics")
    with pytest.raises(
        ConfigError, match=r"^0.0.0.0:\d+: Address already in use; name another address with --metrics-bind"
    ):
        start_metrics_server(f"[::]:{port}", lambda: b"")
    with pytest.raises(ConfigError, match=r"^\[::1\]:\d+: Address family not supported"):
        check_address(f"[::1]:{port}")


def test_what_fails_has_a_response(caplog: pytest.LogCaptureFixture):
    port, errors = free_port(), [ConfigError("the fleet is not known"), ZeroDivisionError("a mistake")]

    def exposition() -> bytes:
        raise errors.pop(0)

    start_metrics_server(f"127.0.0.1:{port}", exposition)
    assert get(port) == (503, b"the fleet is not known\n")
    assert get(port) == (500, b"internal error, see the log\n")
    assert [record.getMessage() for record in caplog.records] == ["a bug: the metrics could not be made"]
