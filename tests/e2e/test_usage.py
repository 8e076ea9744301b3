"""Who holds which slice, and why a pod waits, on nodes and pods of a real API server whose assignments the test has made.

The command, the console's pages, its API and its metrics have to agree with the assignments, also when these change.
"""

import json
import os
import random
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.api import Api
from tests.e2e.changes import create_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.console import Console
from tests.e2e.objects import pods, service_account
from tests.server.program import COMMAND, until
from tests.strategies import node_json, register
from webhook import names
from webhook.console.why import VERDICTS
from webhook.names import METRIC_PREFIX
from webhook.offline.node_reasons import WaitVerdict

NODE_COUNT, POD_COUNT = 150, 400
MEMORY, SPLIT, CORES = 81920, 10, 100
A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", MEMORY)
NAMESPACES = ("team-a", "team-b")
CODES = {WaitVerdict.FITS_NOW: 0, WaitVerdict.NOT_NOW: 1, WaitVerdict.NEVER: 3}
SECONDS = 20.0  # until the console has noticed a change


class Slice(NamedTuple):
    """What a pod holds of a card; the scheduler does not count it once the pod is being deleted."""

    namespace: str
    name: str
    node: str
    card: str
    memory: int
    cores: int
    terminating: bool = False


@dataclass
class Made:
    """What the test made."""

    cluster: Cluster
    slices: list[Slice] = field(default_factory=list)
    waiting: set[tuple[str, str]] = field(default_factory=set)

    def held(self, *, booked: bool) -> dict[str, list[int]]:
        """Slices, memory and cores of each card: what the scheduler counts, or what live pods hold."""
        found: dict[str, list[int]] = {}
        for one in self.slices:
            if not (booked and one.terminating):
                slices, memory, cores = found.get(one.card, [0, 0, 0])
                found[one.card] = [slices + 1, memory + one.memory, cores + one.cores]
        return found

    def total(self, *, booked: bool) -> list[int]:
        """The same of all cards together."""
        return [sum(column) for column in zip(*self.held(booked=booked).values(), strict=True)]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the administrator."""
        environment = os.environ | {"KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(
            [str(COMMAND), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    def usage(self, *options: str) -> Any:
        """What `usage` prints as JSON, with the pods of each card in order."""
        done = self.run("usage", "-o", "json", *options)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return found | {"nodes": in_order(found["nodes"])}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    chance = random.Random(14)
    with start_cluster(tmp_path_factory) as cluster:
        for namespace in NAMESPACES:
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            cluster.apply(service_account(namespace))
        found = Made(cluster)
        with cluster.api() as api:
            for number in range(NODE_COUNT):
                node = f"n{number:03}"
                create_node(api, node_json(node, register([A100] * 4, prefix=f"GPU-{number:03}")))
                api.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})  # no kubelet says that it is ready
            for number in range(POD_COUNT):
                _create_some_pod(api, found, number, chance)
        yield found


def _create_some_pod(api: Api, found: Made, number: int, chance: random.Random) -> None:
    node, card = chance.randrange(NODE_COUNT), chance.randrange(4)
    memory, cores = chance.choice([1000, 8192, 20480]), chance.choice([0, 10, 30])
    fate = chance.choice(["runs"] * 6 + ["done", "leaves", "waits"])
    held = Slice(NAMESPACES[number % 2], f"p{number:03}", f"n{node:03}", f"GPU-{node:03}-{card}", memory, cores)
    path = pods(held.namespace, held.name)
    if fate == "waits":
        _create_waiting(api, found, held)
        return
    annotations = {names.VGPU_IDS: f"{held.card},NVIDIA,{memory},{cores}:", names.VGPU_NODE: held.node}
    _create(api, held, annotations, {"nodeName": held.node})
    if fate == "done":
        api.merge(f"{path}/status", {"status": {"phase": "Succeeded"}})
        return
    if fate == "leaves":
        api.delete(path)  # no kubelet ends it
    found.slices.append(held._replace(terminating=fate == "leaves"))


def _create_waiting(api: Api, found: Made, held: Slice, node: str = "") -> None:
    """Create a pod that waits for such a slice, perhaps of one node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    _create(api, held, {}, {"affinity": {"nodeAffinity": required}} if node else {})
    found.waiting.add((held.namespace, held.name))


def _create(api: Api, held: Slice, annotations: Mapping[str, str], more: Mapping[str, Any]) -> None:
    limits = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: str(held.memory), names.VGPU_CORES: str(held.cores)}
    container = {"name": "main", "image": "cuda", "resources": {"limits": limits}}
    spec = {"schedulerName": "volcano", "containers": [container], **more}
    metadata = {"name": held.name, "annotations": annotations}
    created = api.post(pods(held.namespace), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert created.status == 201, created.message


@pytest.fixture(scope="module")
def console(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    started = Console(tmp_path_factory.mktemp("console") / "log", "--kubeconfig", made.cluster.kubeconfig)
    try:
        started.wait(lambda: started.api("/usage?limit=0")["known"])
        yield started
    finally:
        started.close()


def in_order(nodes: list[Any]) -> list[Any]:
    """Nodes with the pods of each card in order, as no source promises one."""
    for node in nodes:
        for card in node["cards"]:
            card["pods"].sort(key=lambda pod: (pod["namespace"], pod["name"]))
    return nodes


def samples(console: Console) -> dict[tuple[str, ...], float]:
    """The console's metrics by name and values of labels, in the order of the labels' names."""
    found = {}
    for family in text_string_to_metric_families(console.get("/metrics")):
        for one in family.samples:
            found[one.name.removeprefix(METRIC_PREFIX), *(value for _, value in sorted(one.labels.items()))] = one.value
    return found


# --- who holds which slice --------------------------------------------------------------------------------------------


def assert_shown(made: Made, console: Console) -> None:
    """Every place shows the slices that the test made."""
    found = made.usage()
    cards = {card["id"]: card for node in found["nodes"] for card in node["cards"]}
    booked, promised = made.held(booked=True), made.held(booked=False)
    assert len(cards) == 4 * NODE_COUNT
    for uuid, card in cards.items():
        assert list(card["booked"].values()) == booked.get(uuid, [0, 0, 0])
        assert list(card["promised"].values()) == promised.get(uuid, [0, 0, 0])
    assert found["findings"] == []
    assert_in_the_tables(made)
    until(lambda: console.api("/usage?limit=0")["pods"] == len(made.slices), SECONDS)
    assert in_order(console.api("/usage?limit=500")["nodes"]) == found["nodes"]
    assert_on_the_page(made, console)
    assert_in_the_metrics(made, console)


def assert_in_the_tables(made: Made) -> None:
    head, *rows = made.run("usage", "--by", "pod").stdout.partition("\n\n")[0].splitlines()
    assert head.split()[:7] == ["NAMESPACE", "POD", "CONTAINER", "NODE", "DEVICE", "MEMORY", "CORES"]
    found = Counter(
        (namespace, name, node, card, memory, cores, " ".join(state))
        for namespace, name, _, node, card, memory, cores, _, *state in map(str.split, rows)
    )
    assert found == Counter(
        (*one[:4], str(one.memory), str(one.cores or "-"), "terminating, not booked" if one.terminating else "")
        for one in made.slices
    )
    slices, memory, cores = made.total(booked=True)
    summed = made.run("usage").stdout.partition("\n\n")[2]
    assert f"vgpu: {NODE_COUNT} nodes, {4 * NODE_COUNT} cards; booked {slices} of {4 * NODE_COUNT * SPLIT}" in summed
    assert f"{memory} of {4 * NODE_COUNT * MEMORY} MiB" in summed
    assert f"{cores} of {4 * NODE_COUNT * CORES} cores" in summed


def assert_on_the_page(made: Made, console: Console) -> None:
    page = unescape(console.get("/fleet?name=n01*&limit=500"))
    for one in made.slices:
        assert (f"{one.namespace}/{one.name}<" in page) is one.node.startswith("n01")
    (total,) = console.api("/usage?name=n01*&limit=0")["totals"]
    held = [one for one in made.slices if one.node.startswith("n01")]
    assert (total["nodes"], total["devices"]) == (10, 40)
    assert (total["heldSlices"], total["heldMemory"]) == (len(held), sum(one.memory for one in held))


def assert_in_the_metrics(made: Made, console: Console) -> None:
    found = samples(console)
    with urllib.request.urlopen(f"http://{console.metrics}/metrics") as answer:
        assert answer.read().decode() == console.get("/metrics")
    for path in ("/", "/api/v1/usage"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{console.metrics}{path}")
    for what in ("booked", "promised"):
        held = made.held(booked=what == "booked")
        shown = {key[1]: value for key, value in found.items() if key[0] == f"card_{what}_memory_mib"}
        assert shown == {card: held.get(card, [0, 0, 0])[1] for card in shown}
        assert len(shown) == 4 * NODE_COUNT
        units = ("slices", "memory_mib", "cores")
        assert [found[f"devices_{what}_{unit}", "vgpu"] for unit in units] == made.total(booked=what == "booked")
    for namespace in NAMESPACES:
        memory = sum(one.memory for one in made.slices if one.namespace == namespace)
        assert found["namespace_promised_memory_mib", "vgpu", namespace] == memory


def test_everything_shows_what_was_assigned(made: Made, console: Console):
    assert_shown(made, console)


def test_files_of_kubectl_show_the_same(made: Made, tmp_path):
    for name, arguments in (("nodes", ("nodes",)), ("pods", ("pods", "-A"))):
        (tmp_path / name).write_text(made.cluster.kubectl("get", *arguments, "-o", "json").stdout)
    assert made.usage("--fleet", str(tmp_path / "nodes"), "--pods", str(tmp_path / "pods")) == made.usage()


# --- why a pod waits --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(made: Made) -> str:
    """A node with something booked on each of its cards."""
    booked = made.held(booked=True)
    return next(
        f"n{number:03}"
        for number in range(NODE_COUNT)
        if all(booked.get(f"GPU-{number:03}-{card}", [0, 0])[1] for card in range(4))
    )


def largest_slice(made: Made, node: str) -> int:
    """The memory that one more slice can get on a node."""
    booked = made.held(booked=True)
    return MEMORY - min(booked.get(f"GPU-{node[1:]}-{card}", [0, 0])[1] for card in range(4))


def explained(made: Made, console: Console, name: str, expected: WaitVerdict) -> Any:
    """Why a pod of team-a waits; the command, the operation and the page have to agree."""
    done = made.run("why", name, "-n", "team-a", "-o", "json")
    assert done.returncode == CODES[expected], done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == expected
    assert console.api("/why", {"namespace": "team-a", "pod": name})["answers"] == [found]
    page = unescape(console.get(f"/why?pod=team-a/{name}"))
    assert f"{VERDICTS[expected][0]}</h2>" in page
    assert all(reason["message"] in page for reason in [*found["reasons"], *found["fits"]])
    return found


def test_why_agrees_with_the_slices(made: Made, console: Console, crowded: str):
    largest = largest_slice(made, crowded)
    with made.cluster.api() as api:
        for name, memory in {"fits": largest, "waits": largest + 1, "huge": MEMORY + 1}.items():
            _create_waiting(api, made, Slice("team-a", name, "", "", memory, 0), crowded)
    assert {(pod["namespace"], pod["name"]) for pod in console.api("/waiting")["pods"]} == made.waiting
    (fits,) = explained(made, console, "fits", WaitVerdict.FITS_NOW)["fits"]
    assert fits["node"] == crowded
    (never,) = explained(made, console, "huge", WaitVerdict.NEVER)["reasons"]
    assert (never["nodes"], never["change"]["most"]) == (1, largest)
    (waits,) = explained(made, console, "waits", WaitVerdict.NOT_NOW)["reasons"]
    assert (waits["node"], waits["change"]["resource"]) == (crowded, names.VGPU_MEMORY)
    assert waits["change"]["most"] == largest
    held = {(one.namespace, one.name): one.memory for one in made.slices if one.node == crowded}
    assert len(waits["holders"]) + waits["moreHolders"] == len(held)
    for holder in waits["holders"]:
        assert holder["memory"] == held[holder["namespace"], holder["name"]]


# --- changes ----------------------------------------------------------------------------------------------------------


def test_everything_follows_a_change(made: Made, console: Console, crowded: str):
    """A pod ends, and the one that waited for its slice gets it."""
    (reason,) = explained(made, console, "waits", WaitVerdict.NOT_NOW)["reasons"]
    namespace, _, name = reason["ends"].partition("/")
    (ended,) = [one for one in made.slices if (one.namespace, one.name) == (namespace, name)]
    memory = largest_slice(made, crowded) + 1
    with made.cluster.api() as api:
        assert api.send("DELETE", pods(namespace, name), {"gracePeriodSeconds": 0}).status == 200
        made.slices.remove(ended)
        assert_shown(made, console)
        explained(made, console, "waits", WaitVerdict.FITS_NOW)
        ids = f"{ended.card},NVIDIA,{memory},0:"
        api.merge(pods("team-a", "waits"), {"metadata": {"annotations": {names.VGPU_IDS: ids}}})
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits"}, "target": {"name": crowded}}
        assert api.post(pods("team-a", "waits", "binding"), target).status == 201
    made.slices.append(Slice("team-a", "waits", crowded, ended.card, memory, 0))
    made.waiting.remove(("team-a", "waits"))
    assert_shown(made, console)
    assert {(pod["namespace"], pod["name"]) for pod in console.api("/waiting")["pods"]} == made.waiting
