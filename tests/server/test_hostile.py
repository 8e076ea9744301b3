"""Peers that hold what they can: the silent, the slow, the endless, the deaf. Others must not notice."""

import contextlib
import json
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Iterator

import pytest

from tests.server.client import JSON, Connection, context, spell
from tests.server.conftest import Start
from tests.server.program import Program, until
from tests.server.reviews import answer, review

SECONDS = 2.0
CONSTANTS = {
    "transport.HANDSHAKE_SECONDS": SECONDS,
    "transport.SHUTDOWN_SECONDS": 0.3,
    "connection.HEAD_SECONDS": SECONDS,
    "connection.WRITE_BLOCKED_SECONDS": SECONDS,
    "body.READ_SECONDS": SECONDS,
}
CLOSED_SECONDS = SECONDS + 6  # the sweep looks once a second, and TLS says goodbye
QUICK = 0.3  # seconds, for the median of several normal requests: 0.1 is the aim, the rest is for a busy machine
MIB = 1 << 20
HEAD = spell("POST", "/validate", headers=JSON)[:-2]
CHUNKED = spell("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


@pytest.fixture(scope="module")
def besieged(start: Start) -> Program:
    program = start("--audit-log", "", constants=CONSTANTS)
    for _ in range(20):
        answer(program.post("/validate", review()))
    return program


class Crowd:
    """Many connections that are never closed by us."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sockets: list[socket.socket] = []
        self._tls = context(program.ca)
        self._dripping = threading.Event()
        self._dripping.set()
        self._threads: list[threading.Thread] = []

    def mute(self, count: int) -> None:
        """Connections that do not even say hello."""
        for _ in range(count):
            self.sockets.append(socket.create_connection(("127.0.0.1", self.program.port), timeout=CLOSED_SECONDS))

    def silent(self, count: int, first: bytes = b"") -> list[socket.socket]:
        """Connections that finish TLS, say something perhaps, and then nothing."""
        made = []
        for _ in range(count):
            connection = Connection(self.program.port, self._tls, timeout=CLOSED_SECONDS)
            if first:
                connection.send(first)
            made.append(connection.socket)
        self.sockets += made
        return made

    def dripping(self, count: int, first: bytes) -> None:
        """Connections that send a byte a second for ever."""
        targets = self.silent(count, first)

        def drip() -> None:
            while self._dripping.is_set():
                for target in targets:
                    with contextlib.suppress(OSError):
                        target.send(b"x")
                time.sleep(1)

        self._threads.append(threading.Thread(target=drip))
        self._threads[-1].start()

    def all_closed(self) -> bool:
        """Read every connection to its end; False if one is not closed in time."""
        deadline = time.monotonic() + CLOSED_SECONDS
        for one in self.sockets:
            one.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                while one.recv(1 << 16):
                    pass
            except TimeoutError:
                return False
            except OSError:
                pass
        return True

    def close(self) -> None:
        self._dripping.clear()
        for thread in self._threads:
            thread.join(5)
        for one in self.sockets:
            one.close()


@pytest.fixture
def crowd(besieged: Program) -> Iterator[Crowd]:
    made = Crowd(besieged)
    yield made
    made.close()


def median_seconds(program: Program, *, count: int = 11) -> float:
    """Of a request on a connection of its own, handshake included."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        answer(program.post("/validate", review()))
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_a_thousand_mute_connections_delay_nobody(besieged: Program, crowd: Crowd):
    crowd.mute(1000)
    assert median_seconds(besieged) < QUICK
    assert crowd.all_closed()


def test_silent_and_slow_ones_delay_nobody_and_are_closed(besieged: Program, crowd: Crowd):
    before = besieged.memory()
    crowd.silent(500)
    crowd.dripping(100, HEAD + b"X-Slow: ")
    crowd.dripping(50, HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert median_seconds(besieged) < QUICK
    assert besieged.memory() - before < 128 * MIB
    assert crowd.all_closed()
    assert median_seconds(besieged) < QUICK


def test_a_slow_body_is_told_why(besieged: Program):
    with besieged.connect() as connection:
        connection.send(HEAD + b"Content-Length: 1000\r\n\r\n{")
        assert connection.receive().status == 408


ENDLESS = {
    "one header": (HEAD + b"X-A: ", b"a" * 8192, {431}),
    "many headers": (HEAD, b"X-A: b\r\n" * 1024, {400, 431}),
    "long headers": (HEAD, b"X-A: " + b"b" * 4000 + b"\r\n", {431}),
    "the path": (b"POST /", b"a" * 8192, {414, 431}),
    "the method": (b"P", b"O" * 8192, {400, 414, 431}),
    "a chunk extension": (CHUNKED + b"5;", b"a" * 8192, {400, 408, 431}),
    "a chunk size": (CHUNKED, b"0" * 8192, {400, 408, 431}),
    "trailers": (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 1024, {200, 400, 408, 431}),
    "one trailer": (CHUNKED + b"0\r\nX-A: ", b"a" * 8192, {200, 400, 408, 431}),
    "empty lines": (b"", b"\r\n" * 4096, {400, 408, 431}),
    "pieces of one byte": (CHUNKED, b"1\r\nx\r\n" * 1024, {413, 408}),
}


@pytest.mark.parametrize("first, more, statuses", ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_is_cut(besieged: Program, first: bytes, more: bytes, statuses: set[int]):
    before = besieged.memory()
    began = time.monotonic()
    with besieged.connect() as connection:
        connection.send(first)
        with pytest.raises((ConnectionError, ssl.SSLError)):  # noqa: PT012
            while time.monotonic() < began + CLOSED_SECONDS:
                connection.send(more)
                time.sleep(0.001)
        assert time.monotonic() - began < SECONDS, "cut for its size, not when its time is up"
        assert besieged.memory() - before < 32 * MIB
        assert median_seconds(besieged, count=3) < QUICK
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # who goes on sending may miss the answer
            assert connection.receive().status in statuses


def test_a_head_that_is_too_long_is_answered(besieged: Program):
    with besieged.connect() as connection:
        connection.send(HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"a" * 7000) for number in range(12)))
        assert connection.receive().status == 431
        assert connection.ended()


def test_the_deaf_are_closed(besieged: Program, crowd: Crowd):
    """They ask and never read: answers must not pile up, nor may the connection stay."""
    before, files = besieged.memory(), besieged.settled_files()
    for deaf in crowd.silent(5):
        deaf.sendall(spell("GET", "/metrics") * 1200)
    time.sleep(0.5)
    assert besieged.open_files() >= files + 5
    assert besieged.memory() - before < 32 * MIB
    assert median_seconds(besieged, count=3) < QUICK
    until(lambda: besieged.open_files() <= files, CLOSED_SECONDS)


def test_pipelines_are_bounded(besieged: Program, crowd: Crowd):
    before, files = besieged.memory(), besieged.settled_files()
    (deaf,) = crowd.silent(1)
    with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
        for _ in range(500):
            deaf.sendall(spell("POST", "/validate", b"{", JSON) * 1000)
    assert besieged.memory() - before < 32 * MIB
    until(lambda: besieged.open_files() <= files, CLOSED_SECONDS)


def test_large_bodies_share_a_bounded_room(besieged: Program, crowd: Crowd):
    before = besieged.memory()
    stalled = crowd.silent(16, HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * (7 * MIB))
    assert besieged.memory() - before < 192 * MIB
    assert median_seconds(besieged, count=5) < QUICK, "small ones need no room"
    first_lines = set()
    for one in stalled:
        with contextlib.suppress(OSError):
            first_lines.add(one.recv(12))
    assert b"HTTP/1.1 429" in first_lines
    until(lambda: answer(besieged.post("/validate", b" " * MIB + _good())), 10)


def _good() -> bytes:
    return json.dumps(review()).encode()
