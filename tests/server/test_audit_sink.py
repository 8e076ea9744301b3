"""Audit lines go to a file or a pipe; a full disk or a reader that stops does not delay admissions."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server.client import JSON, SECONDS, Connection, encode_request
from tests.server.conftest import Start
from tests.server.program import PATIENT, Program, until
from tests.server.reviews import VGPU, admission_response, review

PIPE_BYTES = 64 << 10
CONTAINERS = [{"name": f"c-{number}", "resources": {"limits": VGPU, "requests": VGPU}} for number in range(12)]


def burst(program: Program, count: int, name: str) -> list[str]:
    """Send reviews of large pods at the same moment, so that one turn of the event loop answers them; returns their uids."""
    uids = [f"{name}-{number}" for number in range(count)]
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(program.connect()) for _ in uids]
        worker = program.worker
        os.kill(worker, signal.SIGSTOP)
        for uid, connection in zip(uids, connections, strict=True):
            body = json.dumps(review(uid, spec={"containers": CONTAINERS})).encode()
            connection.send(encode_request("POST", "/mutate", body, JSON))
        os.kill(worker, signal.SIGCONT)
        for uid, connection in zip(uids, connections, strict=True):
            assert admission_response(connection.receive())["uid"] == uid
    return uids


def uids_of(lines: bytes) -> list[str]:
    """The uids of audit lines; fails for a line that is not whole."""
    assert not lines or lines.endswith(b"\n")
    return [json.loads(line)["uid"] for line in lines.splitlines()]


def send_reviews(connection: Connection, count: int, name: str) -> list[str]:
    uids = [f"{name}-{number}" for number in range(count)]
    for uid in uids:
        assert admission_response(connection.post("/mutate", review(uid)))["uid"] == uid
    return uids


def test_each_log_gets_every_line_when_another_disk_is_full(start: Start, tmp_path: Path):
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text('{"uid":"before"}\n')
    logs = [f"--audit-log={log}" for log in (old, new, "/dev/full", "-")]
    program = start(*logs, stdout=subprocess.PIPE)
    with program.connect() as connection:
        uids = send_reviews(connection, 30, "full")
    assert program.metric("audit_write_failures_total") == 30
    assert 0 < program.log().count("audit log /dev/full: No space left on device; admissions go on") < 30
    written = new.read_bytes()
    assert [json.loads(line)["uid"] for line in written.splitlines()] == uids
    assert program.close() == written
    assert old.read_bytes() == b'{"uid":"before"}\n' + written
    assert new.stat().st_mode & 0o007 == 0, "other users must not read who uses which GPU"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    made = os.pipe()
    fcntl.fcntl(made[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    yield made
    for descriptor in made:
        os.close(descriptor)


def _drain(reader: int) -> bytes:
    os.set_blocking(reader, False)
    read = bytearray()
    try:
        while data := os.read(reader, PIPE_BYTES):
            read += data
    except BlockingIOError:
        pass
    return bytes(read)


def test_a_paused_reader_gets_every_line_without_another_decision(start: Start, pipe: tuple[int, int]):
    reader, writer = pipe
    program = start(stdout=writer, limits=replace(PATIENT, flush_seconds=SECONDS))
    uids = burst(program, 100, "paused")
    program.record()
    read = bytearray()
    until(lambda: len(uids) == (read.extend(_drain(reader)) or read.count(b"\n")))
    assert sorted(uids_of(bytes(read))) == sorted(uids)
    assert program.metric("audit_write_failures_total") == 0
    uids = burst(program, 100, "end")
    program.process.terminate()
    read = bytearray()
    until(lambda: read.extend(_drain(reader)) or program.process.poll() is not None)
    read += _drain(reader)
    assert sorted(uids_of(bytes(read))) == sorted(uids), "the end waits for the reader"


def test_a_reader_that_stops_does_not_block_admissions(start: Start, pipe: tuple[int, int]):
    reader, writer = pipe
    program = start(stdout=writer, limits=replace(PATIENT, audit_bytes=PIPE_BYTES))
    with program.connect() as connection:
        uids = send_reviews(connection, 500, "stuck")
        lost = until(lambda: program.metric("audit_write_failures_total"))
        uids += send_reviews(connection, 20, "more")
        program.record()
        read = bytearray(_drain(reader))
        until(lambda: read.extend(_drain(reader)) or read.endswith(b"\n"))
        uids += send_reviews(connection, 5, "after")
        until(lambda: read.extend(_drain(reader)) or read.count(b'"after-') == 5)
    found = uids_of(bytes(read))
    assert found == [uid for uid in uids if uid in set(found)], "in order, none twice"
    assert found[-5:] == uids[-5:]
    assert len(uids) - len(found) == program.metric("audit_write_failures_total") > lost
    assert os.get_blocking(writer), "other processes share the pipe and its flags"
    errors = [row for row in program.log().splitlines() if "ERROR" in row]  # one, in a minute
    assert 0 < len(errors) < lost
    assert all("audit log standard output: the reader does not keep up" in row for row in errors)


def test_a_full_pipe_for_both_logs_does_not_block_admissions(start: Start, pipe: tuple[int, int]):
    reader, writer = pipe
    full = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
    program = start(stdout=writer, stderr=writer)
    with contextlib.suppress(BlockingIOError):
        while os.write(full, b"\n"):
            pass
    with program.connect() as connection:
        send_reviews(connection, 5, "both")
    read = bytearray()
    until(lambda: read.extend(_drain(reader)) or read.count(b'"both-') == 5)
    os.close(full)
