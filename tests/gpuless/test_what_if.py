"""What `what-if` foretells happens: a node is really added, and one is really drained."""

import json
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.objects import Object, pod, pods
from tests.e2e.volcano.scheduler import NEVER
from tests.gpuless.cluster import GpuCluster
from tests.gpuless.conftest import start
from tests.gpuless.images import BUSYBOX
from webhook import names
from webhook.cli.main import main

pytestmark = [pytest.mark.e2e, pytest.mark.cluster, pytest.mark.timeout(600)]

CARD = 4096  # units of 10 MiB that a card of the node has, at least
CLASSES = {"low": 1, "middle": 2, "high": 3}
STARTS = "starts"


def sized(name: str, number: int, memory: int, cores: int = 0, *, priority: str = "low", group: str = "") -> Object:
    """A pod that requests slices of Volcano, and runs until it is deleted."""
    limits = {names.VGPU_NUMBER: number, names.VGPU_MEMORY: memory, names.VGPU_CORES: cores}
    amounts = {key: str(amount) for key, amount in limits.items() if amount}
    found = pod(name, amounts, image=BUSYBOX, imagePullPolicy="Never", command=["sleep", "100000"])
    found["metadata"]["annotations"] = {names.GROUP_NAME: group} if group else {}
    found["spec"] |= {"schedulerName": "volcano", "terminationGracePeriodSeconds": 0, "priorityClassName": priority}
    return found


def replicated(template: Object) -> Object:
    """A ReplicaSet that keeps one such pod."""
    name = template["metadata"]["name"]
    metadata = {"labels": {"app": name}}
    spec = {"replicas": 1, "selector": {"matchLabels": metadata["labels"]}}
    spec["template"] = {"metadata": metadata, "spec": template["spec"]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def pod_group(name: str, members: int) -> Object:
    metadata = {"name": name, "namespace": "default"}
    spec = {"minMember": members, "queue": "default", "priorityClassName": "middle"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def owner(found: Mapping[str, Any]) -> str:
    """A pod's ReplicaSet, or its own name."""
    owners = found["metadata"].get("ownerReferences", [])
    return str(next((each["name"] for each in owners if each["kind"] == "ReplicaSet"), found["metadata"]["name"]))


def nodes_of_pods(api: Api) -> dict[str, str]:
    """The node of each pod that is not being deleted, empty while it waits, by owner."""
    items = [each for each in api.get(pods("default")).body["items"] if "deletionTimestamp" not in each["metadata"]]
    return {owner(each): each["spec"].get("nodeName", "") for each in items}


def settled(api: Api, count: int) -> dict[str, str]:
    """The same once nothing has changed for some cycles of the scheduler."""
    before: dict[str, str] = {}
    since = time.monotonic()
    deadline = since + 90
    while time.monotonic() < deadline:
        found = nodes_of_pods(api)
        if found != before or len(found) != count:
            before, since = found, time.monotonic()
        if time.monotonic() - since > 3 * NEVER:
            return found
        time.sleep(0.2)
    raise AssertionError(f"pods still come and go: {before}")


def foretold(cluster: GpuCluster, capsys: pytest.CaptureFixture[str], *change: str) -> dict[str, Any]:
    capsys.readouterr()
    main(["what-if", *change, "--kubeconfig", str(cluster.cluster.kubeconfig), "-o", "json"])
    out, errors = capsys.readouterr()
    assert out, errors
    found: dict[str, Any] = json.loads(out)
    return found


def compare(fates: Mapping[str, str], happened: Mapping[str, str]) -> None:
    """What starts has a node, what waits has none; what depends may go either way."""
    wrong = {
        name: (fate, happened[name])
        for name, fate in fates.items()
        if fate != "depends" and (fate == STARTS) != bool(happened[name])
    }
    assert wrong == {}


def test_what_is_foretold_happens(capsys: pytest.CaptureFixture[str]):
    rng = random.Random(1)
    with start("a100:2") as cluster, cluster.cluster.api() as api:
        cluster.cluster.apply(*(priority_class(name, value) for name, value in CLASSES.items()))
        first = cluster.nodes[0].name
        full = [replicated(sized(f"full-{at}", 1, CARD * 3 // 4, 10)) for at in range(2)]
        cluster.cluster.apply(*full)
        assert set(settled(api, 2).values()) == {first}

        # Pods that wait for a node which comes.
        sizes = [CARD // 2, CARD * 3 // 4, CARD * 2, CARD // 8, CARD // 3]
        waiting = []
        for at in range(10):
            amounts = rng.choice((1, 1, 2)), rng.choice(sizes), rng.choice((0, 30, 60))
            waiting.append(sized(f"wait-{at}", *amounts, priority=rng.choice(list(CLASSES))))
        for name, members in (("gang", 2), ("large", 7)):
            cluster.cluster.apply(pod_group(name, members))
            waiting += [sized(f"{name}-{at}", 1, CARD // 3, priority="middle", group=name) for at in range(members)]
        for each in waiting:
            created = api.post(pods("default"), each)
            assert created.status == 201, created.message
            time.sleep(0.0 if each["metadata"]["annotations"] else 1.1)  # an age of its own
        before = settled(api, 2 + len(waiting))
        now = foretold(cluster, capsys, "--add", f"{first} x 1")
        compare({each["name"]: STARTS if before[each["name"]] else "waits" for each in now["waiting"]}, before)
        assert {each["before"] for each in now["waiting"]} <= {"waits", "never"}
        added = cluster.add_node("a100:2").name
        cluster.show_cards()
        after = settled(api, 2 + len(waiting))
        compare({each["name"]: each["after"] for each in now["waiting"]}, after)
        assert added in after.values()

        # Pods whose node goes.
        for each in waiting:
            cluster.cluster.kubectl("delete", "pod", each["metadata"]["name"], "--now", "--wait=false")
        settled(api, 2)
        cluster.cluster.kubectl("cordon", first)
        moving = {"small": (1, CARD // 8), "large": (1, CARD * 5 // 8), "both": (2, CARD // 8), "tiny": (1, 10)}
        cluster.cluster.apply(*(replicated(sized(name, *size)) for name, size in moving.items()))
        assert {settled(api, 6)[name] for name in moving} == {added}
        cluster.cluster.kubectl("uncordon", first)
        then = foretold(cluster, capsys, "--drain", added)
        drained = cluster.cluster.kubectl("drain", added, "--ignore-daemonsets", "--force", "--timeout=50s")
        assert drained.returncode == 0, drained.stderr
        happened = settled(api, 6)
        fates = {each["owner"].removeprefix("ReplicaSet/"): each["after"] for each in then["moved"]}
        assert fates == {"small": STARTS, "large": "waits", "both": STARTS, "tiny": STARTS}
        compare(fates, happened)
