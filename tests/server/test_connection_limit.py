"""At the limit of connections, the server closes the most idle ones and serves every new one."""

import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

from certs.pki import Pair
from tests.server.client import JSON, Connection, encode_request
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import Authority, Program, until
from tests.server.reviews import admission_response, review
from tests.server.test_tls_reload import wait_for_certificate
from webhook.server.limits import ServerLimits

LIMIT = 64
BODY = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "100"}) + b"{"


@pytest.fixture(scope="module")
def small(start: Start) -> Program:
    return start("--audit-log", "", limits=ServerLimits(open_files=2 * LIMIT, close_seconds=0.2))


@pytest.fixture
def held() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def connect(program: Program, held: contextlib.ExitStack, count: int) -> list[Connection]:
    return [held.enter_context(program.connect()) for _ in range(count)]


def test_silent_connections_are_closed_first_the_oldest_before_others(small: Program, held: contextlib.ExitStack):
    used = connect(small, held, LIMIT - 20)
    for connection in used:
        admission_response(connection.post("/validate", review()))
    silent = connect(small, held, 20)
    new_connections = connect(small, held, 15)
    for connection in [*new_connections, *used]:
        assert admission_response(connection.post("/validate", review("again")))["uid"] == "again"
    for connection in silent[:15]:
        assert connection.ended()
    for connection in silent[15:]:
        admission_response(connection.post("/validate", review()))


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "that send no body"])
def test_other_connections_are_closed_after_silent_ones(small: Program, held: contextlib.ExitStack, idle: bool):
    for connection in connect(small, held, LIMIT):
        if idle:
            admission_response(connection.post("/validate", review()))
        else:
            connection.send(BODY)
    for _ in range(10):
        (new,) = connect(small, held, 1)
        admission_response(new.post("/validate", review()))


def test_the_server_recovers_when_no_file_can_be_opened(start: Start, authority: Authority):
    """Silent connections use all file descriptors; after their end the server serves again, with the new certificate."""
    program = start("--audit-log", "", limits=ServerLimits(handshake_seconds=2.0), pace=QUICK)
    resource.prlimit(program.worker, resource.RLIMIT_NOFILE, (64, 64))
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.create_connection(("127.0.0.1", program.port)))
        fresh: Pair = authority.renew()
        until(lambda: "Too many open files" in program.log())
        until(program.is_ready)
        wait_for_certificate(program, fresh)
    assert len(program.log()) < 20_000, "the log is not flooded"
    assert "last good" not in program.readyz()
    assert "Traceback" not in program.log()


def test_a_connection_that_an_api_server_keeps_in_reserve_stays(start: Start):
    program = start("--audit-log", "", limits=ServerLimits(head_seconds=0.2, sweep_seconds=0.05))
    with program.connect() as spare, program.connect() as begun:
        begun.send(BODY[:20])
        assert begun.ended(), "a head must arrive in time"
        admission_response(spare.post("/validate", review()))
