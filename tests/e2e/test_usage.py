"""Usage of devices, and reasons of pending pods, for nodes, pods and assignments on a real API server.

The commands and the API of the console must agree with the assignments, also after changes.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import create_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.console import Console
from tests.e2e.objects import pods, service_account
from tests.server.client import SECONDS
from tests.server.program import COMMAND, until
from tests.strategies import node_json, register
from webhook import names

pytest.importorskip("webhook.questions.usage")  # unless a question is gone
WaitVerdict = pytest.importorskip("webhook.questions.why.node_reasons").WaitVerdict

NODE_COUNT, POD_COUNT = 150, 400
MEMORY = 81920
A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", MEMORY)
NAMESPACES = ("team-a", "team-b")
CODES = {WaitVerdict.FITS_NOW: 0, WaitVerdict.NOT_NOW: 1, WaitVerdict.NEVER: 4}


class Slice(NamedTuple):
    """A slice of a card that is assigned to a pod; the scheduler does not count it while the pod is terminating."""

    namespace: str
    name: str
    node: str
    card: str
    memory: int
    cores: int
    terminating: bool = False


@dataclass
class Assignments:
    """The slices and pending pods that the test created."""

    cluster: Cluster
    slices: list[Slice] = field(default_factory=list)
    waiting: set[tuple[str, str]] = field(default_factory=set)

    def amounts_by_card(self, *, accounted: bool) -> dict[str, list[int]]:
        """Slices, memory and cores of each card: those that the scheduler counts, or those of all live pods."""
        found: dict[str, list[int]] = {}
        for slice_ in self.slices:
            if not (accounted and slice_.terminating):
                slices, memory, cores = found.get(slice_.card, [0, 0, 0])
                found[slice_.card] = [slices + 1, memory + slice_.memory, cores + slice_.cores]
        return found

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the administrator."""
        environment = os.environ | {"KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(
            [str(COMMAND), *arguments], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def usage(self, *options: str) -> Any:
        """The JSON of `usage`, with the pods of each card sorted."""
        result = self.run("usage", "-o", "json", *options)
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        return found | {"nodes": in_order(found["nodes"])}


@pytest.fixture(scope="module")
def assignments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assignments]:
    rng = random.Random(14)
    with start_cluster(tmp_path_factory) as cluster:
        for namespace in NAMESPACES:
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            cluster.apply(service_account(namespace))
        found = Assignments(cluster)
        with cluster.api() as api:
            for number in range(NODE_COUNT):
                node = f"n{number:03}"
                create_node(api, node_json(node, register([A100] * 4, prefix=f"GPU-{number:03}")))
                api.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})  # no kubelet reports it as ready
            for number in range(POD_COUNT):
                _create_some_pod(api, found, number, rng)
        yield found


def _create_some_pod(api: Api, assignments: Assignments, number: int, rng: random.Random) -> None:
    node, card = rng.randrange(NODE_COUNT), rng.randrange(4)
    memory, cores = rng.choice([1000, 8192, 20480]), rng.choice([0, 10, 30])
    state = rng.choice(["runs"] * 6 + ["done", "leaves", "waits"])
    slice_ = Slice(NAMESPACES[number % 2], f"p{number:03}", f"n{node:03}", f"GPU-{node:03}-{card}", memory, cores)
    path = pods(slice_.namespace, slice_.name)
    if state == "waits":
        _create_waiting(api, assignments, slice_)
        return
    annotations = {
        names.VGPU_IDS: f"{slice_.card},NVIDIA,{memory},{cores}:",
        names.VGPU_NODE: slice_.node,
    }
    _create(api, slice_, annotations, {"nodeName": slice_.node})
    if state == "done":
        api.merge(f"{path}/status", {"status": {"phase": "Succeeded"}})
        return
    if state == "leaves":
        api.delete(path)  # no kubelet finishes the deletion
    assignments.slices.append(slice_._replace(terminating=state == "leaves"))


def _create_waiting(api: Api, assignments: Assignments, slice_: Slice, node: str = "") -> None:
    """Create a pending pod that requests a slice, optionally on one node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    _create(api, slice_, {}, {"affinity": {"nodeAffinity": required}} if node else {})
    assignments.waiting.add((slice_.namespace, slice_.name))


def _create(api: Api, slice_: Slice, annotations: Mapping[str, str], fields: Mapping[str, Any]) -> None:
    limits = {
        names.VGPU_NUMBER: "1",
        names.VGPU_MEMORY: str(slice_.memory),
        names.VGPU_CORES: str(slice_.cores),
    }
    container = {"name": "main", "image": "cuda", "resources": {"limits": limits}}
    spec = {"schedulerName": "volcano", "containers": [container], **fields}
    metadata = {"name": slice_.name, "annotations": annotations}
    created = api.post(pods(slice_.namespace), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert created.status == 201, created.message


@pytest.fixture(scope="module")
def console(assignments: Assignments, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    console = Console(tmp_path_factory.mktemp("console") / "log", "--kubeconfig", assignments.cluster.kubeconfig)
    try:
        console.wait(lambda: console.api("/usage?limit=0")["known"])
        yield console
    finally:
        console.close()


def in_order(nodes: list[Any]) -> list[Any]:
    """Nodes with the pods of each card sorted, because the sources guarantee no order."""
    for node in nodes:
        for card in node["cards"]:
            card["pods"].sort(key=lambda pod: (pod["namespace"], pod["name"]))
    return nodes


# --- usage -----------------------------------------------------------------------------------------------------------


def assert_all_sources_agree(assignments: Assignments, console: Console) -> None:
    """The command and the console show the assigned slices; tests/questions/usage compares their other outputs with these."""
    found = assignments.usage()
    cards = {card["id"]: card for node in found["nodes"] for card in node["cards"]}
    accounted, assigned = assignments.amounts_by_card(accounted=True), assignments.amounts_by_card(accounted=False)
    assert len(cards) == 4 * NODE_COUNT
    for uuid, card in cards.items():
        assert list(card["accounted"].values()) == accounted.get(uuid, [0, 0, 0])
        assert list(card["assigned"].values()) == assigned.get(uuid, [0, 0, 0])
    assert found["findings"] == []
    until(lambda: console.api("/usage?limit=0")["pods"] == len(assignments.slices))
    assert in_order(console.api("/usage?limit=500")["nodes"]) == found["nodes"]


def test_everything_shows_what_was_assigned(assignments: Assignments, console: Console):
    assert_all_sources_agree(assignments, console)


def test_files_of_kubectl_show_the_same(assignments: Assignments, tmp_path):
    for name, arguments in (("nodes", ("nodes",)), ("pods", ("pods", "-A"))):
        (tmp_path / name).write_text(assignments.cluster.kubectl("get", *arguments, "-o", "json").stdout)
    assert (
        assignments.usage("--fleet", str(tmp_path / "nodes"), "--pods", str(tmp_path / "pods")) == assignments.usage()
    )


# --- pending pods -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy_node(assignments: Assignments) -> str:
    """A node with accounted memory on each of its cards."""
    accounted = assignments.amounts_by_card(accounted=True)
    return next(
        f"n{number:03}"
        for number in range(NODE_COUNT)
        if all(accounted.get(f"GPU-{number:03}-{card}", [0, 0])[1] for card in range(4))
    )


def largest_slice(assignments: Assignments, node: str) -> int:
    """The largest memory of one more slice on a node."""
    accounted = assignments.amounts_by_card(accounted=True)
    return MEMORY - min(accounted.get(f"GPU-{node[1:]}-{card}", [0, 0])[1] for card in range(4))


def wait_reason(assignments: Assignments, console: Console, name: str, expected: Any) -> Any:
    """The output of `why` for a pod of team-a; the console must agree."""
    result = assignments.run("why", name, "-n", "team-a", "-o", "json")
    assert result.returncode == CODES[expected], result.stderr
    found = json.loads(result.stdout)
    assert found["verdict"] == expected
    assert console.api("/why", {"namespace": "team-a", "pod": name})["answers"] == [found]
    return found


def test_why_agrees_with_the_slices(assignments: Assignments, console: Console, busy_node: str):
    largest = largest_slice(assignments, busy_node)
    with assignments.cluster.api() as api:
        for name, memory in {"fits": largest, "waits": largest + 1, "huge": MEMORY + 1}.items():
            _create_waiting(api, assignments, Slice("team-a", name, "", "", memory, 0), busy_node)
    assert {(pod["namespace"], pod["name"]) for pod in console.api("/waiting")["pods"]} == assignments.waiting
    (fits,) = wait_reason(assignments, console, "fits", WaitVerdict.FITS_NOW)["fits"]
    assert fits["node"] == busy_node
    (never,) = wait_reason(assignments, console, "huge", WaitVerdict.NEVER)["reasons"]
    assert (never["nodes"], never["change"]["most"]) == (1, largest)
    (waits,) = wait_reason(assignments, console, "waits", WaitVerdict.NOT_NOW)["reasons"]
    assert (waits["node"], waits["change"]["resource"]) == (busy_node, names.VGPU_MEMORY)
    assert waits["change"]["most"] == largest
    memory_by_pod = {
        (slice_.namespace, slice_.name): slice_.memory for slice_ in assignments.slices if slice_.node == busy_node
    }
    assert len(waits["holders"]) + waits["moreHolders"] == len(memory_by_pod)
    for holder in waits["holders"]:
        assert holder["memory"] == memory_by_pod[holder["namespace"], holder["name"]]


# --- changes ----------------------------------------------------------------------------------------------------------


def test_everything_follows_a_change(assignments: Assignments, console: Console, busy_node: str):
    """A pod is deleted, and a pending pod gets its slice."""
    (reason,) = wait_reason(assignments, console, "waits", WaitVerdict.NOT_NOW)["reasons"]
    namespace, _, name = reason["ends"].partition("/")
    (ended,) = [slice_ for slice_ in assignments.slices if (slice_.namespace, slice_.name) == (namespace, name)]
    memory = largest_slice(assignments, busy_node) + 1
    with assignments.cluster.api() as api:
        assert api.send("DELETE", pods(namespace, name), {"gracePeriodSeconds": 0}).status == 200
        assignments.slices.remove(ended)
        assert_all_sources_agree(assignments, console)
        wait_reason(assignments, console, "waits", WaitVerdict.FITS_NOW)
        ids = f"{ended.card},NVIDIA,{memory},0:"
        api.merge(pods("team-a", "waits"), {"metadata": {"annotations": {names.VGPU_IDS: ids}}})
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits"}, "target": {"name": busy_node}}
        assert api.post(pods("team-a", "waits", "binding"), target).status == 201
    assignments.slices.append(Slice("team-a", "waits", busy_node, ended.card, memory, 0))
    assignments.waiting.remove(("team-a", "waits"))
    assert_all_sources_agree(assignments, console)
    assert {(pod["namespace"], pod["name"]) for pod in console.api("/waiting")["pods"]} == assignments.waiting
