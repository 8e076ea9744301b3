"""What connections hold together is bounded; above the limit, those that are worth least make room."""

import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest

from tests.server.client import JSON, Connection, context, spell
from tests.server.conftest import Start
from tests.server.program import PYTHON_PARSER, Program, until
from tests.server.reviews import answer, refusal, review
from webhook.server import budget
from webhook.server.budget import CONNECTION_BYTES, LIMIT_BYTES, Account, Budget

MIB = 1 << 20
HEAD = spell("POST", "/validate", headers=JSON | {"Content-Length": "8000000"})
CHUNKED = spell("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


class Held:
    """A connection that notes that it makes room."""

    serving = False

    def __init__(self, budget: Budget, *, began: float = 0.0) -> None:
        self.account = Account(began)
        self._budget = budget
        self.made_room = False

    def overdue(self, now: float) -> bool:
        return False

    def drop(self) -> None: ...

    def make_room(self) -> None:
        self.made_room = True
        self._budget.close(self)


def several(made: Budget, count: int, *, began: float = 0.0) -> list[Held]:
    connections = [Held(made, began=began) for _ in range(count)]
    for connection in connections:
        made.open(connection, began)
    return connections


def gone(connections: list[Held]) -> list[bool]:
    return [connection.made_room for connection in connections]


def test_within_the_limit_nobody_makes_room():
    made = Budget(100)
    connections = several(made, 10)
    made.read(connections[0].account, LIMIT_BYTES - 10 * CONNECTION_BYTES, 1.0)
    assert not any(gone(connections))


def test_what_is_finished_is_counted_out():
    made = Budget(100)
    (connection,) = several(made, 1)
    for _ in range(10):
        made.read(connection.account, LIMIT_BYTES // 2, 1.0)
        made.finish(connection.account, 1.0)
        made.write(connection.account, LIMIT_BYTES // 2, 1.0)
        made.write(connection.account, 0, 1.0)
    assert not connection.made_room


def test_the_slowest_go_first():
    made = Budget(1000)
    slow, fast = several(made, 20, began=0.0), several(made, 20, began=9.0)
    for connection in [*slow, *fast]:
        made.read(connection.account, LIMIT_BYTES // 40, 10.0)
    assert not any(gone(fast))
    assert 0 < sum(gone(slow)) < 10, "no more of them than necessary"


def test_the_largest_go_first():
    made = Budget(1000)
    small, large = several(made, 20), several(made, 20)
    for connection in [*small, *large]:
        made.read(connection.account, LIMIT_BYTES // (100 if connection in small else 20), 1.0)
    assert not any(gone(small))
    assert any(gone(large))


def test_those_that_were_answered_reviews_go_last():
    made = Budget(1000)
    kept = several(made, 20, began=0.0)
    for connection in kept:
        connection.account.reviews = 1
    strangers = several(made, 50, began=99.0)
    for connection in strangers:
        made.read(connection.account, LIMIT_BYTES // 40, 100.0)
    assert any(gone(strangers))
    assert not any(gone(kept))


def test_a_verified_client_goes_after_those_that_were_answered_reviews():
    made = Budget(64)
    verified, *kept = several(made, 64)
    verified.account.verified = True
    for connection in kept:
        connection.account.reviews = 1000
    newcomers = several(made, 6, began=100.0)
    assert not verified.made_room
    assert not any(gone(newcomers)), "strangers have a share of their own"
    assert sum(gone(kept)) == 6


def test_a_peer_that_does_not_read_its_answers_is_a_stranger():
    made = Budget(1000)
    deaf, kept = several(made, 2)
    deaf.account.reviews, kept.account.reviews = 1000, 1
    made.read(kept.account, LIMIT_BYTES // 2, 1.0)
    made.write(deaf.account, LIMIT_BYTES // 2, 1.0)
    assert deaf.made_room
    assert not kept.made_room


SMALL_CONNECTIONS = (24 << 20) // CONNECTION_BYTES
SMALL = {"budget.LIMIT_BYTES": "24 << 20", "transport.SHUTDOWN_SECONDS": 0.2}


@pytest.fixture(scope="module", params=[{}, PYTHON_PARSER], ids=["default parser", "python parser"])
def small(request: pytest.FixtureRequest, start: Start) -> Program:
    return start("--audit-log", "", constants=SMALL | request.param)


@pytest.fixture
def kept(small: Program) -> Iterator[Connection]:
    """A connection that was answered reviews."""
    with small.connect() as made:
        answer(made.post("/validate", review()))
        yield made


def test_stalled_bodies_make_room(small: Program, kept: Connection):
    before = small.memory()
    with contextlib.ExitStack() as held:
        stalled = []
        for _ in range(150):
            connection = held.enter_context(small.connect())
            connection.send(HEAD + b" " * (384 << 10))
            stalled.append(connection)
            if len(stalled) % 10 == 0:
                answer(small.post("/validate", review()))
        assert small.memory() - before < 48 * MIB
        assert "in one go" in refusal(stalled[0].receive(), 429)
        assert small.metric("bad_requests_total", endpoint="validate", code="429") > 50
        assert answer(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_small_pieces_count_for_what_they_cost(small: Program, kept: Connection):
    before = small.memory()
    pieces = b"8\r\n        \r\n" * 8000
    with contextlib.ExitStack() as held:
        for _ in range(80):
            connection = held.enter_context(small.connect())
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                connection.send(CHUNKED + pieces)
        assert small.memory() - before < 48 * MIB
        assert answer(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_half_open_handshakes_make_room(small: Program, kept: Connection):
    with contextlib.ExitStack() as held:
        for count in range(2 * SMALL_CONNECTIONS):
            mute = held.enter_context(socket.create_connection(("127.0.0.1", small.port), timeout=5))
            mute.sendall(b"\x16\x03\x01\x02\x00\x01")
            if count % 50 == 0:
                answer(small.post("/validate", review()))
        until(lambda: small.open_files() < SMALL_CONNECTIONS + 50)
        assert answer(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_a_handshake_without_end_is_cut(small: Program):
    with (
        socket.create_connection(("127.0.0.1", small.port), timeout=3) as endless,
        contextlib.suppress(ConnectionError),
    ):
        for _ in range(20):
            endless.sendall(b"\x16\x03\x01\x40\x00\x01\x01\xf0\x00" + b"a" * (0x4000 - 4))
        assert endless.recv(100) == b"", "cut for its size, not when its time is up"


def test_unread_answers_make_room(small: Program, kept: Connection):
    before = small.memory()
    tls = context(small.ca)
    with contextlib.ExitStack() as held:
        for _ in range(60):
            deaf = held.enter_context(Connection(small.port, tls))
            with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
                deaf.send(spell("GET", "/metrics") * 400)
        assert small.memory() - before < 48 * MIB
        assert answer(kept.post("/validate", review("kept")))["uid"] == "kept"


def test_the_figures_fit_together():
    assert budget.LIMIT_BYTES // budget.CONNECTION_BYTES >= 1000, "an API server opens hundreds of connections"
