"""Random settings and pods with what the laws are about: mixed kubelets and cards, MIG, zero amounts, dialects, exceptions."""

import copy
import random
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import Any

import yaml

from tests import strategies
from tests.reviewing import CONFIG, DATA, request
from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import review, validate
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

DOCUMENT = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())
DAY = date(2026, 8, 1)
CARDS = [
    ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920),
    ("NVIDIA-NVIDIA A30", 24576),
    ("NVIDIA-NVIDIA GeForce RTX 4090", 24564),
    ("NVIDIA-Tesla T4", 15360),
]
LEVELS = ("off", "audit", "warn", "deny")
AMOUNTS = {
    names.VGPU_NUMBER: [1, 1, 1, 2, 3, 4],
    names.VGPU_MEMORY: [0, 1, 16, 1000, 4000, 15360, 20000, 24000, 40000, 90000, 2**20, "1048580", "8Gi"],
    names.VGPU_CORES: [0, 30, 50, 100, 150],
    names.VGPU_MEMORY_PERCENTAGE: [0, 1, 50, 60, 78, 100, 100, 101],
}


@dataclass(frozen=True)
class Scenario:
    """The settings and a pod: nodes as the API server has them, None if unknown, and keys over the device config's."""

    pod: dict[str, Any]
    nodes: list[dict[str, Any]] | None
    nvidia: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)

    def but(self, **changes: Any) -> "Scenario":
        """The same with other fields."""
        return replace(self, **changes)

    def with_policy(self, **keys: Any) -> "Scenario":
        return replace(self, policy={**self.policy, **keys})

    @property
    def config(self) -> DeviceConfig:
        return _config(tuple(sorted(self.nvidia.items())))

    @property
    def snapshot(self) -> Snapshot:
        nodes = None if self.nodes is None else read_nodes(self.nodes, self.config)
        return SnapshotInputs(self.config, parse_policy(self.policy, "the policy"), nodes).snapshot()

    @property
    def request(self) -> Request:
        return request(self.pod, namespace="team-a", day=DAY)

    def review(self) -> Outcome:
        return review(self.request, self.snapshot)

    def validate(self) -> Outcome:
        return validate(self.request, self.snapshot)

    def __str__(self) -> str:
        return yaml.safe_dump(copy.deepcopy(vars(self)), sort_keys=False, default_flow_style=None, width=160)


@cache
def _config(nvidia: tuple[tuple[str, Any], ...]) -> DeviceConfig:
    if not nvidia:
        return CONFIG
    return parse_device_config({**DOCUMENT, "nvidia": {**DOCUMENT["nvidia"], **dict(nvidia)}}, "the device config")


def scenario(chance: random.Random) -> Scenario:
    """Settings and a pod."""
    nvidia: dict[str, Any] = {"defaultGPUNum": chance.choice([0, 1, 1, 1, 2, 4])}
    for key, values in (("defaultMemory", [0, 0, 4000, 40000]), ("defaultCores", [0, 0, 0, 20, 60])):
        nvidia[key] = chance.choice(values)
    nvidia["gpuMemoryFactor"] = chance.choice([1, 1, 1, 10])
    nvidia["overwriteEnv"] = chance.random() < 0.2
    nodes = [node(chance, f"n{number}") for number in range(chance.choice([1, 1, 2, 2, 3]))]
    known = chance.random() < 0.93
    return Scenario(pod(chance), nodes if known else None, nvidia, policy(chance))


def policy(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chance.random() < 0.3:
        found["memoryAboveCard"] = "deny"
    if chance.random() < 0.4:
        found["percentage"] = {"mixedCards": chance.choice(["deny", "smallest", "largest"])}
    if chance.random() < 0.2:
        found["dialects"] = {chance.choice(["hami", "kai", "aliyun"]): "translate"}
    if chance.random() < 0.2:
        found["namespaces"] = [{"match": ["team-*"], "limits": _limits_of_policy(chance)}]
    fleet: dict[str, Any] = {}
    if chance.random() < 0.1:
        fleet["autoscaled"] = True
    if chance.random() < 0.15:
        kind, memory = chance.choice(CARDS)
        fleet["declared"] = [
            {"name": "declared", "cards": [{"type": kind, "memory": memory, "count": chance.choice([1, 4])}]}
        ]
    if fleet:
        found["fleet"] = fleet
    if chance.random() < 0.2:
        found["target"] = {"volcano": chance.choice(["1.13.0", "1.15.0"]), "devicePlugin": "1.11.0"}
    return found


def _limits_of_policy(chance: random.Random) -> dict[str, Any]:
    found = {"memory": chance.choice([{"max": 500}, {"max": 3000}, {"max": 30000}, {"min": 3000, "max": 5000}])}
    others = [{"cores": {"max": 10}}, {"cores": {"min": 30, "max": 50}}, {"number": {"max": 2}}, {}, {}]
    cards = [{"deny": [{"type": "T4"}]}, {"allow": [{"type": "A100", "count": 2}]}]
    return found | chance.choice(others) | ({"cards": chance.choice(cards)} if chance.random() < 0.4 else {})


_OTHERS = {
    "gpushare": lambda name: strategies.gpushare_node(name, 2, 2 * 15360),
    "ascend": lambda name: strategies.ascend_node(name, [(7, 21527, 8)] * 2, "Ascend310P"),
    "8 AI cores": lambda name: strategies.mindcluster_node(name, 80, "Ascend310P-8"),
    "10 AI cores": lambda name: strategies.mindcluster_node(name, 80, "Ascend310P-10-dual"),
}


def node(chance: random.Random, name: str) -> dict[str, Any]:
    """A node with vGPUs mostly, of one or two kinds of cards, and with an old kubelet or a new one."""
    if chance.random() < 0.75:
        some = chance.sample(CARDS, chance.choice([1, 1, 2]))
        found = strategies.node_json(
            name,
            strategies.register(
                [chance.choice(some) for _ in range(chance.choice([1, 2, 4]))],
                chance.choice(["hami-core", "hami-core", "mig"]),
                prefix=f"GPU-{name}",
            ),
        )
        if chance.random() < 0.1:
            found["status"]["allocatable"][chance.choice([names.NVIDIA_GPU, "nvidia.com/mig-1g.5gb"])] = "2"
    else:
        found = _OTHERS[chance.choice(list(_OTHERS))](name)
    found["status"]["nodeInfo"] = {"kubeletVersion": chance.choice(["v1.35.0", "v1.36.1"])}
    found["metadata"].setdefault("labels", {})["zone"] = chance.choice(["a", "b"])
    return found


def pod(chance: random.Random) -> dict[str, Any]:
    containers = [container(chance, f"c{number}") for number in range(chance.choice([1, 1, 1, 2, 2, 3]))]
    annotations = {
        key: chance.choice(values)
        for key, values, share in (
            (names.VGPU_MODE, ["hami-core", "mig", "HAMi-core"], 0.12),
            (names.USE_GPUTYPE, ["A100", "T4", "A100,T4", "4090"], 0.15),
            (names.NOUSE_GPUTYPE, ["T4", "V100", "V100,"], 0.1),
            ("gpu-fraction", ["0.5"], 0.03),
        )
        if chance.random() < share
    }
    spec: dict[str, Any] = {"containers": containers}
    if chance.random() < 0.15:
        spec["nodeSelector"] = {"zone": chance.choice(["a", "b", "none"])}
    metadata: dict[str, Any] = {"name": "pod", "annotations": annotations, "labels": {}}
    if any(names.NPU_CORE in each["resources"]["limits"] for each in containers):
        metadata["labels"][names.RING_CONTROLLER] = names.RING_CONTROLLER_310P
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def container(chance: random.Random, name: str) -> dict[str, Any]:
    """A container that requests vGPUs mostly, or other devices, amounts of 0, or nothing."""
    limits = {resource: str(amount) for resource, amount in _limits(chance).items()}
    return {"name": name, "image": "a", "resources": {"limits": limits, "requests": dict(limits)}}


def _limits(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.6:
        shares = zip(AMOUNTS, (0.8, 0.55, 0.25, 0.2), strict=True)
        limits = {resource: chance.choice(AMOUNTS[resource]) for resource, share in shares if chance.random() < share}
        return limits | chance.choices([{}, {"volcano.sh/vgpu-numbr": 1}, {"nvidia.com/gpumem": 1000}], [94, 3, 3])[0]
    dialect = {chance.choice(["nvidia.com/gpumem", "nvidia.com/gpumem-percentage"]): chance.choice([50, 100])}
    idle = (names.VGPU_CORES, names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE, names.GPUSHARE_MEMORY)
    chip = "huawei.com/Ascend310P"
    return chance.choice(
        [
            {},
            {},
            {names.NVIDIA_GPU: 1} | chance.choice([{}, dialect]),
            {chance.choice([names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY]): 1},
            {chip: chance.choice([1, 1, 2])}
            | chance.choice([{}, {f"{chip}-memory": chance.choice([0, 3000, 5000, 30000])}]),
            {names.NPU_CORE: chance.choice([1, 3, 8, 10])},
            {chance.choice([names.NVIDIA_GPU, "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "cpu"]): 1},
            {chance.choice(idle): 0},
        ]
    )


# --- short forms ----------------------------------------------------------------------------------------------------

SHORT = {"number": names.VGPU_NUMBER, "memory": names.VGPU_MEMORY, "cores": names.VGPU_CORES}
SHORT["percentage"] = names.VGPU_MEMORY_PERCENTAGE


def written(case: dict[str, Any]) -> Scenario:
    """The scenario of a short form, as in `found.yaml`."""
    containers = []
    for number, short in enumerate(case["containers"]):
        limits = {SHORT.get(key, key): str(amount) for key, amount in short.items()}
        containers.append(
            {"name": f"c{number}", "image": "a", "resources": {"limits": limits, "requests": dict(limits)}}
        )
    metadata = {"name": "pod", "annotations": case.get("annotations", {}), "labels": case.get("labels", {})}
    spec = {"containers": containers, **case.get("spec", {})}
    found = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    nodes = None if case["nodes"] is None else [_node(f"n{at}", text) for at, text in enumerate(case["nodes"])]
    return Scenario(found, nodes, case.get("nvidia", {}), case.get("policy", {}))


def _node(name: str, text: str) -> dict[str, Any]:
    if text in _OTHERS:
        return _OTHERS[text](name)
    cards, *words = text.split()
    parts = [tuple(map(int, part.split("x"))) for part in cards.split("+")]
    sizes = [memory for number, memory in parts for _ in range(number)]
    kind = next((word for word in words if word[0].isupper()), "A100")
    mode = "mig" if "mig" in words else "hami-core"
    found = strategies.node_json(
        name, strategies.register([(f"NVIDIA-{kind}", memory) for memory in sizes], mode, prefix=f"GPU-{name}")
    )
    if "native" in words:
        found["status"]["allocatable"][names.NVIDIA_GPU] = "2"
    found["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.1" if "new" in words else "v1.35.0"}
    found["metadata"]["labels"] = dict([word.split("=") for word in words if "=" in word])
    return found
