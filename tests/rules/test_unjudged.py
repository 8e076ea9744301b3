"""Devices that the webhook does not judge: which they are, whether a node offers them, and what to write instead."""

from typing import Any

from tests.cases import each_case
from tests.reviewing import snapshot
from webhook.pod.view import PodView
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.unjudged import MAX_UNJUDGED, unjudged_devices
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation

SLICE = "; for a slice of a card write volcano.sh/vgpu-number: 1, and volcano.sh/vgpu-memory in MiB (without it, a whole card)"
MIG = (
    "; for a slice of its size write volcano.sh/vgpu-number: 1, and volcano.sh/vgpu-memory: 5120, with the annotation "
    "volcano.sh/vgpu-mode: mig for an instance"
)
LABEL = "; Volcano reads it on pods with the label ring-controller.atlas: ascend-310P"
NODES = snapshot(raw=[{"metadata": {"name": "plain"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}])


def found(limits: dict[str, Any], settings: Snapshot, **resources: Any) -> list[tuple[str, str]]:
    raw = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits, **resources}}]}}
    context = settings.context_of(creation("u", "v1", "Pod", "default", raw))
    return [(device.resource, device.about) for device in unjudged_devices(ReviewedPod(PodView(raw), context))]


@each_case(
    ("resource", "fleet", "about"),
    [
        ("nvidia.com/gpu", None, f"whether a node offers it is not known{SLICE}"),
        ("nvidia.com/mig-1g.5gb", None, f"whether a node offers it is not known{MIG}"),
        ("cambricon.com/mlu", None, "whether a node offers it is not known"),
        ("nvidia.com/mig-1g.5gb", "mixed", None),  # a finding of resource-not-offered
        ("huawei.com/npu-core", "npu-core", f"no node offers it{LABEL}"),
        ("huawei.com/Ascend910", "other-plugins", "node npu-c offers it"),
        ("volcano.sh/vgpu-number", "mixed", None),
        ("volcano.sh/vgpu-num", "mixed", None),  # a finding of unknown-resource
        ("rdma/hca", "mixed", None),
        ("cpu", "mixed", None),
    ],
)
def test_devices_of_other_plugins(resource: str, fleet: str | None, about: str | None):
    settings = snapshot(fleet) if fleet else snapshot()
    assert found({resource: "1"}, settings) == ([(resource, about)] if about else [])
    assert found({resource: "0"}, settings) == []


def test_a_node_that_has_no_other_devices_offers_them():
    assert found({"nvidia.com/gpu": "1"}, NODES) == [("nvidia.com/gpu", "node plain offers it")]
    beside = found({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}, snapshot("two-families"))
    assert beside == [("nvidia.com/gpu", "node both offers it")]


def test_resource_claims():
    about = f"the devices of a ResourceClaim are not read{SLICE}"
    assert found({}, snapshot("mixed"), claims=[{"name": "gpu"}]) == [("resources.claims", about)]
    assert found({}, snapshot("mixed"), claims=[]) == []


def test_the_number_of_sentences_is_bounded():
    assert len(found({f"nvidia.com/mig-{n}": "1" for n in range(1000)}, NODES)) == MAX_UNJUDGED
