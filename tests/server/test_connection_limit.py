"""More connections than there is room for: those who waste it go first, and a newcomer is always served."""

import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

from certs.pki import Pair
from tests.server.client import JSON, Connection, spell
from tests.server.conftest import Start
from tests.server.program import Authority, Program, until
from tests.server.reviews import answer, review
from tests.server.test_tls_reload import expect

MOST = 64
BODY = spell("POST", "/validate", headers=JSON | {"Content-Length": "100"}) + b"{"


@pytest.fixture(scope="module")
def small(start: Start) -> Program:
    return start("--audit-log", "", constants={"gunicorn.MAX_OPEN_FILES": 2 * MOST, "transport.SHUTDOWN_SECONDS": 0.2})


@pytest.fixture
def held() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def several(program: Program, held: contextlib.ExitStack, count: int) -> list[Connection]:
    return [held.enter_context(program.connect()) for _ in range(count)]


def test_the_silent_go_first_the_oldest_before_others(small: Program, held: contextlib.ExitStack):
    used = several(small, held, MOST - 20)
    for connection in used:
        answer(connection.post("/validate", review()))
    silent = several(small, held, 20)
    newcomers = several(small, held, 15)
    for connection in [*newcomers, *used]:
        assert answer(connection.post("/validate", review("again")))["uid"] == "again"
    for connection in silent[:15]:
        assert connection.ended()
    for connection in silent[15:]:
        answer(connection.post("/validate", review()))


def test_then_the_idle(small: Program, held: contextlib.ExitStack):
    for connection in several(small, held, MOST):
        answer(connection.post("/validate", review()))
    for _ in range(10):
        (newcomer,) = several(small, held, 1)
        answer(newcomer.post("/validate", review()))


def test_then_those_that_send_no_body(small: Program, held: contextlib.ExitStack):
    for connection in several(small, held, MOST):
        connection.send(BODY)
    for _ in range(10):
        (newcomer,) = several(small, held, 1)
        answer(newcomer.post("/validate", review()))


def test_no_more_files_can_be_opened(start: Start, authority: Authority):
    """Mute connections take all of them; when they are gone, all is well again, and the new certificate is served."""
    program = start(
        "--audit-log", "", constants={"transport.HANDSHAKE_SECONDS": 2.0, "settings.file_watcher.POLL_SECONDS": 0.1}
    )
    resource.prlimit(program.worker, resource.RLIMIT_NOFILE, (64, 64))
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.create_connection(("127.0.0.1", program.port), timeout=5))
        fresh: Pair = authority.renew()
        until(lambda: "Too many open files" in program.log())
        until(program.answers)
        expect(program, fresh)
    assert len(program.log()) < 20_000, "the log is not flooded"
    assert "last good" not in program.readyz()
    assert "Traceback" not in program.log()
