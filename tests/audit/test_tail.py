"""Following an audit log from now on, or from its first line on; what happens to its files stands in test_journal."""

import gzip
from pathlib import Path

import pytest

from tests.audit.test_reader import line
from webhook.audit.reader import Skipped
from webhook.audit.tail import LogTail, parse_position, spell_position


def look(tail: LogTail) -> list[str]:
    """The uids of what came."""
    return [decision.uid for batch in tail.look() for _, decision in batch]


def test_following_from_now_continues_after_rotation_and_truncation(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(line("before"))
    tail = LogTail(str(log), 0)
    assert look(tail) == []
    with log.open("ab") as file:
        file.write(line("a") + line("b")[:50])
        file.flush()
        assert look(tail) == ["a"]
        file.write(line("b")[50:] + b"foreign\n")
        file.flush()
        assert look(tail) == ["b"]
        log.rename(tmp_path / "log.1")
        assert look(tail) == []
        file.write(line("c"))
    log.write_bytes(line("d") + line("e"))
    assert look(tail) == ["c", "d", "e"]
    log.write_bytes(b"")
    assert look(tail) == []
    log.write_bytes(line("f"))
    assert look(tail) == ["f"]
    assert tail.skipped == Skipped(foreign=1)
    tail.close()


@pytest.mark.parametrize("rotated", ["", ".1", ".1.gz"])
def test_a_log_that_is_not_there_yet_is_read_from_its_beginning(tmp_path: Path, rotated: str):
    log = tmp_path / "log"
    if rotated:
        before = line("before")
        Path(f"{log}{rotated}").write_bytes(gzip.compress(before) if rotated.endswith("gz") else before)
    tail = LogTail(str(log), 0)
    assert look(tail) == []
    assert (tail.missing, "is not there yet" in str(tail.problem)) == (True, True)
    log.write_bytes(line("a"))
    assert look(tail) == ["a"]
    assert (tail.missing, tail.problem) == (False, None)
    tail.close()


def test_all_of_it_begins_with_what_was_rotated_away(tmp_path: Path):
    log = tmp_path / "log"
    (tmp_path / "log.2.gz").write_bytes(gzip.compress(line("a")))
    (tmp_path / "log.1").write_bytes(line("b"))
    log.write_bytes(line("c"))
    tail = LogTail(str(log))
    assert look(tail) == ["a", "b", "c"]
    with log.open("ab") as file:
        file.write(line("d"))
    assert look(tail) == ["d"]
    tail.close()


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_each_decision_comes_once_wherever_reading_is_resumed(tmp_path: Path, at_once: int):
    log = tmp_path / "log"
    log.write_bytes(line("a"))
    tail = LogTail(str(log))
    found = look(tail)
    with log.open("ab") as file:
        file.write(line("b"))
    for number, kept in enumerate(["c", "d", "e"]):
        log.rename(tmp_path / f"log.{3 - number}")
        log.write_bytes(line(kept))
    position = tail.position
    while found[-1] != "e":
        tail.close()
        tail, end = LogTail(str(log), start=parse_position(spell_position(position))), len(found) + at_once
        for batch in tail.look():
            position = tail.position
            found += [decision.uid for _, decision in batch]
            if len(found) >= end:
                break
    tail.close()
    assert found == ["a", "b", "c", "d", "e"]
