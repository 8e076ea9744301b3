"""The rules about queues against Volcano's scheduler: seeded random pods and Volcano Jobs in flat and nested queues.

An object that a rule reports is created without the webhook, and is not bound within ten scheduling cycles. All other
objects are bound.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import NAMESPACE, NOW, Volcano, bound, clear, manifest, place, report, starts, vcjob
from tests.reviewing import request
from tests.server.program import until
from webhook import names
from webhook.review.endpoints import review
from webhook.rules.context import Collections
from webhook.snapshot import Snapshot
from webhook.volcano.queues import Queues, read_queue

PODS = int(os.environ.get("PROOF_QUEUE_PODS", "40"))
JOBS = int(os.environ.get("PROOF_QUEUE_JOBS", "20"))
FLEET = "mixed"
PATH = f"/apis/{names.QUEUE_API}/queues"
NUMBER, MEMORY, CORES = names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES

FLAT = scheduler.CONF
NESTED = scheduler.CONF.replace("name: proportion", "{name: capacity, enableHierarchy: true}")
QUEUES: dict[str, list[dict[str, Any]]] = {
    "flat": [
        {"name": "team-a", "capability": {NUMBER: 4, MEMORY: 40000}},
        {"name": "team-b", "capability": {NUMBER: 6, CORES: 50}},
        {"name": "cpu-listed", "capability": {"cpu": 64}},
        {"name": "no-vgpu", "capability": {NUMBER: 0}},
        {"name": "archive", "state": "Closed"},
    ],
    "nested": [
        {"name": "research", "capability": {NUMBER: 4, MEMORY: 50000}},
        {"name": "vision", "parent": "research", "capability": {NUMBER: 6}},
        {"name": "speech", "parent": "research", "capability": {MEMORY: 20000}},
        {"name": "open"},
        {"name": "archive", "state": "Closed"},
    ],
}


@pytest.fixture(scope="module", params=["flat", "nested"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def started(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Volcano]]:
    conf = FLAT if kind == "flat" else NESTED
    with scheduler.on_fleet(FLEET, tmp_path_factory, conf) as (cluster, volcano), cluster.api() as api:
        for raw in map(queue_of, QUEUES[kind]):
            cluster.apply({key: value for key, value in raw.items() if key != "status"})
        until(lambda: all(map(is_open, api.get(PATH).body["items"])))  # the controller opens a new queue
        for raw in map(queue_of, QUEUES[kind]):
            patched = api.merge(f"{PATH}/{raw['metadata']['name']}/status", {"status": raw["status"]})
            assert patched.status == 200, patched.message
        volcano.restart_and_wait(api)  # a running scheduler may read of a pod before it reads of its queue
        yield api, volcano


def is_open(queue: dict[str, Any]) -> bool:
    return bool(queue.get("status", {}).get("state") == "Open")


@pytest.fixture
def volcano(started: tuple[Api, Volcano]) -> Volcano:
    return started[1]


@pytest.fixture
def admin(started: tuple[Api, Volcano]) -> Iterator[Api]:
    clear(started[0], NAMESPACE)
    yield started[0]
    clear(started[0], NAMESPACE)


@pytest.fixture
def snapshot(kind: str, started: tuple[Api, Volcano]) -> Snapshot:
    listed = started[0].get(PATH).body["items"]
    queues = [queue for raw in listed if (queue := read_queue(raw)) is not None]
    inputs = scheduler.inputs(FLEET, FLAT if kind == "flat" else NESTED)
    return replace(inputs, collections=Collections(Queues(queues))).snapshot()


def queue_of(fields: dict[str, Any]) -> dict[str, Any]:
    spec = {"weight": 1, "reclaimable": True, **fields}
    name, state = spec.pop("name"), spec.pop("state", "Open")
    spec["capability"] = {key: str(value) for key, value in spec.get("capability", {}).items()}
    metadata = {"name": name}
    return {
        "apiVersion": names.QUEUE_API,
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
        "status": {"state": state},
    }


def amounts(rng: random.Random) -> dict[str, int]:
    found = {NUMBER: rng.choice([1, 1, 2, 4, 5])}
    memory, cores = rng.choice([None, 1000, 10000, 24576, 40001]), rng.choice([None, None, 30, 60])
    return found | ({MEMORY: memory} if memory else {}) | ({CORES: cores} if cores else {})


def random_queue(rng: random.Random, kind: str) -> str:
    return rng.choice(["default", "gone", *[queue["name"] for queue in QUEUES[kind]]])


def random_pod(rng: random.Random, kind: str, number: int) -> dict[str, Any]:
    return manifest(f"pod-{number}", [amounts(rng)], {names.QUEUE_NAME: random_queue(rng, kind)})


def random_job(rng: random.Random, kind: str, number: int) -> dict[str, Any]:
    replicas = rng.randint(1, 4)
    limits, queue = [amounts(rng)], random_queue(rng, kind)
    return vcjob(f"job-{number}", [(replicas, limits)], rng.randint(1, replicas), queue)


def reported(raw: dict[str, Any], snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """The rules about queues that report an object, and the other rules that do, without hints; the object is repaired."""
    outcome = review(request(raw), snapshot)
    specs = [raw, *(task["template"] for task in raw["spec"].get("tasks", ()))][-len(outcome.pods) :]
    for each, pod in zip(specs, outcome.pods, strict=True):
        each["spec"] = pod.pod.view.raw["spec"]
    found = {violation.rule for violation in outcome.violations} - {"several-device-containers"}
    about_queues = {rule for rule in found if rule.startswith("queue-")}
    return about_queues, found - about_queues


def compare(
    volcano: Volcano, admin: Api, reports: set[str], start: Callable[[float], bool], counts: Counter[str]
) -> bool:
    """Whether an object starts if and only if no rule reports it; a reported object gets only ten cycles."""
    if reports:
        found = start(scheduler.NEVER)
        clear(admin, NAMESPACE)
        counts[f"{', '.join(sorted(reports))}: {'STARTED' if found else 'never started'}"] += 1
        return not found
    result = volcano.start_with_retry(admin, start)
    counts[f"admitted: {result}"] += 1
    return result != scheduler.NOT_STARTED


@pytest.mark.parametrize("of", ["pods", "jobs"])
def test_objects_start_unless_a_rule_reports_them(of: str, admin: Api, snapshot: Snapshot, kind: str, volcano: Volcano):
    rng = random.Random(f"jobs {scheduler.SEED} {kind}" if of == "jobs" else f"{scheduler.SEED} {kind}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    while counts.total() < (JOBS if of == "jobs" else PODS):
        raw = (random_job if of == "jobs" else random_pod)(rng, kind, counts.total())
        rules, others = reported(raw, snapshot)
        if others:
            continue

        def start(seconds: float, raw: dict[str, Any] = raw) -> bool:
            if of == "jobs":
                return starts(admin, NAMESPACE, raw, seconds)
            return place(admin, NAMESPACE, [raw], seconds) != [None]

        differences += [] if compare(volcano, admin, rules, start, counts) else [raw]
    report("queues", f"{of}, {kind}", counts, differences)


@pytest.mark.parametrize("kind", ["nested"], indirect=True, scope="module")
def test_one_pod_in_a_parent_queue_stops_all_queues(admin: Api, snapshot: Snapshot):
    small = [{NUMBER: 1, MEMORY: 1000}]
    blocker = manifest("stopper", small, {names.QUEUE_NAME: "root"})
    assert reported(blocker, snapshot) == ({"queue-not-leaf"}, set())
    path = f"/apis/{names.QUEUE_API}/namespaces/{NAMESPACE}/podgroups"

    def groups() -> dict[str, str]:
        """The queues of the PodGroups."""
        return {group["metadata"]["name"]: group["spec"]["queue"] for group in admin.get(path).body["items"]}

    assert place(admin, NAMESPACE, [blocker], 0) == [None]
    until(lambda: "root" in groups().values())  # the scheduler reads PodGroups in their order
    assert place(admin, NAMESPACE, [manifest("other", small, {names.QUEUE_NAME: "open"})], scheduler.NEVER) == [None]
    assert bound(admin, NAMESPACE) == {}
    admin.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/stopper", NOW)
    for name in [name for name, queue in groups().items() if queue != "open"]:
        admin.send("DELETE", f"{path}/{name}", NOW)
    assert set(until(lambda: bound(admin, NAMESPACE))) == {"other"}
