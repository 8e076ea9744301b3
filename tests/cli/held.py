"""Pods that hold slices of the cards of a fleet."""

import yaml

from tests.cli.conftest import FLEETS, pod, vgpus
from webhook import names

FLEET = FLEETS / "mixed.yaml"
PODS = "/api/v1/pods"
ITEMS = yaml.safe_load(FLEET.read_text())["items"]


def card(node, number):
    annotations = next(item for item in ITEMS if item["metadata"]["name"] == node)["metadata"]["annotations"]
    return annotations[names.NODE_VGPU_REGISTER].split(":")[number].split(",")[0]


def pod_with_slice(name, node, number, memory, namespace="team"):
    metadata = {"namespace": namespace, "annotations": {names.VGPU_IDS: f"{card(node, number)},NVIDIA,{memory},20:"}}
    made = pod(name, limits=vgpus(1, memory, 20), metadata=metadata, nodeName=node)
    return made | {"status": {"phase": "Running"}}
