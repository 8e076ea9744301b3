"""Seeded random fleets of vGPU nodes, each with pods that are close to what its nodes have, where verdicts differ."""

import copy
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.reviewing import DATA
from webhook import names
from webhook.volcano.scheduler import POLICIES

Object = dict[str, Any]

# The type that the device plugin registers, and MiB.
CARDS = [
    ("NVIDIA-NVIDIA H100 80GB HBM3", 81559),
    ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920),
    ("NVIDIA-NVIDIA A100-SXM4-40GB", 40960),
    ("NVIDIA-NVIDIA A30", 24576),
    ("NVIDIA-NVIDIA GeForce RTX 4090", 24564),
    ("NVIDIA-NVIDIA A10", 23028),
    ("NVIDIA-Tesla V100-SXM2-32GB", 32768),
    ("NVIDIA-Tesla T4", 15360),
]
TYPES = ["A100", "a100", "T4", "4090", "A10", "A30,V100", "H100,a100", "NVIDIA", "A100-SXM4-40GB", "B200", "T4,B200"]
NUMBERS = [1, 1, 1, 1, 2, 2, 3, 4, 5, 8, 9]
CORES = [0, 1, 10, 30, 33, 34, 50, 51, 60, 99, 100]
VGPU_CONFIG: Object = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())["nvidia"]
OWN_NAMES = {
    "resourceCountName": "example.com/gpu",
    "resourceMemoryName": "example.com/gpumem",
    "resourceCoreName": "example.com/gpucores",
    "resourceMemoryPercentageName": "example.com/gpumem-percentage",
}


@dataclass(frozen=True, slots=True)
class RandomFleet:
    """A fleet and its pods as in the API, with Volcano's device config and the webhook's policy, but for its target.

    Without a `schedule_policy` the webhook does not know the scheduler's deviceshare.SchedulePolicy.
    """

    config: Object
    policy: Object
    schedule_policy: str | None
    nodes: list[Object]
    pods: list[Object]


@dataclass(frozen=True, slots=True)
class _Card:
    uuid: str
    slots: int
    memory: int  # in units of gpuMemoryFactor
    type: str
    healthy: bool


def node(name: str, annotations: Mapping[str, str], amounts: Mapping[str, int]) -> Object:
    """A node with these devices, all of which it offers."""
    resources = {"cpu": "128", "memory": "512Gi", "pods": "110"} | {key: str(value) for key, value in amounts.items()}
    metadata, status = {"name": name, "annotations": annotations}, {"allocatable": resources, "capacity": {**resources}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, containers: list[Object], annotations: Mapping[str, str] | None = None) -> Object:
    """A pod for Volcano."""
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    spec = {"schedulerName": "volcano", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def container(name: str, amounts: Mapping[str, int]) -> Object:
    """A container that requests these amounts."""
    limits = {key: str(value) for key, value in amounts.items()}
    return {"name": name, "image": "cuda", "resources": {"limits": limits, "requests": dict(limits)}}


def random_fleet(rng: random.Random, pods: int) -> RandomFleet:
    """A fleet of one to three nodes with so many pods."""
    nvidia = copy.deepcopy(VGPU_CONFIG)
    nvidia["gpuMemoryFactor"] = rng.choice([1, 1, 1, 2, 10])
    if rng.random() < 0.15:
        nvidia.update(OWN_NAMES)
    if rng.random() < 0.15:
        memory = rng.choice([0, 5000, 50000]) // nvidia["gpuMemoryFactor"]
        nvidia.update(defaultMemory=memory, defaultCores=rng.choice(CORES))
    nodes = [_cards(rng, nvidia["gpuMemoryFactor"]) for _ in range(rng.choice([1, 1, 2, 3]))]
    cards = [card for node in nodes for card in node]
    return RandomFleet(
        {"nvidia": nvidia},
        rng.choice([{}, {"memoryAboveCard": "deny"}]),
        rng.choice([None, *POLICIES]),
        [_node(rng, f"gpu-{index}", node, nvidia) for index, node in enumerate(nodes)],
        [_pod(rng, f"pod-{index}", cards, nvidia) for index in range(pods)],
    )


def _cards(rng: random.Random, factor: int) -> list[_Card]:
    kinds = rng.sample(CARDS, rng.choice([1, 1, 2, 3]))
    slots = rng.choice([1, 2, 3, 10])

    def card() -> _Card:
        kind, memory = rng.choice(kinds)
        identity = f"GPU-{uuid.UUID(int=rng.getrandbits(128))}"
        return _Card(identity, slots, memory // factor, kind, rng.random() < 0.95)

    return [card() for _ in range(rng.choice([1, 2, 3, 4, 8, 16]))]


def _node(rng: random.Random, name: str, cards: list[_Card], nvidia: Object) -> Object:
    mode = rng.choice(["hami-core", "hami-core", "mig"])
    register = "".join(f"{c.uuid},{c.slots},{c.memory},{c.type},{str(c.healthy).lower()},{mode}:" for c in cards)
    if rng.random() < 0.05:
        register = register[: rng.randrange(len(register))]
    annotations = {names.NODE_VGPU_REGISTER: register}
    # An older scheduler writes to the API server where it reads another word than these; there is none.
    handshake = rng.choice(["Requesting_2099.01.01 00:00:00"] * 12 + ["Deleted_2026.11.01 00:00:00", None])
    if handshake is not None:
        annotations[names.NODE_VGPU_HANDSHAKE] = handshake
    amounts = {
        nvidia["resourceCountName"]: sum(card.slots for card in cards),
        nvidia["resourceMemoryName"]: sum(card.memory for card in cards),
        nvidia["resourceCoreName"]: 100 * len(cards),
    }
    for resource in list(amounts):  # the device plugin has just started, or was stopped
        change = rng.random()
        if change < 0.02:
            del amounts[resource]
        elif change < 0.04:
            amounts[resource] = 0
        elif change < 0.08:
            amounts[resource] //= 2
    return node(name, annotations, amounts)


def _pod(rng: random.Random, name: str, cards: list[_Card], nvidia: Object) -> Object:
    containers = [_container(rng, f"c{index}", cards, nvidia) for index in range(rng.choice([1, 1, 1, 2, 3]))]
    if rng.random() < 0.1:
        containers.insert(rng.randint(0, len(containers)), {"name": "side", "image": "envoy"})
    return pod(name, containers, _annotations(rng, cards))


def _annotations(rng: random.Random, cards: list[_Card]) -> dict[str, str]:
    found = {}
    for annotation in (names.USE_GPUTYPE, names.NOUSE_GPUTYPE):
        if rng.random() < 0.12:
            found[annotation] = rng.choice(TYPES)
    if rng.random() < 0.15:
        found[names.VGPU_MODE] = rng.choice(["hami-core", "mig"])
    for annotation in (names.USE_GPUUUID, names.NOUSE_GPUUUID):
        if rng.random() < 0.08:
            chosen = rng.sample(cards, rng.randint(1, min(4, len(cards))))
            found[annotation] = ",".join([card.uuid for card in chosen] + rng.choice([[], ["GPU-0"]]))
    return found


def _container(rng: random.Random, name: str, cards: list[_Card], nvidia: Object) -> Object:
    limits = {}
    if rng.random() < 0.9:
        limits[nvidia["resourceCountName"]] = rng.choice([*NUMBERS, len(cards)])
    form = rng.random()
    if form < 0.1:
        limits[nvidia["resourceMemoryPercentageName"]] = rng.choice([1, 10, 33, 50, 99, 100])
    elif form < 0.8 or not limits:
        limits[nvidia["resourceMemoryName"]] = _memory(rng, cards, nvidia)
    if rng.random() < 0.5:
        limits[nvidia["resourceCoreName"]] = rng.choice(CORES)
    return container(name, limits)


def _memory(rng: random.Random, cards: list[_Card], nvidia: Object) -> int:
    """Around the whole of a card, a share of it, or an instance of MIG."""
    if rng.random() < 0.25:
        groups = rng.choice(nvidia["knownMigGeometries"])["allowedGeometries"]
        memory = rng.choice(rng.choice(groups)["geometries"])["memory"]
    else:
        memory = rng.choice(cards).memory // rng.choice([1, 1, 2, 2, 3, 4, 10, 100])
    return max(1, memory + rng.choice([-1, 0, 0, 1]))
