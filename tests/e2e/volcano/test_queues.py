"""The rules about queues against Volcano's own scheduler: seeded random pods and Volcano Jobs in flat and nested queues.

What a rule reports is created all the same, and not bound within ten scheduling cycles; everything else is bound.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.audit.recording import CONFIG, request
from tests.e2e.api import Api
from tests.e2e.objects import load_nodes
from tests.e2e.volcano.scheduler import (
    CONF,
    CYCLES,
    HOW_TO_GET_THEM,
    NAMESPACE,
    PERIOD,
    assets,
    clear,
    manifest,
    on_fleet,
    place,
    starts,
    version,
    wait_bound,
)
from webhook import names
from webhook.devices.collections import Collections
from webhook.devices.nodes import read_node
from webhook.devices.queues import Queues, read_queue
from webhook.devices.scheduler import parse_scheduler_conf
from webhook.policy.policy import parse_policy
from webhook.review import Snapshot, review
from webhook.settings.snapshot import SnapshotInputs

pytestmark = [pytest.mark.volcano, pytest.mark.skipif(assets() is None, reason=HOW_TO_GET_THEM)]

SEED = int(os.environ.get("PROOF_SEED", "1"))
PODS = int(os.environ.get("PROOF_QUEUE_PODS", "40"))
JOBS = int(os.environ.get("PROOF_QUEUE_JOBS", "20"))
FLEET = "mixed"
NEVER = PERIOD * CYCLES
SOON = 4 * NEVER
JOB_SECONDS = 1.0
NUMBER, MEMORY, CORES = names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES

FLAT = CONF
NESTED = CONF.replace("name: proportion", "{name: capacity, enableHierarchy: true}")
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
def api(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with on_fleet(FLEET, tmp_path_factory, FLAT if kind == "flat" else NESTED) as (cluster, _), cluster.api() as api:
        for raw in map(queue_of, QUEUES[kind]):
            cluster.apply({key: value for key, value in raw.items() if key != "status"})
            path = f"/apis/{names.QUEUE_API}/queues/{raw['metadata']['name']}"
            deadline = time.monotonic() + SOON  # the controller opens a new queue
            while api.get(path).body.get("status", {}).get("state") != "Open" and time.monotonic() < deadline:
                time.sleep(PERIOD)
            patched = api.merge(f"{path}/status", {"status": raw["status"]})
            assert patched.status == 200, patched.message
        yield api


@pytest.fixture
def admin(api: Api) -> Iterator[Api]:
    clear(api, NAMESPACE)
    yield api
    clear(api, NAMESPACE)


@pytest.fixture
def used(kind: str, api: Api) -> Snapshot:
    nodes = [node for raw in load_nodes(FLEET) if (node := read_node(raw, CONFIG)) is not None]
    conf = parse_scheduler_conf(yaml.safe_load(FLAT if kind == "flat" else NESTED), "test")
    listed = api.get(f"/apis/{names.QUEUE_API}/queues").body["items"]
    queues = [queue for raw in listed if (queue := read_queue(raw)) is not None]
    policy = parse_policy({"target": {"volcano": version()}, "workloads": "deny"}, "test")
    return SnapshotInputs(CONFIG, policy, nodes, conf, Collections(Queues(queues))).snapshot()


def queue_of(short: dict[str, Any]) -> dict[str, Any]:
    spec = {"weight": 1, "reclaimable": True, **short}
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


def amounts(chosen: random.Random) -> dict[str, int]:
    found = {NUMBER: chosen.choice([1, 1, 2, 4, 5])}
    memory, cores = chosen.choice([None, 1000, 10000, 24576, 40001]), chosen.choice([None, None, 30, 60])
    return found | ({MEMORY: memory} if memory else {}) | ({CORES: cores} if cores else {})


def random_queue(chosen: random.Random, kind: str) -> str:
    return chosen.choice(["default", "gone", *[queue["name"] for queue in QUEUES[kind]]])


def reported(raw: dict[str, Any], used: Snapshot) -> tuple[set[str], set[str]]:
    """The rules about queues that report an object, and the other rules that do, except for mere hints."""
    outcome = review(request(raw), used)
    found = {violation.rule for violation in outcome.violations} - {"several-device-containers"}
    about_queues = {rule for rule in found if rule.startswith("queue-")}
    return about_queues, found - about_queues


def compare(title: str, counts: Counter[str], differences: list[Any]) -> None:
    print(f"\n{title}, Volcano {version()}, seed {SEED}: {dict(sorted(counts.items()))}")
    for each in differences:
        print(each)
    assert not differences


def test_pods(admin: Api, used: Snapshot, kind: str):
    chosen = random.Random(f"{SEED} {kind}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    while counts.total() < PODS:
        pod = manifest(f"pod-{counts.total()}", [amounts(chosen)], {names.QUEUE_NAME: random_queue(chosen, kind)})
        rules, others = reported(pod, used)
        if others:
            continue
        (found,) = place(admin, NAMESPACE, [pod], NEVER if rules else SOON)
        clear(admin, NAMESPACE)
        counts[f"{', '.join(sorted(rules)) or 'admitted'}: {'bound' if found else 'not bound'}"] += 1
        differences += [pod] if bool(found) == bool(rules) else []
    compare(f"pods in {kind} queues", counts, differences)


def test_jobs(admin: Api, used: Snapshot, kind: str):
    chosen = random.Random(f"jobs {SEED} {kind}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    while counts.total() < JOBS:
        replicas = chosen.randint(1, 4)
        template = {"spec": manifest("x", [amounts(chosen)])["spec"] | {"restartPolicy": "Never"}}
        spec = {
            "schedulerName": "volcano",
            "queue": random_queue(chosen, kind),
            "minAvailable": chosen.randint(1, replicas),
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        }
        metadata = {"name": f"job-{counts.total()}", "namespace": NAMESPACE}
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
        rules, others = reported(job, used)
        if others:
            continue
        found = starts(admin, NAMESPACE, job, (NEVER if rules else SOON) + JOB_SECONDS)
        clear(admin, NAMESPACE)
        counts[f"{', '.join(sorted(rules)) or 'admitted'}: {'started' if found else 'not started'}"] += 1
        differences += [job] if found == bool(rules) else []
    compare(f"jobs in {kind} queues", counts, differences)


def test_one_pod_in_a_parent_queue_stops_all_queues(admin: Api, used: Snapshot, kind: str):
    if kind == "flat":
        pytest.skip("flat queues have no parents")
    least = [{NUMBER: 1, MEMORY: 1000}]
    stopper = manifest("stopper", least, {names.QUEUE_NAME: "root"})
    assert reported(stopper, used) == ({"queue-not-leaf"}, set())
    assert place(admin, NAMESPACE, [stopper, manifest("other", least, {names.QUEUE_NAME: "open"})], NEVER) == [
        None,
        None,
    ]
    gone = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    admin.send("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/stopper", gone)
    groups = f"/apis/{names.QUEUE_API}/namespaces/{NAMESPACE}/podgroups"
    for group in admin.get(groups).body["items"]:
        if group["spec"]["queue"] == "root":
            admin.send("DELETE", f"{groups}/{group['metadata']['name']}", gone)
    assert set(wait_bound(admin, NAMESPACE, 1, SOON)) == {"other"}
