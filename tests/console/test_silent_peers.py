"""Clients that are silent or very slow occupy a thread for some seconds only."""

import contextlib
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from tests.server.program import altered, free_port, until
from webhook.console.serving import THREADS

SILENCE_SECONDS, READING_SECONDS = 1, 4  # with the defaults the test would take half a minute
WAIT_SECONDS = 60.0  # for other clients; without these limits they would wait without end

INCOMPLETE_REQUESTS = [
    b"GET /rules HTTP/1.1\r\nHost: local",
    b"POST /api/v1/review HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
]


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    found = free_port()
    limits = {"console.serving.SILENCE_SECONDS": SILENCE_SECONDS, "console.serving.READING_SECONDS": request.param}
    command = [*altered("console", limits), "--sample", "--bind", f"127.0.0.1:{found}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: responds(found))
    yield found
    process.terminate()
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors


def responds(port: int, timeout: float = 5) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/icon.svg", timeout=timeout) as response:
            return response.status == 200
    except OSError:
        return False


@pytest.mark.parametrize("port", [10 * WAIT_SECONDS], indirect=True)
def test_silent_clients_do_not_block_other_clients(port: int):
    silent = []
    for number in range(THREADS + 2):
        silent.append(socket.create_connection(("127.0.0.1", port)))
        silent[-1].sendall(INCOMPLETE_REQUESTS[number % len(INCOMPLETE_REQUESTS)])
    assert responds(port, timeout=WAIT_SECONDS)
    assert responds(port), "the silent connections are closed, so this request does not wait"
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("port", [READING_SECONDS], indirect=True)
def test_slow_clients_do_not_block_other_clients(port: int):
    slow = []
    for number in range(THREADS + 2):
        slow.append(socket.create_connection(("127.0.0.1", port)))
        slow[-1].sendall(INCOMPLETE_REQUESTS[number % 2])
    stop = threading.Event()

    def send_slowly() -> None:
        while not stop.wait(SILENCE_SECONDS / 3):
            for connection in slow:
                with contextlib.suppress(OSError):
                    connection.sendall(b" ")

    sender = threading.Thread(target=send_slowly)
    sender.start()
    try:
        assert responds(port, timeout=WAIT_SECONDS)
    finally:
        stop.set()
        sender.join()
        for connection in slow:
            connection.close()
