"""Clients that are silent or very slow occupy a thread for some seconds only."""

import contextlib
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.console.conftest import FORM, PAGE
from tests.console.running import Running, running
from tests.server.program import free_port, until
from webhook.console.serving import MAX_CONNECTIONS, THREADS, ConsoleLimits

SHORT, ENDLESS = (1, 4), 3600  # seconds: a client that waits so long for others makes the test hang

INCOMPLETE_REQUESTS = [
    f"GET {PAGE} HTTP/1.1\r\nHost: local".encode(),
    f"POST /api/v1{FORM} HTTP/1.1\r\nHost: localhost\r\n".encode()
    + b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
]


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def console(request: pytest.FixtureRequest, metrics_port: int) -> Iterator[Running]:
    silence, reading = request.param
    limits = ConsoleLimits(silence=silence, reading=reading, idle=ENDLESS)
    with running("--metrics-bind", f"127.0.0.1:{metrics_port}", limits=limits) as found:
        yield found


@pytest.mark.parametrize(
    ("console", "slow"), [((SHORT[0], ENDLESS), False), (SHORT, True)], indirect=["console"], ids=["silent", "slow"]
)
def test_silent_and_slow_clients_do_not_block_other_clients(console: Running, slow: bool):
    clients, stop = [], threading.Event()

    def send_slowly() -> None:
        while not stop.wait(SHORT[0] / 3):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(b" ")

    with contextlib.ExitStack() as held:
        for number in range(THREADS + 2):
            clients.append(held.enter_context(socket.create_connection(("127.0.0.1", console.port))))
            clients[-1].sendall(INCOMPLETE_REQUESTS[number % (2 if slow else 3)])
        if slow:
            sender = threading.Thread(target=send_slowly)
            sender.start()
            held.callback(sender.join)
            held.callback(stop.set)
        assert console.responds()
        assert console.responds(), "these connections are closed, so this request does not wait"


@pytest.mark.parametrize("console", [(ENDLESS, ENDLESS)], indirect=True)
def test_slow_clients_of_the_metrics_do_not_block_the_pages(console: Running, metrics_port: int):
    url = f"http://127.0.0.1:{metrics_port}"
    with contextlib.ExitStack() as held:
        for number in range(100):
            slow = held.enter_context(socket.create_connection(("127.0.0.1", metrics_port)))
            slow.sendall(
                INCOMPLETE_REQUESTS[0] if number % 2 else b"GET /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"
            )
        assert console.responds()
        with urllib.request.urlopen(f"{url}/metrics") as response:
            assert response.status == 200
        for request, status in ((f"{url}{PAGE}", 404), (urllib.request.Request(f"{url}/metrics", b"{}"), 405)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            with refused.value as response:
                assert response.code == status


def test_many_silent_clients_do_not_block_other_clients():
    """Not even where each may be silent for an hour."""
    with running(limits=ConsoleLimits(idle=ENDLESS)) as console, contextlib.ExitStack() as held:
        for _ in range(MAX_CONNECTIONS + THREADS):
            held.enter_context(socket.create_connection(("127.0.0.1", console.port)))
        assert console.responds()


def test_more_silent_clients_than_files_may_be_open_do_not_end_the_console():
    with running(limits=ConsoleLimits(silence=1), files=64) as console, contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.create_connection(("127.0.0.1", console.port)))
        until(console.responds)
