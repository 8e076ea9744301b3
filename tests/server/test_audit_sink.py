"""Audit lines go to a file or a pipe; a full disk or a reader that stops does not delay admissions."""

import contextlib
import fcntl
import json
import os
import subprocess
from pathlib import Path

from tests.server.client import Connection
from tests.server.conftest import Start
from tests.server.program import until
from tests.server.reviews import admission_response, review

PIPE_BYTES = 64 << 10


def send_reviews(connection: Connection, count: int, name: str) -> list[str]:
    """Send some reviews; returns their uids."""
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
    assert program.log().count("audit log /dev/full: No space left on device") == 1
    assert "admissions go on" in program.log()
    written = new.read_bytes()
    assert [json.loads(line)["uid"] for line in written.splitlines()] == uids
    assert program.close() == written
    assert old.read_bytes() == b'{"uid":"before"}\n' + written
    assert new.stat().st_mode & 0o007 == 0, "other users must not read who uses which GPU"


def _drain(reader: int) -> bytes:
    os.set_blocking(reader, False)
    read = bytearray()
    try:
        while data := os.read(reader, PIPE_BYTES):
            read += data
    except BlockingIOError:
        pass
    return bytes(read)


def test_a_reader_that_stops_does_not_block_admissions(start: Start):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    try:
        program = start(stdout=writer)
        with program.connect() as connection:
            uids = send_reviews(connection, 300, "stuck")
            lost = until(lambda: program.metric("audit_write_failures_total"))
            uids += send_reviews(connection, 20, "more")
            program.record()
            read = _drain(reader)
            uids += send_reviews(connection, 5, "after")
            program.record()
            read += _drain(reader)
        assert read.endswith(b"\n"), "only whole lines"
        found = [json.loads(line)["uid"] for line in read.decode().splitlines()]
        assert found == [uid for uid in uids if uid in set(found)], "in order, none twice"
        assert found[-5:] == uids[-5:]
        assert len(uids) - len(found) == program.metric("audit_write_failures_total") == lost + 20
        assert os.get_blocking(writer), "other processes share the pipe and its flags"
        assert program.log().count("ERROR") == 1
        assert "audit log standard output: the reader does not keep up" in program.log()
    finally:
        os.close(reader)
        os.close(writer)


def test_a_full_pipe_for_both_logs_does_not_block_admissions(start: Start):
    reader, writer = os.pipe()
    full = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        program = start(stdout=writer, stderr=writer)
        with contextlib.suppress(BlockingIOError):
            while os.write(full, b"\n"):
                pass
        with program.connect() as connection:
            send_reviews(connection, 5, "both")
        assert program.metric("audit_write_failures_total") == 5
    finally:
        for descriptor in (reader, writer, full):
            os.close(descriptor)


def test_a_file_is_opened_again_and_bounded_without_losing_a_line(start: Start, tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    program = start("--audit-log", str(file), "--audit-max-bytes", "128Ki")
    with program.connect() as connection:
        uids = send_reviews(connection, 150, "first")
        program.record()
        file.rename(tmp_path / "elsewhere.jsonl")  # as logrotate does
        uids += send_reviews(connection, 250, "second")
        program.record()
    files = list(tmp_path.iterdir())
    assert sorted(one.name for one in files) == ["audit.jsonl", "audit.jsonl.1", "elsewhere.jsonl"]
    found = [json.loads(line)["uid"] for one in files for line in one.read_text().splitlines()]
    assert sorted(found) == sorted(uids)
    assert all(one.stat().st_size <= 128 << 10 for one in files)
    assert program.metric("audit_write_failures_total") == 0
