"""The verdicts of the engine against Volcano's scheduler: seeded random pods and gangs on the nodes of a sample fleet.

A pod that the engine admits is bound on the empty fleet. A pod that the engine refuses because of the nodes is created
without the webhook, and is not bound within ten scheduling cycles. A difference is printed as an object to apply.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import NAMESPACE, Volcano, clear, manifest, place, report, start_job, starts, vcjob
from tests.reviewing import NODES_DECIDE, refusals, request
from tests.server.client import SECONDS
from webhook.outcome import Outcome
from webhook.review.endpoints import review
from webhook.rules.choices import Level
from webhook.snapshot import Snapshot

PODS = int(os.environ.get("PROOF_PODS", "60"))
GANGS = int(os.environ.get("PROOF_GANGS", "24"))
FLEETS = os.environ.get("PROOF_FLEETS", "mixed").split(",")
TIGHT = int(os.environ.get("PROOF_TIGHT", "5"))  # the number of gangs that the scheduler misses

MAY_WAIT = {"fits-tightly", "gang-fits-tightly"}


@pytest.fixture(scope="module", params=FLEETS)
def fleet(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def snapshot(fleet: str) -> Snapshot:
    return scheduler.inputs(fleet).snapshot()


@pytest.fixture(scope="module")
def volcano(fleet: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Volcano]]:
    with scheduler.on_fleet(fleet, tmp_path_factory) as found:
        yield found


@pytest.fixture
def admin(volcano: tuple[Cluster, Volcano]) -> Iterator[Api]:
    with volcano[0].api() as api:
        clear(api, NAMESPACE)
        yield api
        clear(api, NAMESPACE)


def amounts(rng: random.Random, most: int) -> dict[str, int]:
    """Random limits of a container, close to the capacity of the nodes, where verdicts differ."""
    found = {"volcano.sh/vgpu-number": rng.choice([1, 1, 2, 3, 4, 7, 8, 9, rng.randint(1, most)])}
    memory = rng.choice([None, 1000, 4864, 5000, 9856, 10240, 15360, 15361, 20000, 24564, 24565, 40960, 81920, 81921])
    if memory is not None:
        found["volcano.sh/vgpu-memory"] = memory
    if rng.random() < 0.5:
        found["volcano.sh/vgpu-cores"] = rng.choice([0, 20, 30, 50, 60, 100])
    return found


def random_pod(rng: random.Random, name: str) -> dict[str, Any]:
    annotations = {}
    if rng.random() < 0.25:
        annotations["volcano.sh/vgpu-mode"] = rng.choice(["hami-core", "hami-core", "mig", "mps", "HAMi-core"])
    if rng.random() < 0.25:
        annotations["nvidia.com/use-gputype"] = rng.choice(["A100", "T4", "4090", "A100,T4", "H800"])
    containers = [amounts(rng, 10) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return manifest(name, containers, annotations)


def random_job(rng: random.Random, name: str) -> dict[str, Any]:
    tasks = []
    for _ in range(rng.choice([1, 1, 2])):
        limits = amounts(rng, 8)
        tasks.append((rng.randint(1, 6), [limits]))
    replicas = sum(pods for pods, _ in tasks)
    return vcjob(name, tasks, replicas if rng.random() < 0.7 else rng.randint(1, replicas))


def wait_rules(outcome: Outcome) -> set[str]:
    return {violation.rule for violation in outcome.violations} & (MAY_WAIT | {"gang-never-complete"})


def test_pods(admin: Api, snapshot: Snapshot, fleet: str, volcano: tuple[Cluster, Volcano]):
    rng = random.Random(f"{scheduler.SEED} {fleet}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    refused: list[dict[str, Any]] = []
    for number in range(PODS):
        pod = random_pod(rng, f"pod-{number}")
        outcome = review(request(pod), snapshot)
        denied = refusals(outcome)
        if denied & NODES_DECIDE:
            refused.append(pod)
            continue
        if denied:
            counts["refused for another reason"] += 1
            continue
        repaired = dict(outcome.object)
        if wait_rules(outcome):
            found = place(admin, NAMESPACE, [repaired], scheduler.NEVER) != [None]
            clear(admin, NAMESPACE)
            counts["fits tightly, bound" if found else "fits tightly, not bound"] += 1
        else:
            result = volcano[1].start_with_retry(
                admin, lambda seconds, raw=repaired: place(admin, NAMESPACE, [raw], seconds) != [None]
            )
            counts[f"admitted, {result}"] += 1
            differences += [repaired] if result == scheduler.NOT_STARTED else []
    for start in range(0, len(refused), 50):
        batch = refused[start : start + 50]
        for pod, found in zip(batch, place(admin, NAMESPACE, batch, scheduler.NEVER), strict=True):
            counts["refused, BOUND" if found else "refused, never bound"] += 1
            differences += [pod] if found else []
        clear(admin, NAMESPACE)
    report("pods", fleet, counts, differences)


def refused_tasks(outcome: Outcome) -> set[str]:
    """The tasks whose pods are refused, by index: `task0`."""
    denied = [violation.path for violation in outcome.violations if violation.level is Level.DENY]
    return {f"task{found[1]}" for path in denied if (found := re.match(r"spec\.tasks\[(\d+)\]", path))}


def test_gangs(admin: Api, snapshot: Snapshot, fleet: str, volcano: tuple[Cluster, Volcano]):
    rng = random.Random(f"gangs {scheduler.SEED} {fleet}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    for number in range(GANGS):
        job = random_job(rng, f"job-{number}")
        outcome = review(request(job), snapshot)
        for task, each in zip(job["spec"]["tasks"], outcome.pods, strict=True):
            task["template"]["spec"] = each.pod.view.raw[
                "spec"
            ]  # as the webhook repairs the pods when they are created
        denied = refusals(outcome)
        never = denied & NODES_DECIDE
        if denied and not never:
            counts["refused for another reason"] += 1
            continue
        if not never and not wait_rules(outcome):
            several = len(job["spec"]["tasks"]) > 1
            result = volcano[1].start_with_retry(
                admin,
                lambda seconds, job=job: starts(admin, NAMESPACE, job, seconds),
                scheduler.SOON if several else SECONDS,
            )
            if result == scheduler.NOT_STARTED and several:
                result = "several tasks, not started"  # the scheduler may have chosen other nodes
            counts[f"admitted, {result}"] += 1
            differences += [job] if result == scheduler.NOT_STARTED else []
            continue
        pods = start_job(admin, NAMESPACE, job, scheduler.NEVER)
        found = len(pods) >= job["spec"]["minAvailable"]
        reason = "gang-too-large" if "gang-too-large" in never else "a pod"
        if never and reason == "a pod":  # the gang may start without the pods of a task that never run
            bound = {pod["metadata"]["annotations"]["volcano.sh/task-spec"] for pod in pods}
            found = not refused_tasks(outcome).isdisjoint(bound)
        clear(admin, NAMESPACE)
        if never:
            counts[f"refused for {reason}, {'STARTED' if found else 'never started'}"] += 1
            differences += [job] if found else []
        else:
            counts[
                f"warned of {', '.join(sorted(wait_rules(outcome)))}, {'STARTED' if found else 'never started'}"
            ] += 1
            differences += [job] if found else []
    report("gangs", fleet, counts, differences)


def test_gangs_that_the_order_misses(admin: Api, snapshot: Snapshot, fleet: str, volcano: tuple[Cluster, Volcano]):
    rng = random.Random(f"tight {scheduler.SEED} {fleet}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    for number in range(5000):
        job = random_job(rng, f"job-{number}")
        found = {violation.rule for violation in review(request(job), snapshot).violations}
        if "gang-fits-tightly" not in found or not found <= {"gang-fits-tightly", "default-number"}:
            continue
        volcano[1].restart_and_wait(admin)  # a booking of a deleted pod could keep the gang from starting
        started = starts(admin, NAMESPACE, job, scheduler.NEVER)
        clear(admin, NAMESPACE)
        counts[f"{len(job['spec']['tasks'])} tasks, {'STARTED' if started else 'never started'}"] += 1
        differences += [job] if started else []
        if counts.total() == TIGHT:
            break
    report("tight", fleet, counts, differences)


@pytest.mark.parametrize("fleet", ["mixed"], indirect=True, scope="module")
def test_a_pod_gets_mig_instances(admin: Api, snapshot: Snapshot, volcano: tuple[Cluster, Volcano]):
    amounts = [{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": memory} for memory in (4864, 10240)]
    pod = manifest("mig", amounts, {"volcano.sh/vgpu-mode": "mig"})
    assert refusals(review(request(pod), snapshot)) == set()
    started = volcano[1].start_with_retry(admin, lambda seconds: place(admin, NAMESPACE, [pod], seconds) != [None])
    assert started != scheduler.NOT_STARTED


WHOLE_NODES = [(4, [{"volcano.sh/vgpu-number": 8}])]


@pytest.mark.parametrize("fleet", ["mixed"], indirect=True, scope="module")
def test_an_elastic_gang_starts_with_its_minimum(admin: Api, snapshot: Snapshot, volcano: tuple[Cluster, Volcano]):
    too_large, elastic = vcjob("known", WHOLE_NODES, 4), vcjob("known", WHOLE_NODES, 1)
    assert refusals(review(request(too_large), snapshot)) == {"gang-too-large"}
    assert not starts(admin, NAMESPACE, too_large, scheduler.NEVER)
    clear(admin, NAMESPACE)
    assert refusals(review(request(elastic), snapshot)) == set()
    started = volcano[1].start_with_retry(admin, lambda seconds: starts(admin, NAMESPACE, elastic, seconds))
    assert started != scheduler.NOT_STARTED
