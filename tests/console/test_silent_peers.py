"""Peers that say nothing more, or a byte now and then: they hold a thread for some seconds, not for ever."""

import contextlib
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from tests.server.program import altered, free_port, until
from webhook.console.serving import THREADS

SILENCE, READING = 1, 4  # seconds; as shipped the test would take half a minute
PATIENCE = 60.0  # of those who are kept out; without these limits they would wait for ever

BEGUN = [
    b"GET /rules HTTP/1.1\r\nHost: local",
    b"POST /api/v1/review HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
]


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    found = free_port()
    limits = {"console.serving.SILENCE_SECONDS": SILENCE, "console.serving.READING_SECONDS": request.param}
    command = [*altered("console", limits), "--sample", "--bind", f"127.0.0.1:{found}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: answers(found))
    yield found
    process.terminate()
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors


def answers(port: int, timeout: float = 5) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/icon.svg", timeout=timeout) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.parametrize("port", [10 * PATIENCE], indirect=True)
def test_silent_peers_do_not_keep_the_others_out(port: int):
    silent = []
    for number in range(THREADS + 2):
        silent.append(socket.create_connection(("127.0.0.1", port)))
        silent[-1].sendall(BEGUN[number % len(BEGUN)])
    assert answers(port, timeout=PATIENCE)
    assert answers(port), "whoever was silent is gone, and takes nobody's time any more"
    for each in silent:
        each.close()


@pytest.mark.parametrize("port", [READING], indirect=True)
def test_slow_peers_do_not_keep_the_others_out(port: int):
    slow = []
    for number in range(THREADS + 2):
        slow.append(socket.create_connection(("127.0.0.1", port)))
        slow[-1].sendall(BEGUN[number % 2])
    over = threading.Event()

    def drip() -> None:
        while not over.wait(SILENCE / 3):
            for each in slow:
                with contextlib.suppress(OSError):
                    each.sendall(b" ")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert answers(port, timeout=PATIENCE)
    finally:
        over.set()
        dripping.join()
        for each in slow:
            each.close()
