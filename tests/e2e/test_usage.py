"""Who holds which slice, on a few hundred nodes and pods of a real API server whose assignments the test has made."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.changes import create_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import service_account
from tests.server.program import COMMAND
from tests.strategies import node_json, register
from webhook import names
from webhook.console.metrics import exposition
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.offline.waiting import ClusterSource
from webhook.settings.cluster_sources import NODES, read_inputs
from webhook.settings.files import FileSettings
from webhook.settings.sources import ClusterOptions

NODE_COUNT, POD_COUNT = 150, 400
A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
NAMESPACES = ("team-a", "team-b")


@dataclass
class Made:
    """What the test made, by card: what the scheduler has to count, and what live pods hold."""

    cluster: Cluster
    booked: dict[str, list[int]] = field(default_factory=dict)
    promised: dict[str, list[int]] = field(default_factory=dict)

    def note(self, card: str, memory: int, cores: int, *, terminating: bool) -> None:
        for held in (self.promised,) if terminating else (self.promised, self.booked):
            known = held.setdefault(card, [0, 0, 0])
            held[card] = [known[0] + 1, known[1] + memory, known[2] + cores]


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
                create_node(api, node_json(f"n{number:03}", register([A100] * 4, prefix=f"GPU-{number:03}")))
            for number in range(POD_COUNT):
                _create_pod(api, found, number, chance)
        yield found


def _create_pod(api: Any, found: Made, number: int, chance: random.Random) -> None:
    node, card = chance.randrange(NODE_COUNT), chance.randrange(4)
    memory, cores = chance.choice([1000, 8192, 20480]), chance.choice([0, 10, 30])
    fate = chance.choice(["runs"] * 6 + ["done", "leaves", "waits"])
    uuid = f"GPU-{node:03}-{card}"
    limits = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: str(memory), names.VGPU_CORES: str(cores)}
    container = {"name": "main", "image": "cuda", "resources": {"limits": limits}}
    spec = {"schedulerName": "volcano", "containers": [container]} | (
        {} if fate == "waits" else {"nodeName": f"n{node:03}"}
    )
    annotations = {names.VGPU_IDS: f"{uuid},NVIDIA,{memory},{cores}:", names.VGPU_NODE: f"n{node:03}"}
    path = f"/api/v1/namespaces/{NAMESPACES[number % 2]}/pods"
    metadata = {"name": f"p{number:03}", "annotations": annotations}
    created = api.post(path, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert created.status == 201, created.message
    if fate == "done":
        api.merge(f"{path}/p{number:03}/status", {"status": {"phase": "Succeeded"}})
    elif fate == "leaves":
        api.delete(f"{path}/p{number:03}")  # no kubelet ends it
    if fate in ("runs", "leaves"):
        found.note(uuid, memory, cores, terminating=fate == "leaves")


def _usage(made: Made, *options: str) -> Any:
    environment = os.environ | {"KUBECONFIG": str(made.cluster.kubeconfig)}
    done = subprocess.run(
        [str(COMMAND), "usage", "-o", "json", *options], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_usage_shows_what_was_assigned(made: Made):
    found = _usage(made)
    cards = {card["id"]: card for node in found["nodes"] for card in node["cards"]}
    assert len(cards) == 4 * NODE_COUNT
    for uuid, card in cards.items():
        assert list(card["booked"].values()) == made.booked.get(uuid, [0, 0, 0])
        assert list(card["promised"].values()) == made.promised.get(uuid, [0, 0, 0])
    assert found["findings"] == []


def test_files_of_kubectl_say_the_same(made: Made, tmp_path):
    for name, arguments in (("nodes", ("nodes",)), ("pods", ("pods", "-A"))):
        (tmp_path / name).write_text(made.cluster.kubectl("get", *arguments, "-o", "json").stdout)
    offline = _usage(made, "--fleet", str(tmp_path / "nodes"), "--pods", str(tmp_path / "pods"))
    live = _usage(made)
    for one in (offline, live):
        for node in one["nodes"]:
            for card in node["cards"]:
                card["pods"].sort(key=lambda pod: (pod["namespace"], pod["name"]))
    assert offline == live


def test_the_metrics_agree(made: Made):
    client = Client(Credentials(made.cluster.kubeconfig))
    inputs = read_inputs(client, ClusterOptions(made.cluster.kubeconfig, None), FileSettings())
    source = ClusterSource(lambda: client, lambda: (inputs, inputs.snapshot()), pytest.fail)
    text = exposition(source.read(None).live).decode()
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    booked = {one.labels["card"]: one.value for one in samples if one.name.endswith("card_booked_memory_mib")}
    assert {card: value for card, value in booked.items() if value} == {
        card: amounts[1] for card, amounts in made.booked.items()
    }
    assert len(list(client.list(NODES))) == NODE_COUNT
