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

from tests.cases import each_case
from tests.server import counting
from tests.server.client import JSON, encode_request
from tests.server.conftest import SETTINGS, Start
from tests.server.program import PATIENT, Program, until
from tests.server.reviews import GOOD
from webhook.server.limits import ServerLimits

CONNECTIONS = 12
QUICK = ServerLimits(handshake_seconds=1.0, close_seconds=0.1, sweep_seconds=0.05, head_seconds=1.0, unused_seconds=1.0)
HALF_A_BODY = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "100"}) + b"{"


class Counted:
    """A server without garbage collection, whose objects can be counted."""

    def __init__(self, start: Start, file: Path, limits: ServerLimits) -> None:
        self._file = file
        environment = os.environ | {counting.FILE: str(file)}
        self.program: Program = start(*SETTINGS, "--audit-log", "", limits=limits, env=environment)
        self._files = self.program.settled_files()

    def all_closed(self) -> bool:
        return self.program.open_files() <= self._files

    def objects(self) -> Counter[str]:
        self._file.unlink(missing_ok=True)
        os.kill(self.program.worker, counting.SIGNAL)
        until(self._file.exists)
        return Counter(json.loads(self._file.read_text()))


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
            while waits and connection.recv(100):
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


@each_case(
    "ways, limits, cut",
    [(AT_ONCE, PATIENT, ()), (WAITING, QUICK, (OSError,))],  # the latter may be closed while they are made
    ids=["by the client", "by the server"],
)
def test_closed_connections_leave_nothing(
    start: Start, tmp_path: Path, ways: list[Connect], limits: ServerLimits, cut: tuple[type[OSError], ...]
):
    """All ways together: each of them leaves an object of every connection, or none."""
    counted = Counted(start, tmp_path / "counts.json", limits)

    def several(count: int) -> None:
        with ThreadPoolExecutor(CONNECTIONS * len(WAITING)) as threads:
            for future in [threads.submit(connect, counted) for connect in ways for _ in range(count)]:
                with contextlib.suppress(*cut):
                    future.result()
        until(counted.all_closed)

    def few_left() -> bool:
        """The event loop frees the objects of the last ones later."""
        left = counted.objects() - before
        print(left.most_common(8))  # noqa: T201  # which pytest shows if the test fails
        return left.total() < CONNECTIONS

    several(3)  # fills the caches
    counted.objects()
    before = counted.objects()
    several(CONNECTIONS)
    until(few_left)
