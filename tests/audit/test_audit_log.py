"""The audit log is written in whole lines, also to a full disk or a slow reader."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.audit import writer as audit
from webhook.audit.writer import MAX_WAITING, AuditLogWriter, reopened

PAGE = 4096


class Sink:
    """An audit log that writes to a pipe of one page, and the number of lost lines."""

    def __init__(self, path: Path, max_waiting: int = MAX_WAITING) -> None:
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self.reader, fcntl.F_SETPIPE_SZ, PAGE)
        self.lost = 0
        self.log = AuditLogWriter(str(path), self._count, max_waiting=max_waiting)

    def _count(self) -> None:
        self.lost += 1

    def read(self, size: int = 1 << 20) -> bytes:
        return os.read(self.reader, size)

    def close(self) -> None:
        self.log.close()
        os.close(self.reader)


@pytest.fixture
def sink(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sink]:
    made = Sink(tmp_path / "fifo", getattr(request, "param", MAX_WAITING))
    yield made
    made.close()


one_page_waits = pytest.mark.parametrize("sink", [PAGE], indirect=True)


def line(letter: str, length: int) -> bytes:
    return letter.encode() * (length - 1) + b"\n"


def test_what_a_pipe_does_not_take_waits_for_its_reader(sink: Sink):
    lines = line("a", 2 * PAGE + 100) + line("b", 10)
    assert not sink.log.write(lines)
    assert sink.read() == lines[:PAGE]
    assert not sink.log.flush()
    assert sink.read() == lines[PAGE : 2 * PAGE]
    assert sink.log.write(line("c", 10))
    assert sink.read() == lines[2 * PAGE :] + line("c", 10)
    assert sink.lost == 0


STEPS = st.lists(
    st.lists(st.integers(2, PAGE), max_size=8).map(tuple)  # a write of lines with these lengths
    | st.integers(0, 2 * PAGE),  # a flush after so many bytes were read
    max_size=30,
)


@given(STEPS)
@example([(2 * PAGE,), (10,), PAGE, (10,), PAGE])
@example([(PAGE,), *[(100,)] * 50, (10,) * 3, PAGE, (50,)])
def test_no_line_is_torn_or_lost_without_being_counted(steps: list[tuple[int, ...] | int]):
    with TemporaryDirectory() as directory:
        sink = Sink(Path(directory) / "fifo", 2 * PAGE)
        sent, read = [], b""
        for step in steps:
            if isinstance(step, int):
                with suppress(BlockingIOError):
                    read += sink.read(step)
                sink.log.flush()
            elif step:
                lines = [b"%0*d\n" % (length - 1, len(sent) + place) for place, length in enumerate(step)]
                sent += lines
                sink.log.write(b"".join(lines))
            assert len(sink.log._waiting) <= 2 * PAGE
        while not sink.log.flush():
            read += sink.read()
        with suppress(BlockingIOError):
            read += sink.read()
        sink.close()
    found = read.splitlines(keepends=True)
    rest = iter(sent)
    assert all(one in rest for one in found), "whole, in order, none twice"
    assert sink.lost == len(sent) - len(found)


def test_the_end_counts_the_lines_that_still_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    sink = Sink(tmp_path / "fifo")
    sink.log.write(line("a", PAGE) + line("b", PAGE) + line("c", 10))
    sink.close()
    assert sink.lost == 2
    assert "the reader did not make room for the last 2 lines" in caplog.text


def test_lines_are_lost_when_the_reader_is_gone(sink: Sink, caplog: pytest.LogCaptureFixture):
    sink.log.write(line("b", 2 * PAGE) + line("c", 10))  # torn, as its reader goes in the middle
    os.close(sink.reader)
    for _ in range(3):
        assert sink.log.write(line("a", 10)), "nothing waits for a reader that is gone"
    assert sink.lost == 5
    assert "Broken pipe; admissions go on" in caplog.text
    sink.reader = os.open(os.devnull, os.O_RDONLY)


@one_page_waits
def test_lost_lines_are_logged_once_a_minute(
    sink: Sink, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    now = [1000.0]
    monkeypatch.setattr(audit.time, "monotonic", lambda: now[0])
    sink.log.write(line("a", PAGE))
    sink.log.write(line("a", PAGE))
    for seconds in (0, 1, 58, 61, 62):
        now[0] = 1000.0 + seconds
        sink.log.write(line("b", 10))
    assert sink.lost == 5
    assert len(caplog.records) == 2
    assert "the reader does not keep up; admissions go on" in caplog.text


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
