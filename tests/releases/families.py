"""Seeded random fleets of gpushare cards, Ascend NPUs and MindCluster's chips, each with pods close to what the nodes have."""

import json
import random
from collections.abc import Callable, Mapping

import yaml

from tests.releases.fleets import Object, RandomFleet, container, node, pod
from tests.reviewing import DATA
from webhook import names

CHIPS: list[Object] = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())["vnpus"]["configs"]
STATIC = dict.fromkeys(
    ["ascend-memory-oversize", "ascend-partial-several", "count-missing"], "off"
)  # it may place them


def gpushare(rng: random.Random, pods: int, *, by_memory: bool) -> RandomFleet:
    """Nodes of `deviceshare.GPUSharingEnable`: each pod requests memory; or of `GPUNumberEnable`: each requests whole cards."""
    nodes = [_cards(rng, f"gpu-{index}") for index in range(rng.choice([1, 2, 3]))]
    sizes = [node["status"]["capacity"] for node in nodes]
    card = [int(size[names.GPUSHARE_MEMORY]) // int(size[names.GPUSHARE_NUMBER]) for size in sizes]

    def amounts() -> dict[str, int]:
        if not by_memory:
            return {names.GPUSHARE_NUMBER: rng.choice([1, 1, 2, 3, 4, 8, 9])}
        return {names.GPUSHARE_MEMORY: max(1, rng.choice(card) // rng.choice([1, 1, 2, 3]) + rng.choice([-1, 0, 0, 1]))}

    return _fleet(nodes, [_pod(rng, f"pod-{index}", amounts) for index in range(pods)])


def ascend(rng: random.Random, pods: int) -> RandomFleet:
    """Nodes that HAMi's ascend-device-plugin registers; each pod requests one kind of NPU."""
    kinds = rng.sample(CHIPS, rng.choice([1, 1, 2]))
    nodes = [_npus(rng, f"npu-{index}", rng.choice(kinds)) for index in range(rng.choice([1, 1, 2, 3]))]
    found = []
    for index in range(pods):
        chip = rng.choice(kinds)
        pod = _pod(rng, f"pod-{index}", lambda chip=chip: _npu_amounts(rng, chip))
        if rng.random() < 0.4:
            pod["metadata"]["annotations"] = {names.VNPU_MODE: rng.choice(["hami-core", "hami-core", "vnpu"])}
        found.append(pod)
    return _fleet(nodes, found, {"vnpus": CHIPS}, {"rules": STATIC})


def mindcluster(rng: random.Random, pods: int) -> RandomFleet:
    """Nodes with Ascend 310P chips of 8 or 10 cores, all of them healthy."""
    sizes = rng.choice([[8], [8], [10], [8, 10]])
    nodes = [_chips(rng, f"npu-{index}", rng.choice(sizes)) for index in range(rng.choice([1, 1, 2, 3]))]
    found = []
    for index in range(pods):
        pod = _pod(
            rng, f"pod-{index}", lambda: {names.NPU_CORE: rng.choice([1, 2, 4, 4, 3, 5, 8, 10, 16, 20, 24, 32, 64])}
        )
        labels = pod["metadata"]["labels"] = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}
        for label, words in ((names.VNPU_LEVEL, ["low", "high"]), (names.VNPU_DVPP, ["yes", "no", "null"])):
            if rng.random() < 0.3:
                labels[label] = rng.choice(words)
        found.append(pod)
    return _fleet(nodes, found)


def _fleet(
    nodes: list[Object], pods: list[Object], config: Object | None = None, policy: Object | None = None
) -> RandomFleet:
    return RandomFleet(config or {}, policy or {}, "default", nodes, pods)


def _cards(rng: random.Random, name: str) -> Object:
    cards = rng.choice([1, 2, 4, 8])
    amounts = {names.GPUSHARE_NUMBER: cards, names.GPUSHARE_MEMORY: cards * rng.choice([16384, 40960, 81559])}
    node = _node(rng, name, amounts)
    if rng.random() < 0.3:
        broken = rng.sample(range(cards + 1), rng.choice([1, min(2, cards)]))
        node["metadata"]["annotations"][names.GPU_UNHEALTHY_IDS] = rng.choice([",", ", "]).join(map(str, broken))
    return node


def _npus(rng: random.Random, name: str, chip: Object) -> Object:
    split = rng.choice([1, 2, 7])
    memories = [chip["memoryAllocatable"], chip["memoryCapacity"]]
    register = [
        {
            "id": f"{name}-{index}",
            "index": index,
            "count": split,
            "devmem": rng.choice(memories) if rng.random() < 0.9 else rng.choice(memories) // 2,
            "devcore": chip["aiCore"],
            "type": chip["commonWord"],
            "numa": 0,
            "health": rng.random() < 0.95,
        }
        for index in range(rng.choice([1, 2, 4, 8]))
    ]
    text = json.dumps(register)
    if rng.random() < 0.03:
        text = text[:-1]
    node = _node(rng, name, {chip["resourceName"]: split * len(register)})
    node["metadata"]["annotations"][names.NODE_ASCEND_REGISTER_PREFIX + chip["commonWord"]] = text
    if rng.random() < 0.5:
        node["metadata"]["annotations"][names.NODE_VNPU_HAMI_CORE] = rng.choice(["true", "true", "false"])
    if rng.random() < 0.05:
        node["status"]["allocatable"][f"{chip['resourceName']}-core"] = "100"
    return node


def _npu_amounts(rng: random.Random, chip: Object) -> dict[str, int]:
    number, memory, cores = (chip["resourceName"] + suffix for suffix in ("", "-memory", "-core"))
    amounts = {}
    if rng.random() < 0.85:
        amounts[number] = rng.choice([1, 1, 1, 2, 3, 4, 8, 9])
    if rng.random() < 0.6 or not amounts:
        sizes = [template["memory"] for template in chip["templates"]]
        near = rng.choice([*sizes, chip["memoryAllocatable"], chip["memoryCapacity"]])
        amounts[memory] = near + rng.choice([-1, 0, 0, 0, 1])
    if rng.random() < 0.3:
        amounts[cores] = rng.choice([0, 1, 20, 50, 99, 100, 101])
    return amounts


def _chips(rng: random.Random, name: str, size: int) -> Object:
    node = _node(rng, name, {names.NPU_CORE: size * rng.choice([1, 2, 4, 8])})
    node["metadata"]["labels"] = {names.NODE_SERVER_TYPE: f"Ascend310P-{size}{rng.choice(['', '-dual'])}"}
    return node


def _node(rng: random.Random, name: str, amounts: Mapping[str, int]) -> Object:
    found = node(name, {}, amounts)
    allocatable = found["status"]["allocatable"]
    for resource, amount in amounts.items():  # the device plugin has just started, was stopped, or found broken devices
        change = rng.random()
        if change < 0.03:
            del allocatable[resource]
        elif change < 0.12:
            allocatable[resource] = "0" if change < 0.06 else str(amount // 2)
    return found


def _pod(rng: random.Random, name: str, amounts: Callable[[], Mapping[str, int]]) -> Object:
    return pod(name, [container(f"c{index}", amounts()) for index in range(rng.choice([1, 1, 1, 2, 3]))])
