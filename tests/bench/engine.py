"""The engine alone: the time of one review on one core, from bytes to bytes, including audit line and metrics."""

import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

from tests.bench import fleets
from tests.reviewing import DATA
from tests.reviewing import snapshot as snapshot_of
from webhook.audit.writer import AuditLogWriter
from webhook.server.admission import Admission
from webhook.server.gunicorn import settle_memory
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.snapshot import Snapshot

REVIEW = (DATA / "reviews" / "gpu-pod1.json").read_bytes()
OTHERS = (
    "plain-pod",
    "number-and-percentage",
    "two-containers",
    "cores-over-100",
    "vcjob-vgpu-training",
    "gpu-memory-pod",
    "gpu-number-pod",
    "ascend-inference",
    "vcjob-ascend-training",
)
CALLS = 2000
ROUNDS = 7


def report() -> None:
    """Print the engine's part of the table, measured on one core."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    _report()
    if cores:
        os.sched_setaffinity(0, cores)  # the servers of other parts would inherit the one core


def _report() -> None:
    snapshots = {"5 nodes, 4 shapes (mixed.yaml)": snapshot_of("mixed")}
    for size in (5_000, 50_000):
        snapshots[f"{size:,} nodes, 20 shapes"] = snapshot_of(raw=(fleets.node(number, 20) for number in range(size)))
    settle_memory()
    print("engine, bytes in to bytes out, audit line and metrics included (µs, median; aim: at most 60)")
    print(f"  {'fleet':<34}{'mutate':>9}{'validate':>10}{'ratio to 5 nodes (aim: 0.90 to 1.10)':>39}")
    figures = _in_turn({name: _endpoints(snapshot) for name, snapshot in snapshots.items()})
    base = next(iter(figures.values()))
    for name, (mutate, validate) in figures.items():
        ratios = f"{mutate / base[0]:.2f}  {validate / base[1]:.2f}"
        print(f"  {name:<34}{mutate:>9.1f}{validate:>10.1f}{ratios:>39}")
    print("\nengine, the same pod with a nodeSelector and node affinity (µs, median)")
    for name, snapshot in snapshots.items():
        mutate, validate = (_median(answer, SELECTIVE) for answer in _endpoints(snapshot))
        print(f"  {name:<34}{mutate:>9.1f}{validate:>10.1f}")
    print("\nengine, a Volcano Job of 50 tasks that must start together (µs, median; aim: at most 2000)")
    for name, snapshot in snapshots.items():
        print(f"  {name:<34}{'':>9}{_median(_endpoints(snapshot)[1], GANG, calls=100):>10.1f}")
    print("\nengine, other reviews against every-family.yaml (µs, median)")
    endpoints = _endpoints(snapshot_of("every-family"))
    for path in OTHERS:
        body = (DATA / "reviews" / f"{path}.json").read_bytes()
        mutate, validate = (_median(answer, body) for answer in endpoints)
        print(f"  {path:<34}{mutate:>9.1f}{validate:>10.1f}")
    print()


def _selective() -> bytes:
    """The review of a pod that selects a zone and two instance types."""
    review = json.loads(REVIEW)
    kinds = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["gpu.1", "gpu.2"]}
    terms = [{"matchExpressions": [kinds, {"key": "kubernetes.io/hostname", "operator": "Exists"}]}]
    review["request"]["object"]["spec"] |= {
        "nodeSelector": {"topology.kubernetes.io/zone": "zone-1"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
    }
    return json.dumps(review).encode()


SELECTIVE = _selective()


def _gang() -> bytes:
    review = json.loads((DATA / "reviews" / "vcjob-vgpu-training.json").read_bytes())
    spec = review["request"]["object"]["spec"]
    first = spec["tasks"][0]
    spec.pop("minAvailable", None)
    spec["tasks"] = []
    for number in range(50):
        task = json.loads(json.dumps(first)) | {"name": f"task-{number}", "replicas": 1}
        task.pop("minAvailable", None)
        spec["tasks"].append(task)
    return json.dumps(review).encode()


GANG = _gang()


def _endpoints(snapshot: Snapshot) -> list[Callable[[bytes], object]]:
    metrics = Metrics()
    answer = Admission(ServerState(snapshot), [AuditLogWriter(os.devnull, metrics.audit_failed)], metrics).answer
    return [
        partial(lambda path, body: answer(path, body, client_verified=True), path) for path in ("/mutate", "/validate")
    ]


def _in_turn(engines: dict[str, list[Callable[[bytes], object]]]) -> dict[str, tuple[float, float]]:
    """The median over all rounds of each engine; each round measures every engine once, so that drift affects all equally."""
    rounds: dict[str, list[list[float]]] = {name: [[], []] for name in engines}
    for _ in range(ROUNDS):
        for name, endpoints in engines.items():
            for index, answer in enumerate(endpoints):
                rounds[name][index].append(_median(answer, REVIEW))
    return {name: (statistics.median(times[0]), statistics.median(times[1])) for name, times in rounds.items()}


def _median(answer: Callable[[bytes], object], body: bytes, calls: int = CALLS) -> float:
    times = []
    gc.collect()
    for _ in range(calls):
        started = time.perf_counter_ns()
        answer(body)
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / 1000
