"""Reference counting frees a closed connection at once, however it ends."""

import contextlib
import json
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server import counting
from tests.server.client import JSON, encode_request
from tests.server.conftest import SETTINGS, Start
from tests.server.program import Program, until
from tests.server.reviews import GOOD
from webhook.server.limits import ServerLimits

CONNECTIONS = 12
QUICK = ServerLimits(handshake_seconds=1.0, close_seconds=0.1, sweep_seconds=0.05, head_seconds=1.0, unused_seconds=1.0)
HALF_A_BODY = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "100"}) + b"{"


class Counted:
    """A server without garbage collection, whose objects can be counted."""

    def __init__(self, start: Start, file: Path) -> None:
        self._file = file
        environment = os.environ | {counting.FILE: str(file)}
        self.program: Program = start(*SETTINGS, "--audit-log", "", limits=QUICK, env=environment)
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


GET = encode_request("GET", "/healthz")
REVIEW = encode_request("POST", "/mutate", GOOD, JSON)
CHUNKED = encode_request("POST", "/mutate", headers=JSON | {"Transfer-Encoding": "chunked"})

# What is sent, and the codes of the responses that the client reads before it closes the connection.
ENDINGS = {
    "handshake only": (b"", []),
    "idle": (GET, [200]),
    "close announced": (encode_request("GET", "/healthz", headers={"Connection": "close"}), [200]),
    "reviews": (REVIEW * 3, [200] * 3),
    "chunked review": (CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD), [200]),
    "pipeline": (GET * 30, [200] * 30),
    "never reading": (encode_request("GET", "/metrics") * 200, []),
    "half a head": (HALF_A_BODY[:40], []),
    "half a body": (HALF_A_BODY, []),
    "slow body": (HALF_A_BODY.replace(b"/validate", b"/validate?timeout=10ms"), [408]),
    "wrong type": (encode_request("POST", "/validate", b"{}", {"Content-Type": "text/plain"}), [415]),
    "no HTTP": (b"hello\r\n\r\n", [400]),
    "web socket": (encode_request("GET", "/healthz", headers={"Connection": "Upgrade", "Upgrade": "websocket"}), [400]),
}
BAD_HANDSHAKES = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01")

Connect = Callable[[Counted], None]


def ended_by(sent: bytes, statuses: Sequence[int] = (), *, reset: bool = False, waits: bool = False) -> Connect:
    def connect(counted: Counted) -> None:
        with counted.program.connect() as connection:
            connection.send(sent)
            assert [connection.receive().status for _ in statuses] == [*statuses]
            if reset:
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert not waits or connection.ended()

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


AT_ONCE = [
    *(ended_by(*ending) for ending in ENDINGS.values()),
    *(ended_by(sent, reset=True) for sent in (b"", HALF_A_BODY)),
    *(bad_handshake(sent, waits=False) for sent in BAD_HANDSHAKES),
]
WAITING = [  # until the server closes
    ended_by(HALF_A_BODY[:40], waits=True),
    *(bad_handshake(sent, waits=True) for sent in BAD_HANDSHAKES),
]


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
