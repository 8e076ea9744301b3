"""deviceshare.GPUExclusiveRules against Volcano's scheduler: seeded random pods on a fleet that fills up.

What `why` says of a pod beside those that are bound already is what happens: it is bound soon, or not within ten cycles.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import NAMESPACE, Volcano, bound, clear, manifest, place, report
from tests.server.client import SECONDS
from webhook import names
from webhook.inputs.documents import Document
from webhook.live.devices import LiveCluster
from webhook.live.objects import LiveObjects
from webhook.volcano.scheduler import EXCLUSIVE_RULES

why = pytest.importorskip("webhook.questions.why.answer")  # unless the question is gone

PODS = int(os.environ.get("PROOF_EXCLUSIVE_PODS", "60"))
ROUND = 15  # pods, before the fleet is emptied
FLEET = "rtx4090"
RULES = f"{EXCLUSIVE_RULES}: [{{app: train}}, {{tier: gold, team: a}}]"
EXCLUSIVE_CONF = scheduler.CONF.replace("deviceshare.VGPUEnable: true", f"deviceshare.VGPUEnable: true, {RULES}")
LABELS = ({}, {"app": "train"}, {"app": "train"}, {"tier": "gold", "team": "a"}, {"tier": "gold"})


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Volcano]]:
    if not scheduler.inputs(FLEET, EXCLUSIVE_CONF).snapshot().target.reads_exclusive_rules:
        pytest.skip(f"Volcano {scheduler.version()} reads no rules")
    with scheduler.on_fleet(FLEET, tmp_path_factory, EXCLUSIVE_CONF) as (cluster, volcano), cluster.api() as api:
        yield api, volcano


def random_pod(rng: random.Random, name: str) -> dict[str, Any]:
    limits = {names.VGPU_NUMBER: rng.choice([1, 1, 2, 3, 4]), names.VGPU_MEMORY: rng.choice([500, 1000, 4000])}
    pod = manifest(name, [limits])
    pod["metadata"]["labels"] = dict(rng.choice(LABELS)) | dict(rng.choice(LABELS))
    return pod


def fits_now(api: Api, pod: dict[str, Any]) -> bool:
    """Whether `why` says that the pod fits beside those that are bound."""
    inputs = scheduler.inputs(FLEET, EXCLUSIVE_CONF)
    snapshot = inputs.snapshot()
    live = LiveObjects(snapshot)
    for raw in bound(api, NAMESPACE).values():
        live.add(raw | {"apiVersion": "v1", "kind": "Pod"})
    found = why.explain_waiting(
        why.WaitingObject(Document("a pod", pod), True), LiveCluster(inputs, snapshot, live.bound)
    )
    return found.verdict is why.WaitVerdict.FITS_NOW


def test_pods(started: tuple[Api, Volcano]):
    api, volcano = started
    rng = random.Random(f"exclusive {scheduler.SEED}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    for number in range(PODS):
        if number % ROUND == 0:
            clear(api, NAMESPACE)
            volcano.restart_and_wait(api)
        pod = random_pod(rng, f"pod-{number}")
        fits = fits_now(api, pod)
        found = place(api, NAMESPACE, [pod], SECONDS if fits else scheduler.NEVER) != [None]
        counts[f"{'fits now' if fits else 'waits'}: {'bound' if found else 'not bound'}"] += 1
        if found != fits:
            differences.append({"pod": pod, "beside": list(bound(api, NAMESPACE).values())})
        if not found:
            api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
    report("exclusive", "pods", counts, differences)
