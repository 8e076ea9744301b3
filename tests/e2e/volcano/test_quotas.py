"""Quotas of card memory against the API server and Volcano's scheduler: seeded random pods in a namespace with two quotas.

Kubernetes counts `requests.<name>` once a container, and `limits.<name>` never: a pod that `quota-memory` reports is bound.
The cards that it gets add up to more memory than the quota has, and those of a pod without a finding do not.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import NAMESPACE, Volcano, clear, manifest, place, report
from tests.reviewing import request
from tests.server.program import until
from webhook import names
from webhook.review.endpoints import review
from webhook.rules.context import Collections
from webhook.snapshot import Snapshot
from webhook.volcano.quotas import Quotas, read_quota

PODS = int(os.environ.get("PROOF_QUOTA_PODS", "40"))
FLEET = "rtx4090"  # equal cards, so that a whole one has a known memory
HARD = {f"limits.{names.VGPU_MEMORY}": "50000", f"requests.{names.VGPU_MEMORY}": "30000"}
WHOLE = manifest("whole", [{names.VGPU_NUMBER: 1, names.VGPU_MEMORY: 30000}])  # all that the quota has
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Volcano]]:
    with scheduler.on_fleet(FLEET, tmp_path_factory) as (cluster, volcano), cluster.api() as api:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "cards"}, "spec": {"hard": HARD}}
        created = api.post(QUOTAS, quota)
        assert created.status == 201, created.message
        yield api, volcano


def empty_quota(api: Api) -> None:
    """Count from zero, as kube-controller-manager would do it, and wait until the API server's admission reads that."""
    unused = {"status": {"hard": HARD, "used": dict.fromkeys(HARD, "0")}}
    patched = api.merge(f"{QUOTAS}/cards/status", unused)
    assert patched.status == 200, patched.message
    until(lambda: api.post(f"{PODS_PATH}?dryRun=All", WHOLE).status == 201)


def amounts(rng: random.Random) -> dict[str, int]:
    found = {names.VGPU_NUMBER: rng.choice([1, 1, 2, 3, 4])}
    memory = rng.choice([None, 1000, 10000, 12500, 16667, 24564])
    return found | ({names.VGPU_MEMORY: memory} if memory else {})


def assigned_memory(pod: dict[str, Any]) -> int:
    """The memory of the slices that the scheduler gave to a pod."""
    entries = pod["metadata"]["annotations"][names.VGPU_IDS].replace(";", ":").split(":")
    return sum(int(entry.split(",")[2]) for entry in entries if "," in entry)


def test_pods(started: tuple[Api, Volcano]):
    api, volcano = started
    snapshot = snapshot_with(api)
    rng = random.Random(f"quotas {scheduler.SEED}")
    counts: Counter[str] = Counter()
    differences: list[Any] = []
    while counts.total() < PODS:
        containers = [amounts(rng) for _ in range(rng.choice([1, 1, 2]))]
        pod = manifest(f"pod-{counts.total()}", containers)
        found = {violation.rule for violation in review(request(pod), snapshot).violations}
        if found - {"quota-memory", "several-device-containers"}:
            continue
        clear(api, NAMESPACE)
        empty_quota(api)
        if sum(each.get(names.VGPU_MEMORY, 0) for each in containers) > int(HARD[f"requests.{names.VGPU_MEMORY}"]):
            refused = api.post(PODS_PATH, pod)
            exceeded = refused.status == 403 and "exceeded quota: cards" in refused.message
            counts["requests above the quota: refused" if exceeded else "requests above the quota: CREATED"] += 1
            differences += [] if exceeded else [pod]
            continue
        bound: list[dict[str, Any] | None] = []

        def attempt(seconds: float, pod: dict[str, Any] = pod, bound: list[dict[str, Any] | None] = bound) -> bool:
            empty_quota(api)
            bound[:] = place(api, NAMESPACE, [pod], seconds)
            return bound != [None]

        result = volcano.start_with_retry(api, attempt)
        reported = "quota-memory" in found
        above = bound[0] is not None and assigned_memory(bound[0]) > int(HARD[f"limits.{names.VGPU_MEMORY}"])
        word = "`quota-memory`" if reported else "no finding"
        counts[f"{word}: {result}, with {'more' if above else 'no more'} memory than the quota"] += 1
        differences += [pod] if result == scheduler.NOT_STARTED or above != reported else []
    report("quotas", "pods", counts, differences)


def snapshot_with(api: Api) -> Snapshot:
    """The settings of the cluster with its quotas."""
    quotas = [quota for raw in api.get(QUOTAS).body["items"] if (quota := read_quota(raw)) is not None]
    assert [quota.limits for quota in quotas] == [{names.VGPU_MEMORY: 50000}]
    return replace(scheduler.inputs(FLEET), collections=Collections(quotas=Quotas(quotas))).snapshot()
