"""Peers that hold what they can: the silent, the slow, the endless, the deaf. Others must not notice."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from tests.server.client import JSON, SECONDS, Connection, context, spell
from tests.server.conftest import Start
from tests.server.program import Program, until
from tests.server.reviews import answer, review

IMPATIENT, PATIENT = 2.0, 120.0  # seconds until a server closes connections that make no progress
REACTION = SECONDS  # whatever takes longer waits for such a connection. `make bench` measures how long it takes
MIB = 1 << 20
HEAD = spell("POST", "/validate", headers=JSON)[:-2]
CHUNKED = spell("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


def constants(seconds: float) -> dict[str, float]:
    limits = ("transport.HANDSHAKE", "connection.HEAD", "connection.WRITE_BLOCKED", "body.READ")
    return {f"{limit}_SECONDS": seconds for limit in limits} | {"transport.SHUTDOWN_SECONDS": 0.3}


@pytest.fixture(scope="module")
def besieged(start: Start) -> Program:
    """A server that closes no connection for its silence while a test runs."""
    return warm(start("--audit-log", "", constants=constants(PATIENT)))


@pytest.fixture(scope="module")
def impatient(start: Start) -> Program:
    return warm(start("--audit-log", "", constants=constants(IMPATIENT)))


def warm(program: Program) -> Program:
    for _ in range(20):
        answer(program.post("/validate", review()))
    return program


class Crowd:
    """Many connections that are never closed by us."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self._dripping = threading.Event()
        self._dripping.set()
        self._threads: list[threading.Thread] = []

    def mute(self, program: Program, count: int) -> None:
        """Connections that do not even say hello."""
        for _ in range(count):
            self.sockets.append(socket.create_connection(("127.0.0.1", program.port), timeout=REACTION))

    def silent(self, program: Program, count: int, first: bytes = b"") -> list[socket.socket]:
        """Connections that finish TLS, say something perhaps, and then nothing."""
        made, tls = [], context(program.ca)
        for _ in range(count):
            connection = Connection(program.port, tls, timeout=REACTION)
            if first:
                connection.send(first)
            made.append(connection.socket)
        self.sockets += made
        return made

    def dripping(self, program: Program, count: int, first: bytes) -> None:
        """Connections that send a byte a second for ever."""
        targets = self.silent(program, count, first)

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
        deadline = time.monotonic() + REACTION
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
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.close()


def serves(program: Program) -> None:
    """Fails if a request on a connection of its own, handshake included, waits for other connections."""
    for _ in range(3):
        answer(program.post("/validate", review()))


def test_a_thousand_mute_connections_delay_no_review(besieged: Program, crowd: Crowd):
    crowd.mute(besieged, 1000)
    serves(besieged)


def test_silent_and_slow_connections_delay_no_review(besieged: Program, crowd: Crowd):
    before = besieged.memory()
    crowd.silent(besieged, 500)
    crowd.dripping(besieged, 100, HEAD + b"X-Slow: ")
    crowd.dripping(besieged, 50, HEAD + b"Content-Length: 1000\r\n\r\n{")
    serves(besieged)
    assert besieged.memory() - before < 128 * MIB


def test_mute_silent_and_slow_ones_are_closed(impatient: Program, crowd: Crowd):
    crowd.mute(impatient, 20)
    crowd.silent(impatient, 20)
    crowd.dripping(impatient, 20, HEAD + b"X-Slow: ")
    crowd.dripping(impatient, 20, HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert crowd.all_closed()


def test_the_response_to_a_slow_body_says_why(impatient: Program):
    with impatient.connect() as connection:
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
    deadline = time.monotonic() + REACTION
    with besieged.connect() as connection:
        connection.send(first)
        with pytest.raises((ConnectionError, ssl.SSLError)):  # noqa: PT012
            while time.monotonic() < deadline:
                connection.send(more)
                time.sleep(0.001)
        assert besieged.memory() - before < 32 * MIB
        serves(besieged)
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # who goes on sending may miss the answer
            assert connection.receive().status in statuses


def test_a_head_that_is_too_long_is_answered(besieged: Program):
    with besieged.connect() as connection:
        connection.send(HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"a" * 7000) for number in range(12)))
        assert connection.receive().status == 431
        assert connection.ended()


def test_the_deaf_hold_little_and_are_closed(besieged: Program, impatient: Program, crowd: Crowd):
    """They ask and never read: answers must not pile up, nor may the connection stay."""
    before = besieged.memory()
    for deaf in crowd.silent(besieged, 5):
        deaf.sendall(spell("GET", "/metrics") * 1200)
    serves(besieged)
    assert besieged.memory() - before < 32 * MIB
    files = impatient.settled_files()
    (deaf,) = crowd.silent(impatient, 1)
    deaf.sendall(spell("GET", "/metrics") * 1200)
    until(lambda: impatient.open_files() <= files)


def test_pipelines_are_bounded(impatient: Program, crowd: Crowd):
    before, files = impatient.memory(), impatient.settled_files()
    (deaf,) = crowd.silent(impatient, 1)
    with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
        for _ in range(500):
            deaf.sendall(spell("POST", "/validate", b"{", JSON) * 1000)
    assert impatient.memory() - before < 32 * MIB
    until(lambda: impatient.open_files() <= files)


def test_large_bodies_share_a_bounded_room(besieged: Program, crowd: Crowd):
    before = besieged.memory()
    stalled = crowd.silent(besieged, 16, HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * (7 * MIB))
    assert besieged.memory() - before < 192 * MIB
    serves(besieged)  # small ones need no room
    until(lambda: any(first_bytes(one) == b"HTTP/1.1 429" for one in stalled))
    crowd.close()
    until(lambda: besieged.post("/validate", b" " * MIB + json.dumps(review()).encode()).status == 200)


def first_bytes(one: socket.socket) -> bytes:
    """What a server has said; nothing, if it still waits."""
    one.settimeout(0.05)
    with contextlib.suppress(OSError):
        return one.recv(12)
    return b""
