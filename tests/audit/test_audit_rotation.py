"""The audit log is renamed when it is full, or by another program, and no line is lost or torn."""

import fcntl
import multiprocessing
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from webhook.audit import writer as audit
from webhook.audit.writer import AuditLogWriter

MAX = 1000


class Log:
    """An audit log of at most MAX bytes a file, and what was written to it."""

    def __init__(self, path: Path, max_bytes: int = MAX) -> None:
        self.path = path
        self.lost = 0
        self.count = 0
        self.log = AuditLogWriter(str(path), self._failed, max_bytes)

    def _failed(self) -> None:
        self.lost += 1

    def write(self, count: int = 1, length: int = 100) -> None:
        for _ in range(count):
            self.log.write(b"%0*d\n" % (length - 1, self.count))
            self.count += 1

    def numbers(self, *names: str) -> list[int]:
        """The numbers in these files, in order; without names, those in the current file."""
        files = [self.path.with_name(self.path.name + name) for name in names or ("",)]
        return [int(line) for file in files for line in file.read_text().splitlines()]

    def files(self) -> list[str]:
        return sorted(file.name.removeprefix(self.path.name) for file in self.path.parent.iterdir())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "audit.jsonl")
    yield made
    made.log.close()


def test_a_full_file_replaces_the_one_before(log: Log):
    log.write(10)
    assert log.files() == [""], "ten lines fit into one file"
    log.write(1)
    assert (log.numbers(".1"), log.numbers()) == ([*range(10)], [10])
    log.write(34)
    assert log.files() == ["", ".1"]
    assert (log.numbers(".1"), log.numbers()) == ([*range(30, 40)], [*range(40, 45)])
    assert log.lost == 0
    assert all(file.stat().st_size <= MAX for file in log.path.parent.iterdir())


def test_a_line_that_is_longer_than_a_file_is_written_whole(log: Log):
    log.write(2, length=3 * MAX)
    assert (log.numbers(".1"), log.numbers()) == ([0], [1])


def test_a_file_that_was_full_before_is_rotated(tmp_path: Path):
    (tmp_path / "audit.jsonl").write_bytes(b"9" * MAX + b"\n")
    log = Log(tmp_path / "audit.jsonl")
    log.write()
    assert log.files() == ["", ".1"]
    assert log.numbers() == [0]


def test_rotation_can_be_disabled(tmp_path: Path):
    log = Log(tmp_path / "audit.jsonl", max_bytes=0)
    log.write(50)
    assert log.files() == [""]


def test_a_new_file_has_the_mode_of_the_old_one(log: Log):
    log.write()
    assert log.path.stat().st_mode & 0o777 == 0o640
    log.path.chmod(0o600)
    log.write(10)
    assert log.files() == ["", ".1"]
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_after_a_rename_by_another_program_a_new_file_is_written(log: Log):
    log.write(3)
    log.path.rename(log.path.with_name("elsewhere"))
    log.write(2)
    assert [int(line) for line in log.path.with_name("elsewhere").read_text().splitlines()] == [0, 1, 2]
    assert log.numbers() == [3, 4]
    log.path.rename(log.path.with_name("elsewhere"))
    log.path.write_text("0000\n")  # logrotate's `create`
    log.write(1)
    assert log.numbers() == [0, 5]


def test_a_deleted_or_emptied_file_takes_the_next_line(log: Log):
    log.write(3)
    log.path.unlink()
    log.write(1)
    assert log.numbers() == [3]
    os.truncate(log.path, 0)  # logrotate's `copytruncate`
    log.write(1)
    assert log.numbers() == [4]


def test_rotation_follows_a_symbolic_link(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "disk" / "log")
    log = Log(tmp_path / "audit.jsonl")
    log.write(11)
    assert (tmp_path / "audit.jsonl").is_symlink()
    assert sorted(file.name for file in (tmp_path / "disk").iterdir()) == ["log", "log.1"]


def test_a_log_that_cannot_be_renamed_continues_in_the_old_file(
    log: Log, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    now = [1000.0]
    monkeypatch.setattr(audit.time, "monotonic", lambda: now[0])
    blocker = log.path.with_name(log.path.name + ".1")
    blocker.mkdir()
    for seconds in (0, 1, 59, 61):
        now[0] = 1000.0 + seconds
        log.write(12)
    assert log.numbers() == [*range(48)]
    assert log.lost == 0
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "cannot be renamed or opened again: Is a directory; lines go on into the old file"
    ] * 2
    blocker.rmdir()
    log.write(1)
    assert (log.numbers(".1"), log.numbers()) == ([*range(48)], [48])


def test_lines_lost_with_a_deleted_directory_are_counted_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    directory = tmp_path / "logs"
    directory.mkdir()
    log = Log(directory / "audit.jsonl")
    log.write(2)
    log.path.unlink()
    directory.rmdir()
    log.write(2)
    assert log.lost == 2
    assert "No such file or directory; admissions go on, lines are lost" in caplog.text
    directory.mkdir()
    log.write(1)
    assert (log.lost, log.numbers()) == (2, [4])


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The process may write no larger file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_in_part(log: Log) -> None:
    with largest_file(log.path.stat().st_size + 20):
        log.write(1)


def test_a_torn_line_is_finished_before_its_file_is_rotated(log: Log):
    log.write(9)
    write_in_part(log)
    log.write(1)
    assert (log.numbers(".1"), log.numbers()) == ([*range(10)], [10])


def test_the_rest_of_a_torn_line_is_lost_with_its_deleted_file(log: Log):
    log.write(1)
    write_in_part(log)
    log.path.unlink()
    log.write(1)
    assert (log.lost, log.numbers()) == (1, [2])


def test_a_partial_line_of_a_dead_process_stays_on_its_own_line(tmp_path: Path):
    (tmp_path / "audit.jsonl").write_text('{"whole":1}\n{"torn')
    log = Log(tmp_path / "audit.jsonl")
    log.write(2, length=3)
    assert log.path.read_text() == '{"whole":1}\n{"torn\n00\n01\n'


def test_a_partly_written_line_is_finished_when_there_is_space_again(log: Log, caplog: pytest.LogCaptureFixture):
    """The file size limit of the process tears one line and loses the next ones."""
    with largest_file(250):
        log.write(6)
        assert log.lost == 3, "the third is kept in part"
        assert "File too large; admissions go on, lines are lost" in caplog.text
    log.write(8)
    assert log.numbers(".1", "") == [0, 1, 2, *range(6, 14)]


def _fill(path: Path, writer: int) -> None:
    log = AuditLogWriter(str(path), lambda: os._exit(1), 150_000)
    for number in range(1000):
        log.write(b"%d %0100d\n" % (writer, number))
    log.close()


def test_several_processes_rename_one_file_once(tmp_path: Path):
    path = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        writers = [context.Process(target=_fill, args=(path, writer)) for writer in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        # Who opens the file while half a line of the other is visible ends that line, too: readers skip empty lines.
        read = b"\n".join(file.read_bytes() for file in tmp_path.iterdir())
        lines = [line.split() for line in read.splitlines() if line]
        assert len(list(tmp_path.iterdir())) == 2, "the second rename would have replaced the full file"
        assert sorted(lines) == sorted(
            [b"%d" % name, b"%0100d" % number] for name in range(2) for number in range(1000)
        )
        for file in tmp_path.iterdir():
            file.unlink()


def test_a_writer_does_not_wait_for_a_rotation_by_another_process(log: Log):
    log.write(10)
    with log.path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        log.write(3)
        assert log.files() == [""]
    log.write(1)
    assert (log.numbers(".1"), log.numbers()) == ([*range(13)], [13])
