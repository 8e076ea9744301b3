"""Reference counting frees a closed connection at once, however it ends."""

import contextlib
import json
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server import counting
from tests.server.client import JSON, Connection, encode_request
from tests.server.conftest import SETTINGS, Start
from tests.server.program import Program, until
from tests.server.reviews import admission_response, review

CONNECTIONS = 12
QUICK = {
    "transport.HANDSHAKE_SECONDS": 1.0,
    "transport.SHUTDOWN_SECONDS": 0.1,
    "gunicorn.SWEEP_SECONDS": 0.05,
    "connection.HEAD_SECONDS": 1.0,
    "connection.UNUSED_SECONDS": 1.0,
}
HALF_A_BODY = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "100"}) + b"{"
CLOSE = {"Connection": "close"}
WEB_SOCKET = {"Connection": "Upgrade", "Upgrade": "websocket"}


class Counted:
    """A server without garbage collection, whose objects can be counted."""

    def __init__(self, start: Start, file: Path) -> None:
        self._file = file
        environment = os.environ | {counting.FILE: str(file)}
        constants = QUICK | counting.CONSTANTS
        self.program: Program = start(*SETTINGS, "--audit-log", "", constants=constants, env=environment)
        self._files = self.program.settled_files()

    def all_closed(self) -> bool:
        return self.program.open_files() <= self._files

    def objects(self) -> Counter[str]:
        self._file.unlink(missing_ok=True)
        os.kill(self.program.worker, counting.SIGNAL)
        until(self._file.exists)
        return Counter(json.loads(self._file.read_text()))


@pytest.fixture(scope="module")
def counted(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return Counted(start, tmp_path_factory.mktemp("objects") / "counts.json")


def idle(connection: Connection) -> None:
    assert connection.request("GET", "/healthz").status == 200


def close_announced(connection: Connection) -> None:
    assert connection.request("GET", "/healthz", headers=CLOSE).status == 200
    assert connection.ended()


def reviews(connection: Connection) -> None:
    for _ in range(3):
        admission_response(connection.post("/mutate", review()))


def chunked_review(connection: Connection) -> None:
    body = json.dumps(review()).encode()
    connection.send(encode_request("POST", "/mutate", headers=JSON | {"Transfer-Encoding": "chunked"}))
    connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    admission_response(connection.receive())


def half_a_head(connection: Connection) -> None:
    connection.send(HALF_A_BODY[:40])


def half_a_body(connection: Connection) -> None:
    connection.send(HALF_A_BODY)


def slow_body(connection: Connection) -> None:
    connection.send(HALF_A_BODY.replace(b"/validate", b"/validate?timeout=10ms"))
    assert connection.receive().status == 408


def slow_head(connection: Connection) -> None:
    connection.send(HALF_A_BODY[:40])
    assert connection.ended()


def wrong_type(connection: Connection) -> None:
    assert connection.request("POST", "/validate", b"{}", {"Content-Type": "text/plain"}).status == 415


def no_http(connection: Connection) -> None:
    connection.send(b"hello\r\n\r\n")
    assert connection.receive().status == 400


def web_socket(connection: Connection) -> None:
    assert connection.request("GET", "/healthz", headers=WEB_SOCKET).status >= 400


def pipeline(connection: Connection) -> None:
    connection.send(encode_request("GET", "/healthz") * 30)
    for _ in range(30):
        connection.receive()


def never_reading(connection: Connection) -> None:
    connection.send(encode_request("GET", "/metrics") * 200)


def reset(connection: Connection) -> None:
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_in_a_body(connection: Connection) -> None:
    connection.send(HALF_A_BODY)
    reset(connection)


def handshake_only(_connection: Connection) -> None:
    """Nothing after the handshake."""


ENDINGS = [
    *(handshake_only, reset, idle, close_announced, reviews, chunked_review, pipeline, never_reading),
    *(half_a_head, half_a_body, slow_body, reset_in_a_body, wrong_type, no_http, web_socket),
]
BAD_HANDSHAKES = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01")

Connect = Callable[[Counted], None]


def ended_by(ending: Callable[[Connection], None]) -> Connect:
    def connect(counted: Counted) -> None:
        with counted.program.connect() as connection:
            ending(connection)

    return connect


def bad_handshake(sent: bytes, *, waits: bool) -> Connect:
    def connect(counted: Counted) -> None:
        with socket.create_connection(("127.0.0.1", counted.program.port)) as connection:
            connection.sendall(sent)
            if waits:
                with contextlib.suppress(ConnectionError):
                    while connection.recv(100):
                        pass

    return connect


AT_ONCE = [*map(ended_by, ENDINGS), *(bad_handshake(sent, waits=False) for sent in BAD_HANDSHAKES)]
WAITING = [
    ended_by(slow_head),
    *(bad_handshake(sent, waits=True) for sent in BAD_HANDSHAKES),
]  # until the server closes


def test_closed_connections_leave_nothing(counted: Counted):
    """All ways together: each of them leaves an object of every connection, or none."""

    def several(count: int) -> None:
        for connect in AT_ONCE:
            for _ in range(count):
                connect(counted)
        with ThreadPoolExecutor(count * len(WAITING)) as threads:
            for future in [threads.submit(connect, counted) for connect in WAITING for _ in range(count)]:
                future.result()
        until(counted.all_closed)

    several(3)  # fills the caches
    counted.objects()
    before = counted.objects()
    several(CONNECTIONS)
    left = counted.objects() - before
    if left.total() >= CONNECTIONS:  # the event loop may free the objects of the last one later
        left = counted.objects() - before
    assert left.total() < CONNECTIONS, left.most_common(8)
