"""The store with a million decisions: filling it, the first page and summary of every filter, and following a log."""

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
    "refused": Filter(refused=True),
    "an outcome": Filter(outcome=("repaired",)),
    "a rare outcome": Filter(outcome=("warned",)),
    "a rule": Filter(rule=("card-count",)),
    "a namespace": Filter(namespace=("team-17",)),
    "a retired namespace": Filter(namespace=("retired",)),
    "a user": Filter(user=("user-123",)),
    "no such user": Filter(user=("unknown",)),
    "an endpoint": Filter(endpoint="validate"),
    "dry runs": Filter(dry_run=True),
    "a name": Filter(name=("job-4711-0",)),
    "a prefix of names": Filter(name=("job-47*",)),
    "a part of names": Filter(name=("*-4711*",)),
    "every name": Filter(name=("*-*",)),
    "no such name": Filter(name=("*nothing*",)),
    "an id": Filter(id="0000000f4240"),
    "several": Filter(refused=True, namespace=("team-1*",), name=("*-1*",), since=_END - timedelta(days=3)),
}


def report(directory: Path, count: int = COUNT) -> None:
    store = DecisionStore(Retention(count, 4 << 30))
    print(f"decisions: {count:,} of {DAYS} days in the store (aims: page 300 ms, sums 1,500 ms, 2,000 lines a second)")
    started = time.perf_counter()
    for batch in batched(generate(count)):
        store.add([(line, decision) for line in batch if (decision := parse_decision(line)) is not None])
    took = time.perf_counter() - started
    print(f"  made, read and stored {count / took:,.0f} a second; {store.size() / 2**20:,.0f} MiB")
    print(f"  {'':<24}{'first page, ms':>16}{'sums, cold, ms':>16}{'decisions':>12}")
    worst_page = worst_sums = 0.0
    for name, filter_ in FILTERS.items():
        page = _milliseconds(lambda filter_=filter_: store.page(filter_))
        sums = _milliseconds(lambda filter_=filter_: store.summary(filter_))
        print(f"  {name:<24}{page:>16.1f}{sums:>16.1f}{store.summary(filter_).decisions:>12,}")
        worst_page, worst_sums = max(worst_page, page), max(worst_sums, sums)
    print(f"  {'the slowest':<24}{worst_page:>16.1f}{worst_sums:>16.1f}")
    store.close()
    _follow(directory / "audit.jsonl")
    print()


def batched(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def generate(count: int, seed: int = 1) -> Iterator[bytes]:
    """Audit lines without line breaks, ordered by time: two for each pod, and each pod of a random workload."""
    rng = random.Random(seed)
    bodies = [_body(line) for line in sample.lines()]
    step = timedelta(days=DAYS) / count
    for number in range(count):
        if number % 2 == 0:
            pair = 2 * rng.randrange(len(bodies) // 2)
            team = min(int(rng.expovariate(8 / NAMESPACES)), NAMESPACES - 1)
            namespace = "retired" if number < count // 50 and team == 5 else f"team-{team}"
            user = f"user-{(team * 7 + rng.randrange(5)) % USERS}"
            workload = rng.randrange(WORKLOADS)
            name = f"job-{workload}-{rng.randrange(8)}" if workload % 2 else f"web-{workload:x}-"
            dry_run = b"true" if rng.random() < 0.01 else b"false"
        body = bodies[pair + number % 2]
        timestamp = (_BEGIN + number * step).isoformat().replace("+00:00", "Z")
        yield (
            b'{"time":"%s","id":"%012x","uid":"%032x","user":"%s","namespace":"%s","name":"%s","dryRun":%s,%s'
            % (timestamp.encode(), number, number, user.encode(), namespace.encode(), name.encode(), dry_run, body)
        )


def _body(line: bytes) -> bytes:
    record = orjson.loads(line)
    for key in ("time", "id", "uid", "user", "namespace", "name", "dryRun"):
        del record[key]
    return orjson.dumps(record)[1:]


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def _follow(path: Path, seconds: int = 5) -> None:
    """Follow a log that grows by RATE lines a second; print the delay of its lines and the CPU usage."""
    lines = [line + b"\n" for line in generate(RATE * seconds)]
    path.write_bytes(b"")
    follower = LogFollower(str(path))
    follower.start()
    delays: list[float] = []
    cpu_seconds = time.process_time()
    with path.open("ab", buffering=0) as file:
        started = time.perf_counter()
        for second in range(10 * seconds):
            part = lines[second * RATE // 10 : (second + 1) * RATE // 10]
            file.write(b"".join(part))
            time.sleep(max(0.0, started + (second + 1) / 10 - time.perf_counter()))
            delays.append(((second + 1) * RATE // 10 - follower.store.extent().count) / RATE)
    cpu_seconds = time.process_time() - cpu_seconds
    time.sleep(0.6)
    found = follower.store.extent().count
    follower.stop()
    print(
        f"  followed {RATE:,} lines a second: at most {max(delays):.2f} s behind, {cpu_seconds / seconds:.0%} of a core, "
        f"{found:,} of {len(lines):,} found"
    )
    assert found == len(lines)
