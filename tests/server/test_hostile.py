"""Clients that hold connections: silent, slow, endless, or never reading. They must not delay other clients."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.server.client import JSON, SECONDS, Connection, context, encode_request
from tests.server.conftest import Start
from tests.server.program import Program, until
from tests.server.reviews import admission_response, refusal, review
from webhook.server.limits import ServerLimits

IMPATIENT, PATIENT = 2.0, 3600.0  # seconds until a server closes connections that make no progress
MIB = 1 << 20
HEAD = encode_request("POST", "/validate", headers=JSON)[:-2]
CHUNKED = encode_request("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


def limits(seconds: float) -> ServerLimits:
    fields = ("handshake", "head", "unused", "write_blocked", "body")
    return ServerLimits(close_seconds=0.3, **{f"{field}_seconds": seconds for field in fields})


@pytest.fixture(scope="module")
def patient(start: Start) -> Program:
    """A server that closes no silent connection while a test runs."""
    return warm(start("--audit-log", "", limits=limits(PATIENT)))


@pytest.fixture(scope="module")
def impatient(start: Start) -> Program:
    return warm(start("--audit-log", "", limits=limits(IMPATIENT)))


def warm(program: Program) -> Program:
    for _ in range(20):
        admission_response(program.post("/validate", review()))
    return program


class HeldConnections(contextlib.ExitStack):
    """Many connections that the client does not close before its end."""

    sockets: Sequence[socket.socket] = ()

    def without_handshake(self, program: Program, count: int) -> None:
        """Connections that send nothing, not even a TLS handshake."""
        address = "127.0.0.1", program.port
        made = [self.enter_context(socket.create_connection(address, timeout=SECONDS)) for _ in range(count)]
        self.sockets = [*self.sockets, *made]

    def silent(self, program: Program, count: int, first: bytes = b"") -> list[socket.socket]:
        """Connections that finish the TLS handshake, send `first`, and then nothing."""
        made, tls = [], context(program.ca)
        for _ in range(count):
            connection = self.enter_context(Connection(program.port, tls))
            connection.send(first)
            made.append(connection.socket)
        self.sockets = [*self.sockets, *made]
        return made

    def slow(self, program: Program, count: int, first: bytes) -> None:
        """Connections that send one byte a second, without end."""
        targets, ended = self.silent(program, count, first), threading.Event()

        def send_slowly() -> None:
            while not ended.wait(1):
                for target in targets:
                    with contextlib.suppress(OSError):
                        target.send(b"x")

        thread = threading.Thread(target=send_slowly)
        thread.start()
        self.callback(thread.join)
        self.callback(ended.set)

    def all_closed(self) -> bool:
        """Read every connection to its end; False if one is not closed."""
        for connection in self.sockets:
            try:
                while connection.recv(1 << 16):
                    pass
            except TimeoutError:
                return False
            except OSError:
                pass
        return True


@pytest.fixture
def held() -> Iterator[HeldConnections]:
    with HeldConnections() as made:
        yield made


def check_serves(program: Program) -> None:
    """Fails if a request on a new connection, with its handshake, waits for other connections."""
    for _ in range(3):
        admission_response(program.post("/validate", review()))


def test_silent_and_slow_connections_delay_no_review(patient: Program, held: HeldConnections):
    before = patient.memory()
    held.silent(patient, 200)
    held.slow(patient, 50, HEAD + b"X-Slow: ")
    held.slow(patient, 50, HEAD + b"Content-Length: 1000\r\n\r\n{")
    check_serves(patient)
    assert patient.memory() - before < 60 * MIB
    held.without_handshake(patient, 1000)
    check_serves(patient)


def test_silent_and_slow_connections_are_closed(impatient: Program, held: HeldConnections):
    held.without_handshake(impatient, 20)
    held.silent(impatient, 20)
    held.slow(impatient, 20, HEAD + b"X-Slow: ")
    held.slow(impatient, 20, HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert held.all_closed()


ENDLESS = {
    "one header": (HEAD + b"X-A: ", b"a" * 8192, 431),
    "a chunk extension": (CHUNKED + b"5;", b"a" * 8192, 400),
    "pieces of one byte": (CHUNKED, b"1\r\nx\r\n" * 1024, 400),
}


@pytest.mark.parametrize("first, more, status", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_request_is_cut_off(patient: Program, first: bytes, more: bytes, status: int):
    before = patient.memory()
    with patient.connect() as connection:
        connection.send(first)
        with pytest.raises((ConnectionError, ssl.SSLError)):  # noqa: PT012
            while True:
                connection.send(more)
                time.sleep(0.001)
        assert patient.memory() - before < 32 * MIB
        check_serves(patient)
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # a client that goes on sending may miss the response
            assert connection.receive().status == status


@pytest.mark.parametrize("query", ["1s", "250ms"])
def test_a_missing_body_gets_408_after_the_timeout_of_the_request(patient: Program, query: str):
    with patient.connect() as connection:
        head = HEAD.replace(b"/validate", f"/validate?timeout={query}".encode())
        connection.send(head + b"Content-Length: 10\r\n\r\n{")
        response = connection.receive()
        refusal(response, 408)
        assert response.headers["connection"] == "close"


def test_clients_that_do_not_read_use_little_memory_and_are_closed(
    patient: Program, impatient: Program, held: HeldConnections
):
    """They send requests and never read: the server must not buffer all responses or keep the connection."""
    before = patient.memory()
    for client in held.silent(patient, 5):
        client.sendall(encode_request("GET", "/metrics") * 1200)
    check_serves(patient)
    assert patient.memory() - before < 32 * MIB
    files = impatient.settled_files()
    (client,) = held.silent(impatient, 1)
    client.sendall(encode_request("GET", "/metrics") * 1200)
    until(lambda: impatient.open_files() <= files)


def test_the_memory_of_a_pipeline_is_limited(impatient: Program, held: HeldConnections):
    before, files = impatient.memory(), impatient.settled_files()
    (client,) = held.silent(impatient, 1)
    with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
        for _ in range(500):
            client.sendall(encode_request("POST", "/validate", b"{", JSON) * 1000)
    assert impatient.memory() - before < 32 * MIB
    until(lambda: impatient.open_files() <= files)
