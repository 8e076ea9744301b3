"""At shutdown the server finishes reviews, closes idle connections, and exits with code 0."""

import asyncio
import errno
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.cases import each_case
from tests.server.client import JSON, SECONDS, Connection, context, encode_request
from tests.server.conftest import Start
from tests.server.program import PATIENT, Authority, Program, free_port, until
from tests.server.reviews import GOOD, admission_response, review
from webhook.server.gunicorn import BACKLOG, Server, close_listener
from webhook.server.limits import LIMITS
from webhook.server.wiring import Options, Service

StartServer = Callable[..., Program]


@pytest.fixture
def start_server(start: Start) -> StartServer:
    return lambda *options, **more: start("--audit-log", "", *options, **more)


def exit_code(program: Program) -> int:
    code = program.process.wait(SECONDS)
    assert "SIGKILL" not in program.log(), "it ends by itself, and not when the master's patience ends"
    return code


def send_most_of_a_review(connection: Connection) -> None:
    """Send a review without its end, after the server has begun to read it."""
    declared = JSON | {"Content-Length": str(len(GOOD)), "Expect": "100-continue"}
    connection.send(encode_request("POST", "/validate?timeout=30s", headers=declared))
    assert connection.receive().status == 100
    connection.send(GOOD[:-10])


def test_sigterm_finishes_reviews_in_progress(start_server: StartServer):
    program = start_server()
    with program.connect() as idle, program.connect() as used, program.connect() as busy:
        admission_response(used.post("/validate", review()))
        send_most_of_a_review(busy)
        for _ in range(3):  # more signals change nothing
            program.process.terminate()
            time.sleep(0.1)
        assert idle.ended()
        assert used.ended()
        assert program.process.poll() is None, "the server waits for the review in progress"
        busy.send(GOOD[-10:])
        response = busy.receive()
        assert admission_response(response)["uid"] == "u-1"
        assert response.headers["connection"] == "close"
        assert busy.ended()
        assert exit_code(program) == 0
    assert "Traceback" not in program.log()


def test_a_draining_server_is_not_ready_and_still_serves(start_server: StartServer):
    program = start_server("--drain-seconds", "3600")
    with program.connect() as old:
        admission_response(old.post("/validate", review()))
        program.process.terminate()
        page = until(lambda: (response := program.get("/readyz")).status == 503 and response)
        for _ in range(3):  # more signals change nothing
            os.kill(program.worker, signal.SIGTERM)
            time.sleep(0.15)
        assert page.body.startswith(b"not ready: shutting down\n")
        assert page.headers["connection"] == "close"
        with program.connect() as new:
            response = new.post("/mutate", review("new"))
            assert admission_response(response)["uid"] == "new"
            assert response.headers["connection"] == "close"
            assert new.ended()
        response = old.post("/mutate", review("old"))
        assert admission_response(response)["uid"] == "old"
        assert response.headers["connection"] == "close"
        assert old.ended()
        assert program.get("/healthz").status == 200, "the server is alive although it is not ready"
    program.process.kill()


def test_sigint_ends_the_server_at_once(start_server: StartServer):
    program = start_server()
    with program.connect() as idle, program.connect() as busy:
        send_most_of_a_review(busy)
        program.process.send_signal(signal.SIGINT)
        assert exit_code(program) == 0
        assert idle.ended()
    assert "Traceback" not in program.log()


def test_what_is_answered_while_it_ends_is_recorded(start_server: StartServer, tmp_path: Path):
    log = tmp_path / "audit.jsonl"
    program = start_server("--audit-log", str(log))
    answered: list[str] = []

    def client(name: int) -> None:
        with suppress(OSError), program.connect() as connection:
            for number in count():
                uid = admission_response(connection.post("/validate", review(f"{name}-{number}")))["uid"]
                answered.append(uid)

    with ThreadPoolExecutor(8) as clients:
        running = [clients.submit(client, name) for name in range(8)]
        until(lambda: len(answered) > 40)
        program.process.send_signal(signal.SIGINT)
    for each in running:
        each.result()
    assert exit_code(program) == 0
    assert set(answered) <= {json.loads(line)["uid"] for line in log.read_text().splitlines()}
    assert "lost" not in program.log()


def test_the_first_request_of_a_new_connection_is_answered(start_server: StartServer):
    """Both connections are accepted before the listeners are closed, and send their request after that."""
    program = start_server(limits=replace(PATIENT, first_request_seconds=SECONDS))
    with (
        socket.create_connection(("127.0.0.1", program.port), SECONDS) as raw,
        program.connect() as new,
        program.connect() as used,
    ):
        admission_response(used.post("/validate", review()))
        program.process.terminate()
        assert used.ended()
        with context(program.ca).wrap_socket(raw, server_hostname="localhost") as handshake:
            handshake.sendall(encode_request("POST", "/validate", GOOD, JSON))
            assert handshake.recv(64).startswith(b"HTTP/1.1 200")
        response = new.post("/validate", review())
        assert admission_response(response)["uid"] == "u-1"
        assert response.headers["connection"] == "close"
    assert exit_code(program) == 0


@each_case("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_what_waits_in_the_backlog_is_served(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    """The clients connect again once they are served, which is refused: else the backlog would never be empty."""

    address, errors = ("127.0.0.1", free_port()), []

    class Greeting(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.write(b"hello")
            with socket.socket() as again:
                errors.append(again.connect_ex(address))

    async def close(listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Greeting, sock=listener, backlog=BACKLOG)
        waiting = [socket.create_connection(address, SECONDS) for _ in range(30)]
        await close_listener(server, listener, Greeting)
        for client in waiting:
            with client:
                assert await loop.run_in_executor(None, client.recv, 5) == b"hello"

    with asyncio.Runner(loop_factory=new_loop) as runner, socket.create_server(address) as listener:
        listener.setblocking(False)
        runner.run(close(listener))
    assert errors == [errno.ECONNREFUSED] * 30


def test_clients_that_connect_without_pause_do_not_keep_the_server_from_ending(start_server: StartServer):
    program = start_server(limits=replace(PATIENT, first_request_seconds=SECONDS))
    tls, answered = context(program.ca), [0] * 12

    def client(number: int) -> None:
        with suppress(OSError):
            while True:
                with Connection(program.port, tls) as connection:
                    admission_response(connection.post("/validate", review()))
                answered[number] += 1

    with ThreadPoolExecutor(len(answered)) as clients:
        running = [clients.submit(client, number) for number in range(len(answered))]
        until(lambda: min(answered) > 3)
        program.process.terminate()
    for each in running:
        each.result()
    assert exit_code(program) == 0


@each_case("seconds", [0, 5, 40.5, 3600])
def test_the_master_waits_longer_than_the_worker_needs(seconds: float, tmp_path: Path):
    authority = Authority(tmp_path)
    options = Options(authority.certificate, authority.key, {}, audit_logs=(), drain_seconds=seconds)
    patience = Server(Service(options), f"127.0.0.1:{free_port()}").cfg.graceful_timeout
    assert patience > seconds + LIMITS.finish_seconds + LIMITS.flush_seconds


def test_a_worker_does_not_outlive_its_master(start_server: StartServer):
    program = start_server()
    worker = program.worker
    program.process.kill()
    program.process.wait()
    until(lambda: not os.path.exists(f"/proc/{worker}"))  # noqa: PTH110


def test_sighup_loses_no_request(start_server: StartServer):
    program = start_server()
    worker = program.worker
    with program.connect() as kept:
        for number in range(40):
            os.kill(program.process.pid, signal.SIGHUP)
            os.kill(worker, signal.SIGHUP)
            assert admission_response(kept.post("/validate", review(f"u-{number}")))["uid"] == f"u-{number}"
            assert admission_response(program.post("/validate", review()))["uid"] == "u-1"
            time.sleep(0.03)
    assert program.worker == worker
