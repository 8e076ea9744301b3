"""Clients that hold connections: silent, slow, endless, or never reading. They delay no others, and take little memory."""

import contextlib
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.server.client import JSON, SECONDS, Connection, context, encode_request
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import PATIENT, Authority, Program, until
from tests.server.reviews import admission_response, refusal, review
from tests.server.test_tls_reload import wait_for_certificate
from webhook.server.budget import CONNECTION_BYTES
from webhook.server.limits import ServerLimits

IMPATIENT, NEVER = 2.0, 3600.0  # seconds until a server closes connections that make no progress
MIB = 1 << 20
FEW = 64  # connections
CRAMPED = (8 << 20) // CONNECTION_BYTES
HEAD = encode_request("POST", "/validate", headers=JSON)[:-2]
BODY = HEAD + b"Content-Length: 1000\r\n\r\n{"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
METRICS = encode_request("GET", "/metrics")


def limits(seconds: float, **others: float) -> ServerLimits:
    fields = ("handshake", "head", "unused", "write_blocked", "body")
    return replace(PATIENT, **{"close_seconds": 0.3, **{f"{field}_seconds": seconds for field in fields}, **others})


@pytest.fixture(scope="module")
def patient(start: Start) -> Program:
    """A server that closes no silent connection while a test runs."""
    return warm(start("--audit-log", "", limits=limits(NEVER)))


@pytest.fixture(scope="module")
def impatient(start: Start) -> Program:
    return warm(start("--audit-log", "", limits=limits(IMPATIENT)))


@pytest.fixture(scope="module")
def cramped(start: Start) -> Program:
    """A patient server with little memory for connections."""
    return start("--audit-log", "", limits=limits(NEVER, memory_bytes=8 << 20))


@pytest.fixture(scope="module")
def few(start: Start) -> Program:
    """A server that may open few files, half of them for connections."""
    return start("--audit-log", "", limits=replace(PATIENT, open_files=2 * FEW, close_seconds=0.2))


def warm(program: Program) -> Program:
    for _ in range(20):
        check_serves(program)
    return program


class HeldConnections(contextlib.ExitStack):
    """Many connections that the client does not close before its end."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: list[socket.socket] = []

    def without_handshake(self, program: Program, count: int, first: bytes = b"") -> None:
        """Connections that do not finish a TLS handshake."""
        for _ in range(count):
            self.sockets.append(self.enter_context(socket.create_connection(("127.0.0.1", program.port), SECONDS)))
            self.sockets[-1].sendall(first)

    def silent(self, program: Program, count: int, first: bytes = b"") -> list[Connection]:
        """Connections that finish the TLS handshake, send `first`, and then nothing."""
        tls = context(program.ca)
        made = []
        for _ in range(count):
            made.append(self.enter_context(Connection(program.port, tls)))
            self.sockets.append(made[-1].socket)
            made[-1].send(first)
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
    admission_response(program.post("/validate", review()))


def test_silent_and_slow_connections_delay_no_review(patient: Program, held: HeldConnections):
    before = patient.memory()
    held.silent(patient, 200)
    held.slow(patient, 50, HEAD + b"X-Slow: ")
    held.slow(patient, 50, BODY)
    check_serves(patient)
    assert patient.memory() - before < 60 * MIB
    held.without_handshake(patient, 1000)
    check_serves(patient)


def test_silent_and_slow_connections_are_closed(impatient: Program, held: HeldConnections):
    for hold, *first in (
        (held.without_handshake,), (held.silent,), (held.slow, HEAD + b"X-Slow: "), (held.slow, BODY),
    ):  # fmt: skip
        with contextlib.suppress(OSError):  # on a slow machine, it is closed while it is made
            hold(impatient, 20, *first)
    assert held.all_closed()


def test_a_connection_that_an_api_server_keeps_in_reserve_stays(start: Start):
    program = start("--audit-log", "", limits=replace(PATIENT, head_seconds=0.2, sweep_seconds=0.05))
    with program.connect() as spare, program.connect() as begun:
        begun.send(HEAD[:20])
        assert begun.ended(), "a head must arrive in time"
        admission_response(spare.post("/validate", review()))


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


def test_a_handshake_without_end_is_cut(cramped: Program):
    with socket.create_connection(("127.0.0.1", cramped.port)) as endless, contextlib.suppress(ConnectionError):
        for _ in range(20):
            endless.sendall(b"\x16\x03\x01\x40\x00\x01\x01\xf0\x00" + b"a" * (0x4000 - 4))
        assert endless.recv(100) == b""


@pytest.mark.parametrize("query", ["1s", "250ms"])
def test_a_missing_body_gets_408_after_the_timeout_of_the_request(patient: Program, query: str):
    with patient.connect() as connection:
        connection.send(BODY.replace(b"/validate", f"/validate?timeout={query}".encode()))
        response = connection.receive()
        refusal(response, 408)
        assert response.headers["connection"] == "close"


def test_clients_that_do_not_read_use_little_memory_and_are_closed(
    patient: Program, impatient: Program, held: HeldConnections
):
    """They send requests and never read: the server must not buffer all responses or keep the connection."""
    before = patient.memory()
    held.silent(patient, 5, METRICS * 1200)
    check_serves(patient)
    assert patient.memory() - before < 32 * MIB
    files = impatient.settled_files()
    with contextlib.suppress(OSError):
        held.silent(impatient, 1, METRICS * 1200)
    until(lambda: impatient.open_files() <= files)


def test_the_memory_of_a_pipeline_is_limited(impatient: Program, held: HeldConnections):
    before, files = impatient.memory(), impatient.settled_files()
    with contextlib.suppress(OSError):
        (client,) = held.silent(impatient, 1)
        for _ in range(500):
            client.send(encode_request("POST", "/validate", b"{", JSON) * 1000)
    assert impatient.memory() - before < 32 * MIB
    until(lambda: impatient.open_files() <= files)


# --- eviction: tests/server/test_budget.py has the order --------------------------------------------------------------


@pytest.fixture
def kept(cramped: Program) -> Iterator[None]:
    """At the end, a connection that was answered reviews before is answered again."""
    with cramped.connect() as made:
        admission_response(made.post("/validate", review()))
        yield
        assert admission_response(made.post("/validate", review("kept")))["uid"] == "kept"


@pytest.mark.usefixtures("kept")
def test_stalled_bodies_are_evicted(cramped: Program, held: HeldConnections):
    before = cramped.memory()
    first, *_ = held.silent(cramped, 1, HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * (384 << 10))
    for _ in range(15):
        held.silent(cramped, 10, HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * (384 << 10))
        check_serves(cramped)
    assert cramped.memory() - before < 24 * MIB
    assert "without pauses" in refusal(first.receive(), 429)
    assert cramped.metric("bad_requests_total", endpoint="validate", code="429") > 50


@pytest.mark.usefixtures("kept")
def test_small_pieces_count_for_what_they_cost(cramped: Program, held: HeldConnections):
    """Their bytes alone are a tenth of the limit."""
    before = cramped.settled_files()
    for _ in range(50):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            held.silent(cramped, 1, CHUNKED + b"8\r\n        \r\n" * 3000)
    until(lambda: cramped.open_files() < before + 50)  # some are evicted


@pytest.mark.usefixtures("kept")
def test_half_open_handshakes_are_evicted(cramped: Program, held: HeldConnections):
    for _ in range(4):
        held.without_handshake(cramped, CRAMPED // 2, b"\x16\x03\x01\x02\x00\x01")
        check_serves(cramped)
    until(lambda: cramped.open_files() < CRAMPED + 50)


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "that send no body"])
def test_at_the_limit_of_connections_new_ones_are_served(few: Program, held: HeldConnections, idle: bool):
    for connection in held.silent(few, FEW, b"" if idle else BODY):
        if idle:
            admission_response(connection.post("/validate", review()))
    for _ in range(10):
        (new,) = held.silent(few, 1)
        admission_response(new.post("/validate", review()))


def test_silent_connections_are_closed_first_the_oldest_before_others(few: Program, held: HeldConnections):
    used = held.silent(few, FEW - 20)
    for connection in used:
        admission_response(connection.post("/validate", review()))
    silent = held.silent(few, 20)
    for connection in [*held.silent(few, 15), *used]:
        admission_response(connection.post("/validate", review()))
    assert all(connection.ended() for connection in silent[:15])
    for connection in silent[15:]:
        admission_response(connection.post("/validate", review()))


def test_the_server_recovers_when_no_file_can_be_opened(start: Start, authority: Authority, held: HeldConnections):
    """Silent connections use all file descriptors; after their end the server serves again, with the new certificate."""
    program = start("--audit-log", "", pace=QUICK)
    resource.prlimit(program.worker, resource.RLIMIT_NOFILE, (64, 64))
    held.without_handshake(program, 100)
    until(lambda: authority.renew() and "Too many open files" in program.log())
    held.close()
    until(program.is_ready)
    wait_for_certificate(program, authority.renew())
    until(lambda: "last good" not in program.readyz())
    assert len(program.log()) < 20_000, "the log is not flooded"
    assert "Traceback" not in program.log()
