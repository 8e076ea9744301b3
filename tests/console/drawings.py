"""Pods, fleets and their explanations, which hold the drawings."""

import yaml

from tests.reviewing import CONFIG, DATA
from webhook.devices.explanation import PlacementRequest
from webhook.devices.fleet import build_fleet
from webhook.pod.view import PodView
from webhook.rules.context import Context, KnownCluster
from webhook.rules.policy_keys import EffectiveSettings, PolicyKeys
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.settings.snapshot import read_nodes
from webhook.volcano.target import Target
from webhook.wire.codec import creation

SETTINGS, TARGET = PolicyKeys(), Target((1, 16, 0))


def fleet_of(nodes, config=CONFIG):
    return build_fleet(read_nodes(nodes, config), config, TARGET)


def nodes_in(file):
    documents = yaml.safe_load_all((DATA / "fleets" / file).read_text(encoding="utf-8"))
    return [item for document in documents if document for item in document.get("items", [document])]


def fleet_in(file, config=CONFIG):
    return fleet_of(nodes_in(file), config)


def explained(pod, fleet, config=CONFIG):
    cluster = KnownCluster(config=config, policy=SETTINGS, target=TARGET, fleet=fleet)
    context = Context(creation("", "v1", "Pod", "ns", pod), cluster, EffectiveSettings())
    reviewed = ReviewedPod(PodView(pod), context)
    return [
        explanation
        for name, family in cluster.families.items()
        if reviewed.requests_family(name)
        for explanation in PlacementRequest(reviewed, family, reviewed.matches(name), context.denies).explain(
            fleet.parts[name]
        )
    ]


def shapes_explained(pod, fleet, config=CONFIG):
    return [
        shape_explanation
        for explanation in explained(pod, fleet, config)
        for shape_explanation in explanation.shapes or ()
    ]


def pod(*containers, annotations=None, labels=None):
    """A pod of containers (name, limits)."""
    listed = [
        {"name": name, "resources": {"limits": {key: str(value) for key, value in limits.items()}}}
        for name, limits in containers
    ]
    return {"metadata": {"annotations": annotations or {}, "labels": labels or {}}, "spec": {"containers": listed}}


def many_cards(count, split=10, memory=1000, mode="hami-core"):
    register = "".join(f"u{at},{split},{memory},NVIDIA-T4,true,{mode}:" for at in range(count))
    offers = {f"volcano.sh/vgpu-{role}": "100000000" for role in ("number", "memory", "cores")}
    metadata = {"name": "big", "annotations": {"volcano.sh/node-vgpu-register": register}}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": offers}}
