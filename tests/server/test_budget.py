"""The memory of all connections is limited; above the limit, those with the lowest priority are evicted."""

import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest

from tests.server.client import JSON, Connection, encode_request
from tests.server.conftest import Start
from tests.server.program import Program, until
from tests.server.reviews import admission_response, refusal, review
from webhook.server.budget import CONNECTION_BYTES, ConnectionUsage, MemoryBudget
from webhook.server.limits import LIMITS, ServerLimits

LIMIT_BYTES = LIMITS.memory_bytes
MIB = 1 << 20
HEAD = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "8000000"})
CHUNKED = encode_request("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


class FakeConnection:
    """A connection that notes whether it was evicted."""

    serving = False

    def __init__(self, budget: MemoryBudget, *, began: float = 0.0) -> None:
        self.usage = ConnectionUsage(began)
        self._budget = budget
        self.evicted = False

    def overdue(self, now: float) -> bool:
        return False

    def drop(self) -> None: ...

    def evict(self) -> None:
        self.evicted = True
        self._budget.close(self)


def several(made: MemoryBudget, count: int, *, began: float = 0.0) -> list[FakeConnection]:
    connections = [FakeConnection(made, began=began) for _ in range(count)]
    for connection in connections:
        made.open(connection, began)
    return connections


def evicted(connections: list[FakeConnection]) -> list[bool]:
    return [connection.evicted for connection in connections]


def test_within_the_limit_no_connection_is_evicted():
    assert LIMIT_BYTES // CONNECTION_BYTES >= 1000, "an API server opens hundreds of connections"
    made = MemoryBudget(100)
    connections = several(made, 10)
    made.read(connections[0].usage, LIMIT_BYTES - 10 * CONNECTION_BYTES, 1.0)
    assert not any(evicted(connections))


def test_the_memory_of_finished_requests_is_freed():
    made = MemoryBudget(100)
    (connection,) = several(made, 1)
    for _ in range(10):
        made.read(connection.usage, LIMIT_BYTES // 2, 1.0)
        made.finish(connection.usage, 1.0)
        made.write(connection.usage, LIMIT_BYTES // 2, 1.0)
        made.write(connection.usage, 0, 1.0)
    assert not connection.evicted


def test_requests_that_end_after_their_connection_free_nothing_again():
    made = MemoryBudget(1000)
    for connection in several(made, 100):
        made.read(connection.usage, LIMIT_BYTES // 4, 1.0)
        made.write(connection.usage, LIMIT_BYTES // 4, 1.0)
        connection.evict()
        made.finish(connection.usage, 1.0)
        made.write(connection.usage, 0, 1.0)
    held = several(made, 10)
    for connection in held:
        made.read(connection.usage, LIMIT_BYTES // 5, 2.0)
    assert sum(connection.usage.total for connection in made) <= LIMIT_BYTES


def test_the_slowest_are_evicted_first():
    made = MemoryBudget(1000)
    slow, fast = several(made, 20, began=0.0), several(made, 20, began=9.0)
    for connection in [*slow, *fast]:
        made.read(connection.usage, LIMIT_BYTES // 40, 10.0)
    assert not any(evicted(fast))
    assert 0 < sum(evicted(slow)) < 10, "no more of them than necessary"


def test_the_largest_are_evicted_first():
    made = MemoryBudget(1000)
    small, large = several(made, 20), several(made, 20)
    for connection in [*small, *large]:
        made.read(connection.usage, LIMIT_BYTES // (100 if connection in small else 20), 1.0)
    assert not any(evicted(small))
    assert any(evicted(large))


def test_connections_with_answered_reviews_are_evicted_last():
    made = MemoryBudget(1000)
    kept = several(made, 20, began=0.0)
    for connection in kept:
        connection.usage.reviews = 1
    untrusted = several(made, 50, began=99.0)
    for connection in untrusted:
        made.read(connection.usage, LIMIT_BYTES // 40, 100.0)
    assert any(evicted(untrusted))
    assert not any(evicted(kept))


def test_a_verified_client_is_evicted_after_connections_with_answered_reviews():
    made = MemoryBudget(64)
    verified, *kept = several(made, 64)
    verified.usage.verified = True
    for connection in kept:
        connection.usage.reviews = 1000
    newcomers = several(made, 6, began=100.0)
    assert not verified.evicted
    assert not any(evicted(newcomers)), "a share is reserved for untrusted connections"
    assert sum(evicted(kept)) == 6


def test_a_peer_that_does_not_read_its_responses_is_untrusted():
    made = MemoryBudget(1000)
    deaf, kept = several(made, 2)
    deaf.usage.reviews, kept.usage.reviews = 1000, 1
    made.read(kept.usage, LIMIT_BYTES // 2, 1.0)
    made.write(deaf.usage, LIMIT_BYTES // 2, 1.0)
    assert deaf.evicted
    assert not kept.evicted


SMALL_CONNECTIONS = (8 << 20) // CONNECTION_BYTES
# Connections are closed for their size, not when their time is up.
SMALL = ServerLimits(memory_bytes=8 << 20, close_seconds=0.2, handshake_seconds=3600, body_seconds=3600)


@pytest.fixture(scope="module")
def small(start: Start) -> Program:
    return start("--audit-log", "", limits=SMALL)


@pytest.fixture
def kept(small: Program) -> Iterator[Connection]:
    """A connection that was answered reviews."""
    with small.connect() as made:
        admission_response(made.post("/validate", review()))
        yield made


def test_stalled_bodies_are_evicted(small: Program, kept: Connection):
    before = small.memory()
    with contextlib.ExitStack() as held:
        stalled = []
        for _ in range(150):
            connection = held.enter_context(small.connect())
            connection.send(HEAD + b" " * (384 << 10))
            stalled.append(connection)
            if len(stalled) % 10 == 0:
                admission_response(small.post("/validate", review()))
        assert small.memory() - before < 24 * MIB
        assert "without pauses" in refusal(stalled[0].receive(), 429)
        assert small.metric("bad_requests_total", endpoint="validate", code="429") > 50
        assert admission_response(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_small_pieces_count_for_what_they_cost(small: Program, kept: Connection):
    """Their bytes alone are a tenth of the limit."""
    pieces, before = b"8\r\n        \r\n" * 3000, small.settled_files()
    with contextlib.ExitStack() as held:
        for _ in range(50):
            connection = held.enter_context(small.connect())
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                connection.send(CHUNKED + pieces)
        until(lambda: small.open_files() < before + 50)  # some are evicted
        assert admission_response(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_half_open_handshakes_are_evicted(small: Program, kept: Connection):
    with contextlib.ExitStack() as held:
        for count in range(2 * SMALL_CONNECTIONS):
            mute = held.enter_context(socket.create_connection(("127.0.0.1", small.port)))
            mute.sendall(b"\x16\x03\x01\x02\x00\x01")
            if count % 50 == 0:
                admission_response(small.post("/validate", review()))
        until(lambda: small.open_files() < SMALL_CONNECTIONS + 50)
        assert admission_response(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_a_handshake_without_end_is_cut(small: Program):
    with socket.create_connection(("127.0.0.1", small.port)) as endless, contextlib.suppress(ConnectionError):
        for _ in range(20):
            endless.sendall(b"\x16\x03\x01\x40\x00\x01\x01\xf0\x00" + b"a" * (0x4000 - 4))
        assert endless.recv(100) == b""
