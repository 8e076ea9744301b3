"""The end: what was read is answered, who only waits is sent away, and the exit code is 0."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.server.client import JSON, Connection, spell
from tests.server.conftest import Start
from tests.server.program import EXIT_SECONDS, Program, until
from tests.server.reviews import answer, review
from tests.server.test_bad_bytes import GOOD

Begin = Callable[..., Program]


@pytest.fixture
def begin(start: Start) -> Begin:
    return lambda *options, **more: start("--audit-log", "", *options, **more)


def exit_code(program: Program) -> int:
    return program.process.wait(EXIT_SECONDS)


def begun(connection: Connection) -> None:
    """Send a review but for its end, when the server reads it."""
    declared = JSON | {"Content-Length": str(len(GOOD)), "Expect": "100-continue"}
    connection.send(spell("POST", "/validate?timeout=20s", headers=declared))
    assert connection.receive().status == 100
    connection.send(GOOD[:-10])


def test_sigterm_finishes_what_was_begun(begin: Begin):
    program = begin()
    with program.connect() as idle, program.connect() as used, program.connect() as busy:
        answer(used.post("/validate", review()))
        begun(busy)
        program.process.terminate()
        assert idle.ended()
        assert used.ended()
        time.sleep(0.5)
        assert program.process.poll() is None, "it waits for the review that was begun"
        busy.send(GOOD[-10:])
        response = busy.receive()
        assert answer(response)["uid"] == "u-1"
        assert response.headers["connection"] == "close"
        assert busy.ended()
        assert exit_code(program) == 0
    assert "Traceback" not in program.log()


def test_idle_connections_do_not_hold_up_the_exit(begin: Begin):
    program = begin()
    connections = [program.connect() for _ in range(50)]
    try:
        program.process.terminate()
        assert exit_code(program) == 0
    finally:
        for connection in connections:
            connection.close()


def test_while_draining_it_is_not_ready_yet_serves(begin: Begin):
    program = begin("--drain-seconds", "20")
    with program.connect() as old:
        answer(old.post("/validate", review()))
        program.process.terminate()
        page = until(lambda: (got := program.get("/readyz")).status == 503 and got)
        assert page.body.startswith(b"not ready: shutting down\n")
        assert page.headers["connection"] == "close"
        with program.connect() as new:
            response = new.post("/mutate", review("new"))
            assert answer(response)["uid"] == "new"
            assert response.headers["connection"] == "close"
            assert new.ended()
        response = old.post("/mutate", review("old"))
        assert answer(response)["uid"] == "old"
        assert response.headers["connection"] == "close"
        assert old.ended()
        assert program.get("/healthz").status == 200, "alive is not ready"
    program.process.kill()


def test_sigint_ends_it_at_once(begin: Begin):
    program = begin()
    with program.connect() as idle, program.connect() as busy:
        begun(busy)
        program.process.send_signal(signal.SIGINT)
        assert exit_code(program) == 0
        assert idle.ended()
    assert "Traceback" not in program.log()


def test_a_second_sigterm_changes_nothing(begin: Begin):
    program = begin("--drain-seconds", "5")
    for _ in range(3):
        program.process.terminate()
        time.sleep(0.1)
    assert program.get("/readyz").status == 503
    assert exit_code(program) == 0


def test_a_killed_worker_comes_back(begin: Begin):
    program = begin()
    killed = program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: program.children and program.worker != killed and program.answers())
    assert answer(program.post("/validate", review()))["uid"] == "u-1"


def test_a_worker_does_not_outlive_its_master(begin: Begin):
    program = begin()
    worker = program.worker
    program.process.kill()
    program.process.wait()
    until(lambda: not os.path.exists(f"/proc/{worker}"))  # noqa: PTH110
