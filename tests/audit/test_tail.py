"""Following an audit log from its end or from its first line; test_follower tests changes of its files."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.audit.test_reader import line
from tests.clock import Clock
from webhook.audit import tail as tail_module
from webhook.audit.reader import CHUNK, START, Cursor, Skipped
from webhook.audit.tail import LogTail


def new_uids(tail: LogTail) -> list[str]:
    return [decision.uid for batch in tail.look() for _, decision in batch]


def tail_of(log: Path, cursor: Cursor = START, latest: int | None = None) -> LogTail:
    """A tail that reads a renamed file to its end, whatever the clocks of the file system and the test show."""
    return LogTail(str(log), cursor, latest, linger=float("-inf"))


def test_following_from_now_leaves_out_what_is_there(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(line("before"))
    tail = tail_of(log, latest=0)
    assert new_uids(tail) == []
    (tmp_path / "copy").write_bytes(b"edited\n" + log.read_bytes())
    (tmp_path / "copy").rename(log)
    assert new_uids(tail) == [], "nor is it new in a copy"
    with log.open("ab") as file:
        file.write(line("a") + b"foreign\n")
    assert new_uids(tail) == ["a"]
    log.write_bytes(line("b"))
    assert new_uids(tail) == ["b"], "the file was emptied"
    assert tail.skipped == Skipped(foreign=1)
    tail.close()


@pytest.mark.parametrize("back", [0, 3600])
def test_a_renamed_file_ends_some_time_after_its_last_line_whatever_the_clock_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: int
):
    wall, steady = Clock(time.time()), Clock()
    monkeypatch.setattr(tail_module, "time", SimpleNamespace(time=wall, monotonic=steady))
    log = tmp_path / "log"
    log.write_bytes(line("a"))
    tail = LogTail(str(log))
    assert new_uids(tail) == ["a"]
    with log.open("ab") as old:
        log.rename(tmp_path / "log.1")
        log.write_bytes(line("c"))
        wall.now -= back
        assert new_uids(tail) == []
        steady.now += 0.9
        old.write(line("b"))  # by a process that has the old file open
        old.flush()
    assert new_uids(tail) == ["b"]
    if back:
        steady.now += 1
    else:
        wall.now += 3600
    assert new_uids(tail) == ["c"]
    tail.close()


@pytest.mark.parametrize("rotated", ["", ".1"])
def test_a_log_that_does_not_exist_yet_is_read_from_its_beginning(tmp_path: Path, rotated: str):
    log = tmp_path / "log"
    if rotated:
        Path(f"{log}{rotated}").write_bytes(line("before"))
    tail = tail_of(log, latest=0)
    assert new_uids(tail) == []
    assert (tail.missing, "is not there yet" in str(tail.problem)) == (not rotated, not rotated)
    log.write_bytes(line("a"))
    assert new_uids(tail) == ["a"]
    assert (tail.missing, tail.problem) == (False, None)
    tail.close()


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_each_decision_is_read_once_wherever_reading_resumes(tmp_path: Path, at_once: int):
    log = tmp_path / "log"
    log.write_bytes(line("a"))
    tail = tail_of(log)
    found = new_uids(tail)
    with log.open("ab") as file:
        file.write(line("b"))
    for number, kept in enumerate(["c", "d", "e"]):
        log.rename(tmp_path / f"log.{3 - number}")
        log.write_bytes(line(kept))
    position = tail.cursor
    while found[-1] != "e":
        tail.close()
        tail, end = tail_of(log, Cursor.parse(position.spell())), len(found) + at_once
        for batch in tail.look():
            position = tail.cursor
            found += [decision.uid for _, decision in batch]
            if len(found) >= end:
                break
    tail.close()
    assert found == ["a", "b", "c", "d", "e"]


def test_a_copy_is_read_on_where_the_last_decision_was_made(tmp_path: Path):
    """Also if reading ends in the middle of what was read before."""
    log = tmp_path / "log"
    texts = [line(f"{number}") for number in range(3 * CHUNK // len(line("0")))]
    log.write_bytes(b"".join(texts[:-1]))
    tail = tail_of(log)
    new_uids(tail)
    (tmp_path / "copy").write_bytes(b"edited\n" + b"".join(texts))
    (tmp_path / "copy").rename(log)
    tail.close()
    interrupted = tail_of(log, tail.cursor)
    assert next(interrupted.look()) == []
    interrupted.close()
    tail = tail_of(log, interrupted.cursor)
    assert new_uids(tail) == [f"{len(texts) - 1}"]
    assert (tail.cursor.inode[1], tail.cursor.offset) == (log.stat().st_ino, log.stat().st_size)
    assert not tail.complaints
    tail.close()


def test_decisions_that_may_be_missing_are_a_complaint(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(line("a"))
    tail = tail_of(log)
    assert new_uids(tail) == ["a"]
    tail.close()
    log.write_bytes(line("b"))
    tail = tail_of(log, tail.cursor)
    assert new_uids(tail) == ["b"]
    assert list(tail.complaints) == [
        f"what was read last of {log} is no longer there: decisions may be missing after it"
    ]
    tail.close()
