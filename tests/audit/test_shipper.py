"""Shipping a log to a database: each decision once, whatever happens to files, programs and database."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import orjson
import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import fork_server
from tests.audit.test_follower import AT_ONCE, World, line, rename_files
from tests.audit.test_follower import STEPS as FOLLOWED
from tests.examples import examples
from tests.postgres import BINARIES, PASSWORD, Postgres
from tests.questions import needs
from tests.server.client import SECONDS
from tests.server.program import free_port, until
from webhook.audit.database import Database
from webhook.audit.decision import spell_time
from webhook.audit.shipper import INTERVALS, Intervals, Shipper
from webhook.audit.store import DecisionStore, Retention
from webhook.audit.writer import AuditLogWriter
from webhook.cli.options import STORE_VARIABLE

KEEP = Retention(decisions=10_000_000, bytes=10 << 30)
LONGEST = SECONDS + INTERVALS.longest_pause  # after the database failed several times


class ShippedWorld(World):
    """A log that is shipped; every look is that of a new shipper."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.follower.stop()
        self.follower.store.close()
        self.follower = self
        self.url = f"sqlite:///{folder}/decisions.db"

    def look(self, _: int = 0) -> None:
        database = Database.at(self.url)
        stop = threading.Event()
        stop.set()  # once it has stored what is there
        assert Shipper(str(self.log), "here", database, KEEP, Intervals(linger=AT_ONCE)).run(stop)
        database.close()
        self.unread = []


def stored(url: str) -> list[int]:
    """The ids of all decisions that a database has, in the order of their numbers."""
    database = Database.at(url)
    store = DecisionStore(KEEP, database)
    found = [int(decision.id) for decision in store.decisions()]
    assert store.summary().decisions == store.extent().count == len(found)
    database.close()
    return found


STEPS = (*FOLLOWED[:-1], ShippedWorld.look)
WRITE, PART, ROTATE, COMPRESS, TRUNCATE = STEPS[:5]
LOOK = ShippedWorld.look


@examples(30)
@example([(WRITE, 2), (PART, 2), (LOOK, 0)])  # the last line ends later
@example([(WRITE, 2), (PART, 2), (ROTATE, 0), (LOOK, 0), (WRITE, 1)])  # in a renamed file
@example([(WRITE, 2), (LOOK, 0), (ROTATE, 1), (COMPRESS, 0)])
@example([(WRITE, 2), (ROTATE, 0), (WRITE, 2), (LOOK, 0), (TRUNCATE, 0), (LOOK, 0)])  # what was read last is gone
@example([(PART, 0), (ROTATE, 0), (COMPRESS, 0)])  # the next file may get the inode of the deleted one
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 6)), max_size=20))
def test_a_shipper_that_starts_again_loses_nothing_and_repeats_nothing(
    steps: list[tuple[Callable[[ShippedWorld, int], None], int]],
):
    with tempfile.TemporaryDirectory() as folder:
        world = ShippedWorld(Path(folder))
        for step, number in steps:
            step(world, number)
        world.write(1)
        world.look()
        assert stored(world.url) == world.expected


@needs("decisions")
def test_its_metrics_show_how_far_it_is_behind(tmp_path: Path):
    log, port, url = tmp_path / "audit.jsonl", free_port(), f"sqlite:///{tmp_path}/none/decisions.db"
    log.write_bytes(b"".join(line(number) for number in range(5)))
    output = tmp_path / "shipper.txt"
    program = Killed("decisions", "ship", "--metrics-bind", f"127.0.0.1:{port}", str(log), url=url, output=output)

    def shown(name: str) -> float:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            return -1.0
        return next(float(row.split()[1]) for row in text.splitlines() if row.startswith(f"vgpu_webhook_{name} "))

    until(lambda: shown("ship_failures_total") > 1)
    until(lambda: shown("ship_lag_seconds") > 1)
    until(lambda: shown("ship_decisions_total") == 0)
    (tmp_path / "none").mkdir()
    until(lambda: shown("ship_decisions_total") == 5, LONGEST)
    until(lambda: 0 <= shown("ship_lag_seconds") < 2)
    assert program.end() == 0


class Waits(threading.Event):
    """Records how long a shipper waits, waits for nothing, and lets things happen at some of the waits."""

    def __init__(self, at: dict[int, Callable[[], object]]) -> None:
        super().__init__()
        self._at = at
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self._at.get(len(self.seconds), lambda: None)()
        if len(self.seconds) > max(self._at):
            self.set()
        return True


@pytest.mark.parametrize("damage", ["all", "pages"])
def test_a_corrupt_database_is_tried_ever_more_rarely_and_reported_once(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", Shipper.__module__)
    log, path = tmp_path / "audit.jsonl", tmp_path / "decisions.db"
    log.write_bytes(line(0))
    good = Database.at(f"sqlite:///{path}")
    good.make_tables()
    good.close()
    content = path.read_bytes()
    path.write_bytes(b"x" * len(content) if damage == "all" else content[:4096] + b"x" * (len(content) - 4096))

    def write() -> None:
        with log.open("ab") as file:
            file.write(line(1))

    stop = Waits({3: write, 9: lambda: path.write_bytes(content), 10: lambda: None})
    database = Database.at(f"sqlite:///{path}")
    assert Shipper(str(log), "here", database, KEEP).run(stop)
    database.close()
    assert stop.seconds[:9] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    assert stored(f"sqlite:///{path}") == [0, 1]
    warned, shipping = caplog.messages
    assert "; the log is kept, and shipped when this is over" in warned
    assert shipping.startswith(f"shipping {log} as here to ")


CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.mark.parametrize("table", ["sources", "decisions"])
def test_a_query_that_is_cancelled_is_tried_again(table: str, postgres: Postgres, tmp_path: Path):
    """By an administrator, or by a `statement_timeout`, also while it waits for another program."""
    url, log, stop = postgres.make("cancelled"), tmp_path / "audit.jsonl", threading.Event()
    log.write_bytes(line(0))
    database = Database.at(url)
    database.make_tables()
    shipping = Shipper(str(log), "here", database, KEEP, Intervals(poll=0.02))
    thread = threading.Thread(target=shipping.run, args=[stop], daemon=True)
    with psycopg.connect(url) as holds, psycopg.connect(url, autocommit=True) as cancels:
        holds.execute(f"LOCK TABLE {table}".encode())
        thread.start()
        until(lambda: cancels.execute(CANCEL).fetchall())
        until(lambda: shipping.failures)
    until(lambda: shipping.stored)
    stop.set()
    thread.join()
    database.close()
    assert stored(url) == [0]


# --- a full disk ------------------------------------------------------------------------------------------------------

FULL_DISK = """
import atexit, logging, re, sys, tempfile, threading
from pathlib import Path
from tests.audit.test_shipper import KEEP, line, stored
from tests.audit.test_store import file_of
from tests.postgres import BINARIES, start_postgres
from tests.server.program import until
from webhook.audit.database import Database
from webhook.audit.follower import LogFollower
from webhook.audit.shipper import Intervals, Shipper
from webhook.audit.store import Retention
disk, log = Path(sys.argv[1]), Path(sys.argv[2])
logging.basicConfig(filename=log.with_suffix(".txt"))
messages, url, full = log.with_suffix(".txt"), f"sqlite:///{disk}/decisions.db", "database or disk is full"
server = start_postgres() if sys.argv[3] == "postgres" else None
if server:
    atexit.register(server.close)
    (disk / "tablespace").mkdir()
    server.execute(f"CREATE TABLESPACE small LOCATION '{disk}/tablespace'")
    server.execute("CREATE DATABASE decisions TABLESPACE small")
    url, full = server.url("decisions"), "(No space left on device|could not write init file)"
written = 0
def write(count):
    global written
    with log.open("ab") as file:
        file.writelines(line(number) for number in range(written, written + count))
    written += count
def fill():
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
stop, often = threading.Event(), Intervals(poll=0.02, longest_pause=0.2)
shipping = Shipper(str(log), "here", Database.at(url), KEEP, often)
thread = threading.Thread(target=shipping.run, args=[stop], daemon=True)
tempfile.tempdir = str(disk)
follower = LogFollower(str(log), Retention(bytes=16 << 20))  # so that it grows each time
assert file_of(follower.store), "it is in memory"
write(50)
fill()
thread.start()
follower.start()
for _ in range(2):
    write(1000)
    advice = "database or disk is full). Make room where temporary files go"
    until(lambda: write(20) or (shipping.failures and advice in (follower.problem or "")))  # files may have room inside
    until(lambda: re.search(f"{full}.*; the log is kept, and shipped when this is over", messages.read_text()))
    (disk / "ballast").unlink()
    until(lambda: shipping.stored == written == follower.store.extent().last and follower.problem is None)
    messages.write_text("")
    shipping.failures = 0
    fill()
(disk / "ballast").unlink()
stop.set()
thread.join()
follower.stop()
assert stored(url) == list(range(written)), "each once"
print("ok")
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_full_disk_loses_nothing_and_is_no_end(kind: str, tmp_path: Path):
    """The database that is shipped to, and the console's own, on a disk that is full at first and again later."""
    disk, log = tmp_path / "disk", tmp_path / "audit.jsonl"
    disk.mkdir()
    script = tmp_path / "script.py"
    script.write_text(FULL_DISK)
    run_script = f"{sys.executable} {script} {disk} {log} {kind}"
    if kind == "postgres":  # which refuses to run as root, as whom one may mount
        if not BINARIES:
            pytest.skip("needs PostgreSQL")
        run_script = f"unshare -U --map-user=postgres --map-group=postgres {run_script}"
    mounted = f"mount -t tmpfs -o size=48m none {disk} && exec {run_script}"
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mounted],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode and "Traceback" not in run.stderr:
        pytest.skip(f"no disk of one's own here: {run.stderr}")
    assert run.stdout == "ok\n", run.stderr


# --- what is kept while decisions arrive ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, keep",
    [("sqlite", Retention(10**9, 300 << 10)), ("postgres", Retention(10**9, 1 << 30, timedelta(hours=1)))],
    ids=["sqlite, by size", "postgres, by age"],
)
def test_the_oldest_are_deleted_while_others_arrive(
    kind: str, keep: Retention, request: pytest.FixtureRequest, tmp_path: Path
):
    url = request.getfixturevalue("postgres").make("kept") if kind == "postgres" else f"sqlite:///{tmp_path}/d.db"
    log, stop, count = tmp_path / "audit.jsonl", threading.Event(), 2000
    log.touch()
    database = Database.at(url)
    shipping = Shipper(str(log), "here", database, keep, Intervals(poll=0.01, forget=0.0))
    thread = threading.Thread(target=shipping.run, args=[stop], daemon=True)
    thread.start()
    begin = datetime.now(UTC) - timedelta(hours=3)
    with log.open("ab", buffering=0) as file:
        for number in range(count):  # of the last three hours
            at = begin + timedelta(hours=3) * number / count
            file.write(line(number, time=spell_time(at)))
            time.sleep(0.0005)
    store = DecisionStore(keep, database)
    until(lambda: shipping.stored == count and store.extent().first > 1)
    stop.set()
    thread.join()
    while store.forget():
        pass
    extent = store.extent()
    assert (shipping.stored, shipping.failures, extent.last) == (count, 0, count)
    assert 1 < extent.first < count - 64
    if keep.age is None:
        assert store.size() <= keep.bytes
    else:
        assert count // 4 < extent.count <= count // 3 + 1
    assert [int(each.id) for each in store.decisions()] == list(range(extent.first - 1, count))
    assert store.summary().decisions == extent.count
    database.close()


# --- kill -9 ----------------------------------------------------------------------------------------------------------


class Killed:
    """A program that is killed and started again, as a container is."""

    def __init__(self, *argv: str, url: str, output: Path) -> None:
        self._argv = [sys.executable, "-m", "webhook", *argv]
        self._environment = {**os.environ, STORE_VARIABLE: url}
        self.output = output
        self.start()

    def start(self) -> None:
        with self.output.open("ab") as output:
            self.process = fork_server.Popen(
                self._argv, env=self._environment, stdout=output, stderr=output, start_new_session=True
            )

    def kill(self) -> None:
        """Kill all its processes: a worker that outlives the console's master keeps the port for a while."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        until(self._is_gone)

    def _is_gone(self) -> bool:
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def restart(self) -> None:
        self.kill()
        self.start()

    def end(self) -> int:
        """Ask it to end; returns its exit code."""
        self.process.terminate()
        return self.process.wait()


class Replica(threading.Thread):
    """Writes an audit log as the webhook does, about a hundred lines a second."""

    def __init__(self, path: Path, numbers: range) -> None:
        super().__init__(daemon=True)
        self._path, self._audit = path, AuditLogWriter(str(path), pytest.fail)
        self._numbers, self.written = numbers, 0

    def run(self) -> None:
        for number in self._numbers:
            self._audit.write(line(number))
            self.written += 1
            if self.written % 200 == 100:
                rename_files(self._path)
            time.sleep(0.01)
        self._audit.close()


def newest(port: int) -> int | None:
    """The number of the newest decision that the console shows; None if it does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/decisions?limit=1") as answer:
            return orjson.loads(answer.read())["newest"]
    except OSError:
        return None


@pytest.mark.parametrize("count", [500, pytest.param(12_000, marks=pytest.mark.slow)])
@needs("decisions")
def test_each_decision_is_stored_once_though_everything_is_killed(count: int, postgres: Postgres, tmp_path: Path):
    """Two replicas write decisions; shipper, database and console are killed in turn."""
    url, port = postgres.make("killed"), free_port()
    logs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    replicas = [Replica(path, range(at * count, (at + 1) * count)) for at, path in enumerate(logs)]
    shippers = [Killed("decisions", "ship", str(path), url=url, output=path.with_suffix(".txt")) for path in logs]
    console = Killed("console", "--bind", f"127.0.0.1:{port}", url=url, output=tmp_path / "console.txt")
    for replica in replicas:
        replica.start()
    chance = random.Random(count)
    kills = [[shippers[0].restart], [shippers[1].restart], [console.restart], [postgres.kill, postgres.start]]
    chance.shuffle(kills)
    for kill in cycle(kills):
        wanted = replicas[0].written + chance.randint(20, 150)
        until(lambda wanted=wanted: replicas[0].written >= min(wanted, count))
        if replicas[0].written == count:
            break
        for step in kill:
            step()
    for replica in replicas:
        replica.join()
    console.restart()
    until(lambda: newest(port) == 2 * count, LONGEST)
    assert [shipper.end() for shipper in shippers] == [0, 0]
    console.end()
    assert sorted(stored(url)) == list(range(2 * count))
    for program in (*shippers, console):
        text = program.output.read_text()
        assert "Traceback" not in text
        assert PASSWORD not in text
        assert quote(PASSWORD, safe="") not in text


def waits_for(port: int) -> bool:
    """Whether a server that listens on a port has bytes to read."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and int(row[4].split(":")[1], 16) for row in rows)


@pytest.mark.slow
@needs("decisions")
def test_a_database_that_never_answers_does_not_hold_up_the_end(postgres: Postgres, tmp_path: Path):
    """Its kernel still confirms what it receives, so that no connection breaks."""
    url, log = postgres.make("stopped"), tmp_path / "a.jsonl"
    log.write_bytes(line(0))
    program = Killed("decisions", "ship", str(log), url=url, output=tmp_path / "ship.txt")
    until(lambda: "shipping" in program.output.read_text())
    with postgres.frozen():
        with log.open("ab") as file:
            file.write(line(1))
        until(lambda: waits_for(postgres.port))
        assert program.end() == 1
    assert "the database does not answer" in program.output.read_text()
    again = Killed("decisions", "ship", str(log), url=url, output=tmp_path / "again.txt")
    until(lambda: "shipping" in again.output.read_text())
    assert again.end() == 0
    assert stored(url) == [0, 1]
