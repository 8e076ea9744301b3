"""The store of decisions: it matches as filters do, sums up as a summary does, and leaves nothing behind."""

import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from tests.audit import sample
from tests.console.audit_lines import console_client
from tests.examples import examples
from tests.postgres import Postgres
from tests.questions import needs
from tests.server.program import until
from webhook.audit.database import ANSWER_SECONDS, CONNECT_SECONDS, READERS, Database
from webhook.audit.decision import Decision, parse_decision
from webhook.audit.filters import Filter
from webhook.audit.follower import DecisionSource
from webhook.audit.postgres import PING_SECONDS, LimitedConnection
from webhook.audit.store import DecisionStore, Retention
from webhook.audit.summary import Summary
from webhook.audit.tables import decisions as decisions_table
from webhook.audit.tables import lines as lines_table
from webhook.errors import ConfigError, StoreError
from webhook.outcome import Violation
from webhook.rules.choices import Level

LINES = list(sample.lines())
SAMPLE = [decision for line in LINES if (decision := parse_decision(line)) is not None]

texts = st.text("abA*?[]!-^é\n", max_size=4)
globs = st.lists(texts.filter(bool), max_size=2).map(tuple)
findings = st.lists(st.builds(Violation, texts, st.sampled_from(Level), st.just(""), st.just("")), max_size=2).map(
    tuple
)
decisions = st.builds(
    lambda number, minutes, changed: replace(
        SAMPLE[number], time=SAMPLE[number].time + timedelta(minutes=minutes), **changed
    ),
    st.integers(0, len(SAMPLE) - 1),
    st.integers(-200, 200),
    st.fixed_dictionaries(
        {
            "namespace": texts,
            "user": texts,
            "name": texts,
            "findings": findings,
            "repairs": st.lists(texts, max_size=2).map(tuple),
            "allowed": st.booleans(),
        }
    ),
)
times = st.none() | st.integers(-200, 200).map(lambda minutes: SAMPLE[0].time + timedelta(minutes=minutes))
filters = st.builds(
    Filter,
    since=times,
    until=times,
    refused=st.booleans(),
    rule=globs,
    namespace=globs,
    user=globs,
    name=globs,
    dry_run=st.sampled_from([None, False, True]),
    endpoint=st.sampled_from([None, "mutate"]),
    outcome=st.sampled_from([(), ("refused",), ("repaired", "warned")]),
)


def lines(found: list[Decision]) -> list[tuple[bytes, Decision]]:
    """Decisions with their lines; only their place in the list is read of these."""
    return [(LINES[number % len(LINES)].rstrip(), decision) for number, decision in enumerate(found)]


def without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1))


def file_of(store: DecisionStore) -> str:
    """The file of an SQLite database; empty if it is in memory."""
    with store.database.reading() as db:
        return str(db.exec_driver_sql("SELECT file FROM pragma_database_list WHERE name = 'main'").scalar_one())


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: Any, monkeypatch: pytest.MonkeyPatch):
    database = None
    if request.param == "postgres":
        database = Database.at(request.getfixturevalue("postgres").make("small"))
        database.make_tables()
    elif request.param == "memory":
        without_room(monkeypatch)
    found = DecisionStore(Retention(640), database)
    if request.param != "postgres":
        assert bool(file_of(found)) is (request.param == "file")
    yield found
    found.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def empty(request: Any):
    if request.param == "sqlite":
        yield DecisionStore
        return
    database = Database.at(request.getfixturevalue("postgres").make("empty"))
    database.make_tables()

    def make() -> DecisionStore:
        with database.writing() as db:
            db.execute(text("TRUNCATE decisions, lines"))
            db.execute(text("UPDATE meta SET last = 0, bytes = 0"))
        return DecisionStore(database=database)

    yield make
    database.close()


@examples(50)
@given(st.lists(decisions, max_size=12), filters | st.just(Filter()), st.integers(1, 4), st.integers(0, 4))
def test_it_matches_and_sums_up_what_the_filter_admits(
    empty: Any, found: list[Decision], wanted: Filter, limit: int, after: int
):
    store = empty()
    try:
        store.add(lines(found))
        numbers = [number for number, decision in enumerate(found, 1) if wanted.admits(decision)]
        assert [each.id for each in store.decisions(wanted)] == [SAMPLE[at - 1].id for at in numbers]
        shown, before = [], None
        while before is None or before > 1:
            page = store.page(wanted, before, limit=limit)
            assert (len(page.entries) <= limit, page.newest, page.left_out) == (True, len(found), 0)
            shown += [each.number for each in page.entries]
            before = page.older or 1
        assert shown == numbers[::-1]
        newer = [number for number in numbers[::-1] if number > after]
        page = store.page(wanted, after=after, limit=limit)
        assert [each.number for each in page.entries] == newer[:limit]
        assert page.left_out == len(newer[limit:])
        summed = store.summary(wanted)
        expected = Summary.every(summed.outcomes.step)
        for number in numbers:
            expected.add(found[number - 1])
        assert summed == expected
    finally:
        store.close()


def test_what_it_forgot_is_in_no_answer(store: DecisionStore):
    for begin in range(0, 1200, 50):
        batch = [
            (
                orjson.dumps({**orjson.loads(LINES[1]), "user": f"u{number}"}),
                replace(
                    SAMPLE[1], user=f"u{number}", name=f"n{number}", time=SAMPLE[1].time + timedelta(seconds=number)
                ),
            )
            for number in range(begin, begin + 50)
        ]
        store.add(batch)
        while store.forget():
            pass
        extent = store.extent()
        times = [SAMPLE[1].time + timedelta(seconds=number - 1) for number in (extent.first, extent.last)]
        assert [extent.oldest, extent.newest] == times
        held = {f"u{number - 1}" for number in range(extent.first, extent.last + 1)}
        assert store.summary().users.keys() == held
        assert store.summary(Filter(refused=True)).decisions == extent.count
    assert 560 < extent.count <= 640
    size = store.size()
    with store.database.reading() as db:
        for table in (decisions_table, lines_table):
            assert db.scalar(select(func.count()).select_from(table)) == extent.count
        assert db.scalar(select(func.sum(decisions_table.c.bytes))) == size
    assert store.page(Filter(user=("u0",))).entries == ()


def test_nothing_of_it_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = DecisionStore(Retention(bytes=1 << 20))
    store.add(lines(SAMPLE * 40))
    assert list(tmp_path.iterdir()) == []
    assert store.summary().decisions == 640
    store.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("young", [0, 3])
def test_old_decisions_are_forgotten(young: int):
    store, now = DecisionStore(Retention(age=timedelta(hours=1))), datetime.now(UTC)
    store.add(lines([replace(SAMPLE[0], time=now - timedelta(days=2))] * 240))
    store.add(lines([replace(SAMPLE[0], time=now)] * young))
    while store.forget():
        pass
    assert store.extent().count == store.summary().decisions == max(young, 1), "the newest always stays"
    assert store.summary(Filter(since=now - timedelta(hours=1))).decisions == young
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///relative.db",
        "sqlite:////tmp/a.db?timeout=abc",
        "sqlite:////tmp/a.db?mode=ro",
        "s3cret",
        "mysql://u:s3cret@host/d",
        "postgresql://u:s3cret@pass@host/d",
        "postgresql://u:s3cret@host:70x/d",
        "postgresql://u:s3cret@host",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(url: str):
    with pytest.raises(ConfigError, match=r"the store is no URL such as .*%40") as raised:
        Database.at(url)
    assert "s3cret" not in str(raised.value)


class CountedConnection(LimitedConnection):
    """Counts how many threads connect at the same time."""

    lock, now, most = threading.Lock(), 0, 0

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Any:
        with cls.lock:
            CountedConnection.now += 1
            CountedConnection.most = max(cls.now, cls.most)
        try:
            return super().connect(*arguments, **options)
        finally:
            with cls.lock:
                CountedConnection.now -= 1


@needs("decisions")
@needs("doctor")
def test_a_frozen_database_is_reported_and_only_one_query_waits_for_it(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
):
    """Its kernel still acknowledges what it receives, so that no connection breaks."""
    assert max(ANSWER_SECONDS, PING_SECONDS + CONNECT_SECONDS) <= 5
    url = postgres.make("frozen")
    database = Database.at(url)
    database.make_tables()
    store = DecisionStore(database=database)
    store.add([(LINES[0], SAMPLE[0])])
    with monkeypatch.context() as limits:
        limits.setattr("webhook.audit.database.ANSWER_SECONDS", 1.0)
        with pytest.raises(StoreError, match="not responded for 1 s"), database.reading() as db, postgres.frozen():
            db.scalar(select(1))
    assert store.extent().count == 1  # and open, for the next
    database.close()
    monkeypatch.setattr("webhook.audit.postgres.LimitedConnection", CountedConnection)
    monkeypatch.setattr("webhook.audit.database.CONNECT_SECONDS", 2)
    database = Database.at(url)
    client = console_client(DecisionSource(DecisionStore(database=database)))
    until(lambda: client.get("/api/v1/decisions").json.get("newest") == 1)

    def get(path: str) -> None:
        answer = client.get(path)
        assert answer.status_code == (200 if path == "/health" else 503)
        assert "timeout expired" in answer.text

    with postgres.frozen(), ThreadPoolExecutor(16) as threads, monkeypatch.context() as limits:
        limits.setattr(LimitedConnection, "answer_seconds", 0.5)
        for most in (READERS, 1):
            CountedConnection.most = 0
            list(threads.map(get, ["/api/v1/decisions", "/decisions", "/health", "/decisions/1"] * 4))
            assert 0 < CountedConnection.most <= most
    until(lambda: client.get("/api/v1/decisions").json.get("newest") == 1)
    database.close()


def test_a_database_that_closed_its_connections_is_used_at_once(postgres: Postgres):
    database = Database.at(postgres.make("restarted"))
    database.make_tables()
    store = DecisionStore(database=database)
    assert store.extent().count == 0
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'restarted'")
    assert store.extent().count == 0
    database.close()
