"""The log in memory holds each line once, whatever happens to the files, and gives correct results for queries."""

import gzip
import lzma
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.audit import sample
from tests.examples import examples
from tests.server.program import until
from webhook.audit import database
from webhook.audit.decision import Decision, parse_decision, spell_time
from webhook.audit.filters import Filter
from webhook.audit.follower import LogFollower
from webhook.audit.reader import GIVE_UP, MAX_LINE, Batch, Skipped
from webhook.audit.store import DecisionPage, Extent, Retention
from webhook.audit.summary import MINUTE, Summary
from webhook.audit.tail import LogTail
from webhook.audit.writer import AuditLogWriter
from webhook.errors import RequestError

SAMPLE = [orjson.loads(each) for each in sample.lines()]
AT_ONCE = float("-inf")  # a renamed file is read to its end, whatever the clocks of the file system and the test show
BEGIN = datetime.fromisoformat(SAMPLE[0]["time"])


def line(number: int, **changed: Any) -> bytes:
    """A line with its number as id, a second after the one before; its content is one of the sixteen samples."""
    at = spell_time(BEGIN + timedelta(seconds=number))
    return orjson.dumps({**SAMPLE[number % len(SAMPLE)], "id": f"{number}", "time": at, **changed}) + b"\n"


def lines(*numbers: int) -> bytes:
    return b"".join(map(line, numbers))


def read(text: bytes) -> Decision:
    found = parse_decision(text)
    assert found is not None
    return found


def ids(follower: LogFollower) -> list[int]:
    page, extent = follower.store.page(limit=1_000_000), follower.store.extent()
    assert [entry.number for entry in page.entries] == list(range(extent.last, extent.first - 1, -1))
    return decision_ids(page)[::-1]


def decision_ids(page: DecisionPage) -> list[int]:
    return [int(entry.decision.id) for entry in page.entries]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def follower(log: Path, request: pytest.FixtureRequest) -> Iterator[LogFollower]:
    made = LogFollower(str(log), getattr(request, "param", None), AT_ONCE)
    yield made
    made.stop()


# --- whatever happens to the files ------------------------------------------------------------------------------------

JUNK = (b"\n", b"I1120 started\n", b"{}\n", b"\x00\xff\x1f\x8b\n", b'{"time":\n')


def rename_files(log: Path, move: Callable[..., object] = Path.rename) -> None:
    """Rename the files of a log to the next number, as logrotate does; the newest one may be copied."""
    for number in range(50, 0, -1):
        for suffix in ("", ".gz"):
            if Path(kept := f"{log}.{number}{suffix}").exists():
                Path(kept).rename(f"{log}.{number + 1}{suffix}")
    move(log, f"{log}.1")


class World:
    """A log with its writer and its rotation, and the lines that must be found in it."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.follower: Any = LogFollower(str(self.log), linger=AT_ONCE)
        self.expected: list[int] = []
        self.unread: list[int] = []  # lines of the current file that were not read yet
        self._next = 0
        self._rest: tuple[int, bytes, Any] | None = None  # of a line whose beginning is written, and its file

    def finish(self, _: int = 0) -> None:
        if self._rest is not None:
            number, rest, file = self._rest
            with file:
                file.write(rest)
                stays = self.log.exists() and self.log.samefile(f"/proc/self/fd/{file.fileno()}")
            self.expected.append(number)
            self.unread += [number] if stays else []
            self._rest = None

    def write(self, count: int) -> None:
        self.finish()
        with self.log.open("ab") as file:
            for _ in range(count):
                file.write(line(self._next))
                self._wrote(self._next)
                self._next += 1

    def write_in_part(self, cut: int) -> None:
        self.finish()
        text = line(self._next)
        file = self.log.open("ab", buffering=0)
        file.write(text[: cut * 50])
        self._rest = self._next, text[cut * 50 :], file
        self._next += 1

    def rotate(self, count: int) -> None:
        self.look()  # lines that end in a renamed file are found if it was being followed
        for _ in range(1 + count % 2):
            if self.log.exists():
                rename_files(self.log)
                self.unread = []
            if count % 3:
                self.finish()
                self.write(count % 3)

    def compress(self, _: int) -> None:
        self.finish()
        newest = Path(f"{self.log}.1")
        if newest.exists():
            Path(f"{newest}.gz").write_bytes(gzip.compress(newest.read_bytes(), 1))
            newest.unlink()

    def truncate(self, count: int) -> None:
        """Empty the file, for an odd `count` once it is copied, as logrotate does."""
        self.finish()
        if self.log.exists():
            if count % 2:
                rename_files(self.log, shutil.copy)
                if count % 3:
                    self.look()
                self.unread = []
            os.truncate(self.log, 0)
            for number in self.unread:
                self.expected.remove(number)
            self.unread = []

    def delete(self, _: int) -> None:
        self.finish()
        self.look()
        self.log.unlink(missing_ok=True)

    def edit(self, count: int) -> None:
        """Put a copy in its place that has one more line, for an odd `count` without its last one."""
        self.finish()
        self.look()
        if self.log.exists():
            whole, other = self.log.read_bytes(), self.log.with_name("other")
            other.write_bytes(b"edited\n" + (whole[: whole.rfind(b"\n", 0, -1) + 1] if count % 2 else whole))
            other.rename(self.log)

    def junk(self, kind: int) -> None:
        self.finish()
        with self.log.open("ab") as file:
            file.write(JUNK[kind % len(JUNK)])

    def look(self, _: int = 0) -> None:
        self.follower.look()
        assert self.follower.problem is None or not self.expected, "a renamed or deleted file has a successor soon"
        self.unread = []

    def _wrote(self, number: int) -> None:
        self.expected.append(number)
        self.unread.append(number)


STEPS = (
    World.write,
    World.write_in_part,
    World.rotate,
    World.compress,
    World.truncate,
    World.delete,
    World.edit,
    World.junk,
    World.look,
)


@examples(50)
@example([(World.write, 2), (World.truncate, 1)])  # a copy beside the file is not read twice
@example([(World.write, 2), (World.delete, 0)])
@example([(World.write, 2), (World.edit, 0), (World.write, 1), (World.edit, 1)])
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 6)), max_size=30))
def test_every_line_is_found_exactly_once(steps: list[tuple[Callable[[World, int], None], int]]):
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for step, number in steps:
                step(world, number)
            world.write(1)  # after a rotation, the follower waits for the next file
            world.look()
            assert ids(world.follower) == world.expected
            for number, decision in world.follower.store.page(limit=1000).entries:
                assert world.follower.store.decision(number) == decision == read(line(int(decision.id)))
        finally:
            world.follower.stop()


def write_and_rename(audit: AuditLogWriter, log: Path, numbers: range) -> None:
    for number in numbers:
        audit.write(line(number))
        if number % 50 == 0:
            rename_files(log)


def test_a_log_that_the_webhook_writes_is_followed_while_others_query_it(log: Path, follower: LogFollower):
    written = 1500
    audit = AuditLogWriter(str(log), pytest.fail)
    write_and_rename(audit, log, range(500))
    follower.start()
    wrong: list[Any] = []
    done = threading.Event()

    def query() -> None:
        seen = 0
        while not done.is_set():
            page = follower.store.page(limit=5000)
            numbers = decision_ids(page)
            summed = follower.store.summary()
            found = follower.store.decision(max(page.newest, 1))
            if numbers != list(range(len(numbers) - 1, -1, -1)) or not seen <= len(numbers) <= summed.decisions:
                wrong.append(numbers)
            if numbers and (found is None or int(found.id) != numbers[0]):
                wrong.append(found)
            seen = len(numbers)
            time.sleep(0.02)

    threads = [threading.Thread(target=query, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    write_and_rename(audit, log, range(500, written))
    audit.close()
    try:
        until(lambda: follower.store.extent().count == written)
    finally:
        done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert ids(follower) == list(range(written))
    assert (follower.problem, follower.complaints, follower.skipped, follower.progress) == (None, (), Skipped(), 1.0)


def test_a_last_line_without_a_line_break_is_read_once_its_file_is_rotated(log: Path, follower: LogFollower):
    Path(f"{log}.2").write_bytes(lines(0).rstrip())
    Path(f"{log}.1").write_bytes(lines(1) + lines(2)[:50])
    log.write_bytes(lines(3) + lines(4).rstrip())
    follower.look()
    assert ids(follower) == [0, 1, 3]
    assert follower.skipped == Skipped(truncated=1)
    log.rename(f"{log}-20261120")
    log.write_bytes(b"")
    follower.look()
    assert ids(follower) == [0, 1, 3, 4]


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_a_file_that_does_not_exist_yet_is_a_problem_until_it_does(log: Path, follower: LogFollower):
    follower.look()
    assert follower.problem.startswith(f"{log} is not there yet")
    assert follower.store.extent() == Extent(0, 0, None, None)
    assert follower.store.extent().count == 0
    assert follower.store.page() == ((), None, None, 0, 0)
    assert follower.store.summary() == Summary.every(MINUTE)
    assert list(follower.store.decisions()) == []
    Path(f"{log}.1").write_bytes(lines(0))
    follower.look()
    log.write_bytes(lines(1))
    follower.look()
    assert (follower.problem, follower.complaints, ids(follower)) == (None, (), [0, 1])


@pytest.mark.parametrize(
    "spoil, message",
    [
        (Path.mkdir, "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links; it is tried again"),
        (lambda path: (path.write_bytes(b"") and None) or path.chmod(0), "add the user to the group"),
    ],
    ids=["directory", "pipe", "loop", "forbidden"],
)
def test_an_unreadable_file_is_a_problem_until_it_can_be_read(
    log: Path, follower: LogFollower, spoil: Any, message: str, request: Any
):
    if "forbidden" in request.node.name and os.getuid() == 0:
        pytest.skip("root can read every file")
    log.write_bytes(lines(0))
    follower.look()
    log.rename(f"{log}.1")
    spoil(log)
    for _ in range(2):
        follower.look()
        assert message in follower.problem
    log.rmdir() if log.is_dir() else log.unlink()
    log.write_bytes(lines(1))
    follower.look()
    assert (follower.problem, ids(follower)) == (None, [0, 1])


def test_damaged_archives_and_binary_lines_are_skipped(log: Path, follower: LogFollower):
    Path(f"{log}.1").write_bytes(b"\x28\xb5\x2f\xfd rest")
    Path(f"{log}.2.gz").write_bytes(gzip.compress(lines(*range(40)))[:-9])
    Path(f"{log}.3.xz").write_bytes(lzma.compress(b"x" * 2 * GIVE_UP, preset=0))
    log.write_bytes(os.urandom(1 << 20) + b"\n" + lines(40) + bytes(3 * MAX_LINE) + b"\n" + lines(41))
    follower.look()
    assert ids(follower)[-2:] == [40, 41]
    assert [text.partition(": ")[0].rpartition(".")[2] for text in follower.complaints] == ["xz", "gz", "1"]
    assert follower.skipped.too_long >= 1
    assert follower.skipped.foreign > 100
    assert follower.problem is None


def test_a_file_without_any_decision_is_skipped(log: Path, follower: LogFollower):
    log.write_bytes(b"x" * 1000 + b"\n")
    os.truncate(log, 1 << 40)  # a sparse file of one terabyte
    follower.look()
    assert (follower.store.extent().count, follower.caught_up, follower.problem) == (0, True, None)
    assert follower.complaints == (f"{log}: no audit line in 16 MiB, so the rest is not read",)
    with log.open("ab") as file:
        file.write(b"\n" + lines(0))
    follower.look()
    assert ids(follower) == [0]
    os.truncate(log, 0)
    log.write_bytes(lines(1))
    follower.look()
    assert ids(follower) == [0, 1]


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("follower", [Retention(bytes=2 << 20)], indirect=True)
def test_memory_is_bounded_for_any_lines(log: Path, follower: LogFollower):
    finding = {"rule": "r", "level": "deny", "path": "p"}
    with log.open("wb") as file:
        for number in range(100):
            file.write(line(number, findings=[{**finding, "message": os.urandom(75_000).hex()}]))
        for number in range(100, 130):
            file.write(line(number, user=os.urandom(25_000).hex()))
    follower.look()
    held = ids(follower)
    assert 5 < len(held) < 50
    assert held[-1] == 129
    last = follower.store.extent().last
    assert follower.store.decision(last) == read(log.read_bytes().splitlines()[-1])
    assert follower.store.size() <= 2 << 20


@pytest.mark.parametrize("follower", [Retention(bytes=3 << 20)], indirect=True)
def test_of_a_huge_log_only_the_latest_lines_are_read(log: Path, follower: LogFollower):
    Path(f"{log}.2").write_bytes(b"never read\n")
    Path(f"{log}.1").write_bytes(b"never read\n" * 100 + lines(*range(4000)))
    log.write_bytes(lines(*range(4000, 4500)))
    follower.look()
    assert ids(follower)[-1] == 4499
    assert len(ids(follower)) > 900
    assert follower.store.extent().last < 4000
    assert follower.skipped == Skipped()
    rename_files(log)
    log.write_bytes(lines(4500))
    follower.look()
    assert ids(follower)[-2:] == [4499, 4500]


def test_the_progress_of_reading_increases(log: Path, follower: LogFollower):
    log.write_bytes(lines(*range(2000)))
    Path(f"{log}.1.gz").write_bytes(gzip.compress(lines(*range(2000, 4000))))
    assert (follower.progress, follower.caught_up) == (0.0, False)
    tail = LogTail(str(log), linger=AT_ONCE)
    shares = [tail.share for _ in tail.look()]
    tail.close()
    assert shares == sorted(shares)
    assert 0 < shares[len(shares) // 2] < 1
    assert shares[-1] > 0.9


def test_reading_can_be_stopped(log: Path, follower: LogFollower, monkeypatch: pytest.MonkeyPatch):
    log.write_bytes(lines(*range(20_000)))
    add = follower.store.add

    def add_and_wait(batch: Batch) -> None:
        add(batch)
        until(lambda: follower._worker.stopped)

    monkeypatch.setattr(follower.store, "add", add_and_wait)
    follower.start()
    until(lambda: follower.store.extent().count)
    follower.stop()
    assert follower.store.extent().count < 20_000
    assert not follower.caught_up
    assert ids(follower) == list(range(follower.store.extent().count))


# --- queries ----------------------------------------------------------------------------------------------------------

FILTERS = [Filter(), Filter(refused=True), Filter(rule=("card-*",), namespace=("team-v*",))]


@pytest.fixture
def filled(log: Path, follower: LogFollower) -> LogFollower:
    log.write_bytes(lines(*range(1000)))
    follower.look()
    return follower


def test_a_summary_is_kept_until_decisions_are_added(log: Path, filled: LogFollower):
    """tests/audit/test_store.py shows that it is right."""
    firsts = [filled.store.summary(wanted) for wanted in FILTERS]
    before = deepcopy(firsts)
    assert all(filled.store.summary(wanted) is first for wanted, first in zip(FILTERS, firsts, strict=True))
    with log.open("ab") as file:
        file.write(lines(*range(1000, 1234)))
    filled.look()
    decisions = [read(line(number)) for number in range(1234)]
    for wanted in FILTERS:
        assert filled.store.summary(wanted).decisions == sum(map(wanted.admits, decisions))
    assert firsts == before, "another thread may still be reading it"


def test_globs_that_take_too_long_are_an_error(log: Path, follower: LogFollower, monkeypatch: pytest.MonkeyPatch):
    log.write_bytes(b"".join([line(number, name="a" * 240 + str(number)) for number in range(1000)]))
    follower.look()
    slow = Filter(name=tuple(["*" + "a" * 120 + f"z{number}" for number in range(20)]))
    for query in (follower.store.page, follower.store.summary, lambda wanted: list(follower.store.decisions(wanted))):
        with monkeypatch.context() as limits:
            limits.setattr(database, "MAX_SECONDS", 0.05)
            with pytest.raises(RequestError, match="shorter"):
                query(slow)
        query(Filter(name=("*z",)))
    assert follower.store.summary().decisions == 1000
