"""Where audit lines go: a file, a pipe, a full disk, a reader who is stuck. Admissions never wait for it."""

import contextlib
import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.server.client import Connection
from tests.server.conftest import Start
from tests.server.program import Program, until
from tests.server.reviews import answer, review

PIPE_BYTES = 64 << 10


def ask(connection: Connection, count: int, name: str) -> list[str]:
    """Have some reviews answered; returns their uids."""
    uids = [f"{name}-{number}" for number in range(count)]
    for uid in uids:
        assert answer(connection.post("/mutate", review(uid)))["uid"] == uid
    return uids


def test_standard_output_is_the_default(start: Start):
    program = start(stdout=subprocess.PIPE)
    with program.connect() as connection:
        uids = ask(connection, 5, "out")
    assert program.process.stdout is not None
    assert [json.loads(program.process.stdout.readline())["uid"] for _ in uids] == uids


def test_a_file_is_appended_to(start: Start, tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    file.write_text('{"uid":"before"}\n')
    fresh = tmp_path / "fresh.jsonl"
    program = start("--audit-log", str(file))
    with program.connect() as connection:
        uids = ask(connection, 3, "file")
    until(lambda: [json.loads(line)["uid"] for line in file.read_text().splitlines()] == ["before", *uids])
    start("--audit-log", str(fresh))
    assert fresh.stat().st_mode & 0o007 == 0, "who uses which GPU is nobody else's business"


def test_a_file_and_standard_output_get_every_line(start: Start, tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    program = start("--audit-log", "-", "--audit-log", str(file), stdout=subprocess.PIPE)
    with program.connect() as connection:
        uids = ask(connection, 3, "both")
    written = file.read_bytes()
    assert [json.loads(line)["uid"] for line in written.splitlines()] == uids
    assert program.close() == written


def test_a_full_disk_keeps_no_line_from_standard_output(start: Start):
    program = start("--audit-log", "/dev/full", "--audit-log", "-", stdout=subprocess.PIPE)
    with program.connect() as connection:
        uids = ask(connection, 3, "full")
    assert program.metric("audit_write_failures_total") == 3
    assert [json.loads(line)["uid"] for line in program.close().splitlines()] == uids


def test_none_is_written_on_request(start: Start):
    program = start("--audit-log", "", stdout=subprocess.PIPE)
    with program.connect() as connection:
        ask(connection, 3, "none")
    assert program.close() == b""


def test_a_full_disk_is_counted_and_logged_once(start: Start):
    program = start("--audit-log", "/dev/full")
    with program.connect() as connection:
        ask(connection, 30, "full")
    assert program.metric("audit_write_failures_total") == 30
    assert program.log().count("audit log /dev/full: No space left on device") == 1
    assert "admissions go on" in program.log()


def _stuck(program: Program, reader: int) -> list[dict[str, Any]]:
    """Fill a pipe, see that admissions go on, then read it: whole lines only, those lost are counted."""
    with program.connect() as connection:
        uids = ask(connection, 300, "stuck")
        lost = until(lambda: program.metric("audit_write_failures_total"))
        uids += ask(connection, 20, "more")
        read = bytearray(_drain(reader))
        uids += ask(connection, 5, "after")
        read += _drain(reader)
    lines = [json.loads(line) for line in read.decode().splitlines()]
    assert read.endswith(b"\n")
    found = [line["uid"] for line in lines]
    assert found == [uid for uid in uids if uid in set(found)], "in order, none twice"
    assert found[-5:] == uids[-5:]
    assert len(uids) - len(found) == program.metric("audit_write_failures_total") == lost + 20
    return lines


def _drain(reader: int) -> bytes:
    os.set_blocking(reader, False)
    read = bytearray()
    try:
        while data := os.read(reader, PIPE_BYTES):
            read += data
    except BlockingIOError:
        pass
    return bytes(read)


def test_a_stuck_reader_blocks_nothing(start: Start):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    try:
        program = start(stdout=writer)
        _stuck(program, reader)
        assert os.get_blocking(writer), "a pipe shared with others keeps its flags"
        assert program.log().count("ERROR") == 1
        assert "audit log standard output: the reader does not keep up" in program.log()
    finally:
        os.close(reader)
        os.close(writer)


def test_not_even_when_the_log_goes_there_too(start: Start):
    reader, writer = os.pipe()
    full = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        program = start(stdout=writer, stderr=writer)
        with contextlib.suppress(BlockingIOError):
            while os.write(full, b"\n"):
                pass
        with program.connect() as connection:
            ask(connection, 5, "both")
        assert program.metric("audit_write_failures_total") == 5
    finally:
        for descriptor in (reader, writer, full):
            os.close(descriptor)


def test_a_named_pipe_is_written_without_waiting(start: Start, tmp_path: Path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        _stuck(start("--audit-log", str(path)), reader)
    finally:
        os.close(reader)


def test_a_reader_who_leaves_ends_nothing(start: Start):
    reader, writer = os.pipe()
    program = start(stdout=writer)
    os.close(writer)
    os.close(reader)
    with program.connect() as connection:
        ask(connection, 5, "gone")
    assert program.metric("audit_write_failures_total") == 5
    assert "audit log standard output: Broken pipe" in program.log()


def test_a_file_is_rotated_by_size_and_none_is_lost(start: Start, tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    program = start("--audit-log", str(file), "--audit-max-bytes", "32Ki", "--audit-keep", "99")
    with program.connect() as connection:
        uids = ask(connection, 150, "first")
        file.rename(tmp_path / "elsewhere.jsonl")  # as logrotate does
        uids += ask(connection, 150, "second")
    files = list(tmp_path.iterdir())
    assert len(files) > 3
    found = [json.loads(line)["uid"] for one in files for line in one.read_text().splitlines()]
    assert sorted(found) == sorted(uids)
    assert all(one.stat().st_size <= 32 << 10 for one in files)
    assert program.metric("audit_write_failures_total") == 0
