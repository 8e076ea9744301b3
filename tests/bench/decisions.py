"""The store of decisions at a million: filling it, first pages and sums of every filter, and following a log."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import orjson

from tests.audit import sample
from webhook.audit.decision import parse_decision
from webhook.audit.filters import Filter
from webhook.audit.follower import LogFollower
from webhook.audit.store import DecisionStore, Retention

COUNT = 1_000_000
DAYS = 14
NAMESPACES, USERS, WORKLOADS = 300, 500, 60_000
RATE = 2_000  # lines a second
BATCH = 64  # lines; the follower reads about as many at once

_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
_END = _BEGIN + timedelta(days=DAYS)
FILTERS = {
    "no filter": Filter(),
    "the last hour": Filter(since=_END - timedelta(hours=1)),
    "the last day": Filter(since=_END - timedelta(days=1)),
    "until the second day": Filter(until=_BEGIN + timedelta(days=2)),
    "refused": Filter(denied=True),
    "an outcome": Filter(words=("mutated",)),
    "a rare outcome": Filter(words=("warned",)),
    "a rule": Filter(rules=("card-count",)),
    "a namespace": Filter(namespaces=("team-17",)),
    "a namespace of old": Filter(namespaces=("retired",)),
    "a user": Filter(users=("user-123",)),
    "no such user": Filter(users=("nobody",)),
    "an endpoint": Filter(endpoint="validate"),
    "dry runs": Filter(dry_run=True),
    "a name": Filter(names=("job-4711-0",)),
    "a prefix of names": Filter(names=("job-47*",)),
    "a part of names": Filter(names=("*-4711*",)),
    "every name": Filter(names=("*-*",)),
    "no such name": Filter(names=("*nothing*",)),
    "an id": Filter(id="0000000f4240"),
    "several": Filter(denied=True, namespaces=("team-1*",), names=("*-1*",), since=_END - timedelta(days=3)),
}


def report(directory: Path, count: int = COUNT) -> None:
    """Print this part of the table."""
    store = DecisionStore(Retention(count))
    print(
        f"decisions: {count:,} of {DAYS} days in the store (aims: page 100 ms, any filter 150 ms, 2,000 lines a second)"
    )
    started = time.perf_counter()
    for batch in batched(generate(count)):
        store.add([(line, decision) for line in batch if (decision := parse_decision(line)) is not None])
    took = time.perf_counter() - started
    print(f"  made, read and stored {count / took:,.0f} a second; {store.size() / 2**20:,.0f} MiB")
    print(f"  {'':<24}{'first page, ms':>16}{'sums, cold, ms':>16}{'decisions':>12}")
    worst_page = worst_sums = 0.0
    for name, wanted in FILTERS.items():
        page = _milliseconds(lambda wanted=wanted: store.page(wanted))
        sums = _milliseconds(lambda wanted=wanted: store.summary(wanted))
        print(f"  {name:<24}{page:>16.1f}{sums:>16.1f}{store.summary(wanted).decisions:>12,}")
        worst_page, worst_sums = max(worst_page, page), max(worst_sums, sums)
    print(f"  {'the slowest':<24}{worst_page:>16.1f}{worst_sums:>16.1f}")
    store.close()
    _follow(directory / "audit.jsonl")
    print()


def batched(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lines, so many at a time as the follower reads."""
    while batch := list(islice(lines, BATCH)):
        yield batch


def generate(count: int, seed: int = 1) -> Iterator[bytes]:
    """Lines as the webhook writes them, without their line breaks: by time, two of a pod, each of another workload."""
    chance = random.Random(seed)
    bodies = [_body(line) for line in sample.lines()]
    step = timedelta(days=DAYS) / count
    for number in range(count):
        if number % 2 == 0:
            pair = 2 * chance.randrange(len(bodies) // 2)
            team = min(int(chance.expovariate(8 / NAMESPACES)), NAMESPACES - 1)
            namespace = "retired" if number < count // 50 and team == 5 else f"team-{team}"
            user = f"user-{(team * 7 + chance.randrange(5)) % USERS}"
            workload = chance.randrange(WORKLOADS)
            name = f"job-{workload}-{chance.randrange(8)}" if workload % 2 else f"web-{workload:x}-"
            dry_run = b"true" if chance.random() < 0.01 else b"false"
        body = bodies[pair + number % 2]
        at = (_BEGIN + number * step).isoformat().replace("+00:00", "Z")
        yield (
            b'{"time":"%s","id":"%012x","uid":"%032x","user":"%s","namespace":"%s","name":"%s","dryRun":%s,%s'
            % (at.encode(), number, number, user.encode(), namespace.encode(), name.encode(), dry_run, body)
        )


def _body(line: bytes) -> bytes:
    record = orjson.loads(line)
    for key in ("time", "id", "uid", "user", "namespace", "name", "dryRun"):
        del record[key]
    return orjson.dumps(record)[1:]


def _milliseconds(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return (time.perf_counter() - started) * 1000


def _follow(path: Path, seconds: int = 5) -> None:
    """Follow a log that grows by RATE lines a second, and say how late its lines are found, and at which cost."""
    lines = [line + b"\n" for line in generate(RATE * seconds)]
    path.write_bytes(b"")
    journal = LogFollower(str(path))
    journal.start()
    late: list[float] = []
    processor = time.process_time()
    with path.open("ab", buffering=0) as file:
        started = time.perf_counter()
        for second in range(10 * seconds):
            part = lines[second * RATE // 10 : (second + 1) * RATE // 10]
            file.write(b"".join(part))
            time.sleep(max(0.0, started + (second + 1) / 10 - time.perf_counter()))
            late.append(((second + 1) * RATE // 10 - journal.store.extent().count) / RATE)
    processor = time.process_time() - processor
    time.sleep(0.6)
    found = journal.store.extent().count
    journal.stop()
    print(
        f"  followed {RATE:,} lines a second: at most {max(late):.2f} s behind, {processor / seconds:.0%} of a core, "
        f"{found:,} of {len(lines):,} found"
    )
    assert found == len(lines)
