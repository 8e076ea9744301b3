"""The audit log is written in whole lines, also to a full disk or a slow reader."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from webhook.audit import writer as audit
from webhook.audit.writer import AuditLogWriter, reopened

PAGE = 4096


class Sink:
    """An audit log that writes to a pipe of one page, and the number of lost lines."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self.reader, fcntl.F_SETPIPE_SZ, PAGE)
        self.lost = 0
        self.log = AuditLogWriter(str(path), self._count)

    def _count(self) -> None:
        self.lost += 1

    def read(self, size: int = 1 << 20) -> bytes:
        return os.read(self.reader, size)

    def close(self) -> None:
        self.log.close()
        os.close(self.reader)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    made = Sink(tmp_path / "fifo")
    yield made
    made.close()


def line(letter: str, length: int) -> bytes:
    return letter.encode() * (length - 1) + b"\n"


def test_a_torn_line_is_finished_before_the_next_line(sink: Sink):
    long = line("a", 2 * PAGE + 100)
    sink.log.write(long)
    assert sink.lost == 0, "a part is written, and the rest is kept"
    read = sink.read()
    assert read == long[:PAGE]
    sink.log.write(line("b", 10))
    assert sink.lost == 1, "the rest of the first line takes the place of the second"
    read += sink.read()
    sink.log.write(line("c", 10))
    read += sink.read()
    assert read == long + line("c", 10)


def test_lines_are_lost_as_a_whole(sink: Sink):
    sink.log.write(line("a", PAGE))
    for _ in range(5):
        sink.log.write(line("b", 100))
    assert sink.lost == 5
    assert sink.read() == line("a", PAGE)
    sink.log.write(line("c", 100))
    assert sink.read() == line("c", 100)


def test_lines_are_lost_when_the_reader_is_gone(sink: Sink, caplog: pytest.LogCaptureFixture):
    os.close(sink.reader)
    for _ in range(5):
        sink.log.write(line("a", 10))
    assert sink.lost == 5
    assert "Broken pipe; admissions go on" in caplog.text
    sink.reader = os.open(os.devnull, os.O_RDONLY)


def test_lost_lines_are_logged_once_a_minute(
    sink: Sink, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    now = [1000.0]
    monkeypatch.setattr(audit.time, "monotonic", lambda: now[0])
    sink.log.write(line("a", PAGE))
    for seconds in (0, 1, 58, 61, 62):
        now[0] = 1000.0 + seconds
        sink.log.write(line("b", 10))
    assert sink.lost == 5
    assert len(caplog.records) == 2
    assert "the reader does not keep up; admissions go on" in caplog.text


def test_several_writers_append_to_one_file(tmp_path: Path):
    """During a rollout the old and the new replica may share a file."""
    file = tmp_path / "log"
    logs = [AuditLogWriter(str(file), lambda: pytest.fail("lost")) for _ in range(2)]
    for number in range(10):
        logs[number % 2].write(b"%d\n" % number)
    for log in logs:
        log.close()
    assert file.read_bytes() == b"".join(b"%d\n" % number for number in range(10))


def test_a_path_that_cannot_be_opened_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        AuditLogWriter(str(tmp_path / "none" / "log"), lambda: None)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="No such device"):  # at once, without waiting for a reader
        AuditLogWriter(str(tmp_path / "fifo"), lambda: None)


def test_only_a_pipe_is_reopened(tmp_path: Path):
    reader, writer = os.pipe()
    fresh = reopened(writer)
    assert fresh is not None
    assert not os.get_blocking(fresh)
    assert os.get_blocking(writer)
    os.write(fresh, b"x")
    assert os.read(reader, 10) == b"x"
    for descriptor in (reader, writer, fresh):
        os.close(descriptor)
    with (tmp_path / "file").open("wb") as file:
        assert reopened(file.fileno()) is None
