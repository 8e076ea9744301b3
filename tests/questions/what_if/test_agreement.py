"""`why`, `what-if` and `usage` of one cluster agree with one another, and with a small model of the scheduler."""

from itertools import takewhile
from pathlib import Path
from random import Random

import pytest
import yaml

from tests import reviewing
from tests.questions.why.clusters import CHIP, CHIPS, MEMORY, Cluster, conf, gpu_node, group, node, pod, written
from tests.strategies import ascend_node, gpushare_node
from webhook import names
from webhook.devices.usage import report
from webhook.questions.what_if.answer import WhatIf, what_if
from webhook.questions.what_if.changes import FleetChange, parse_addition
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.placing import Fate

FATES = {
    WaitVerdict.FITS_NOW: {Fate.STARTS, Fate.DEPENDS},
    WaitVerdict.NOT_NOW: {Fate.WAITS},
    WaitVerdict.NEVER: {Fate.WAITS, Fate.NEVER},
}


def ahead(cluster: Cluster, **change) -> WhatIf:
    return what_if(cluster.state, cluster.inputs, FleetChange(**change))


def fates(cluster: Cluster):
    return {found.name: found.before for found in ahead(cluster).waiting}


TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
CASES = {case["case"]: case for case in yaml.safe_load(Path(__file__).with_name("agreement.yaml").read_text())}


@pytest.mark.parametrize(
    ("arguments", "amounts", "verdict"),
    [
        ({"VGPUEnable": True}, {"number": 1}, "fits-now"),
        ({"VGPUEnable": False}, {"number": 1}, "never"),
        ({"VGPUEnable": None}, {"number": 1}, "never"),
        ({"VGPUEnable": None, "GPUNumberEnable": True}, {"gpus": 1}, "fits-now"),
        ({"VGPUEnable": None, "GPUNumberEnable": True}, {"gpu_memory": 1}, "never"),
        ({"VGPUEnable": None, "GPUSharingEnable": True}, {"gpus": 1}, "never"),
        ({"VGPUEnable": None, "GPUSharingEnable": True}, {"gpus": 1, "gpu_memory": 1}, "fits-now"),
    ],
)
def test_what_the_scheduler_leaves_out(arguments, amounts, verdict):
    nodes = [gpu_node("n0", 1), gpushare_node("shared", 2, 32000)]
    cluster = Cluster(nodes, [pod("a", **amounts)], scheduler=conf("gang", **arguments))
    assert cluster.listed == {"a": verdict}
    assert fates(cluster)["a"] in FATES[WaitVerdict(verdict)]


@pytest.mark.parametrize(
    ("mark", "fate"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, Fate.STARTS),
        ({"spec": {"unschedulable": True}}, Fate.STARTS),
        ({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}, Fate.STARTS),
        ({"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}, Fate.STARTS),
        ({"spec": {"taints": [TAINT]}}, Fate.WAITS),
    ],
)
def test_a_node_that_is_added_has_only_the_taints_that_last(mark, fate):
    cluster = Cluster([node("n0", cards=1, **mark)], [pod("a", number=1)])
    (found,) = ahead(cluster, add=(parse_addition("n0"),)).waiting
    assert (found.before, found.after) == (Fate.WAITS, fate)


@pytest.mark.parametrize("case", CASES)
def test_a_pod_and_its_gang_have_one_fate(case):
    given = CASES[case]
    groups = [group("other" if "other" in given else "g", **given["group"])] if "group" in given else []
    pods = {each["name"]: written(**each) for each in given["pods"]}
    cluster = Cluster(
        [node(name, **fields) for name, fields in given["nodes"].items()], [*groups, *pods.values()], CHIPS
    )
    verdicts, expected, found = cluster.listed, given["verdict"], fates(cluster)
    assert verdicts == (expected if isinstance(expected, dict) else dict.fromkeys(pods, expected))
    assert found.keys() == verdicts.keys()
    for name, verdict in verdicts.items():
        assert cluster.why(pods[name]).verdict is verdict
        assert found[name] in FATES[verdict], name


# --- random clusters --------------------------------------------------------------------------------------------------

SEEDS = 40
NPU = 65536
TEMPLATES = (16384, 32768, NPU)


class Naive:
    """A node as Volcano counts it, for pods of one container that request one device or more of one family.

    Attributes:
        totals: what the node offers and pods have not requested: devices, memory and cores.
        cards: what each slice has of memory and cores, and its MIG instance.
        memory, split: of each card: its memory, and the most slices.
    """

    def __init__(self, family, cards, memory, split):
        self.family, self.memory, self.split = family, memory, split
        self.totals = [cards * split, cards * memory, cards * 100]
        self.cards = [[] for _ in range(cards)]

    def copy(self):
        found = type(self)(self.family, 0, self.memory, self.split)
        found.totals, found.cards = list(self.totals), [list(card) for card in self.cards]
        return found

    def empty(self):
        return type(self)(self.family, len(self.cards), self.memory, self.split)

    def accounted(self, wanted):
        """The memory that a slice takes of a card."""
        if self.family != "ascend":
            return wanted.get("memory", self.memory)
        return next(size for size in TEMPLATES if wanted.get("memory", NPU) <= size)

    def request(self, wanted):
        """Count what the node's totals lose; False if they have too little."""
        number, memory = wanted.get("number", 0), 0 if self.family == "ascend" else wanted.get("memory", 0)
        lost = [number, memory, wanted.get("cores", 0) if self.family in OF_CARDS else 0]
        self.totals = [had - less for had, less in zip(self.totals, lost, strict=True)]
        return min(self.totals) >= 0

    def takes(self, card, wanted):
        """The slice that a card gives; None if it gives none."""
        memory, cores = self.accounted(wanted), wanted.get("cores", 0)
        held, busy = (sum(each[at] for each in card) for at in (0, 1))
        if len(card) >= self.split or held + memory > self.memory:
            return None
        exclusive = busy + cores > 100 or (cores == 100 and card) or (busy == 100 and not cores)
        return None if self.family in OF_CARDS and exclusive else self.slice(card, memory, cores)

    def slice(self, _card, memory, cores):
        return memory, cores, ""

    def place(self, wanted, only=None):
        """Give a pod its devices; None if the node does not take it, else their numbers and slices."""
        slices = {at: self.takes(card, wanted) for at, card in enumerate(self.cards) if only is None or at == only}
        found = [at for at in slices if slices[at] is not None]
        number = wanted.get("number", 1)
        if not self.request(wanted) or len(found) < number:
            return None
        if self.family == "ascend" and number > 1 and self.accounted(wanted) < NPU:
            return None
        for at in found[:number]:
            self.cards[at].append(slices[at])
        return {at: slices[at] for at in found[:number]}


INSTANCES = {  # of an A100 with 80 GB: the memory of each, in the order of their groups
    "group1": [9728] * 7,
    "group2": [*[19968] * 3, 9728],
    "group3": [40192] * 2,
    "group4": [80896],
}


class NaiveMig(Naive):
    """The same with MIG: the first slice opens a group, and the others are of its kinds in use."""

    def slice(self, card, memory, cores):
        opened = card[-1][2][1:].partition("-")[0] if card else ""
        sizes, taken = ({each[at] for each in card} for at in (0, 2))
        for kind, instances in INSTANCES.items():
            fitting = [(size, cores, f"[{kind}-{at}]") for at, size in enumerate(instances) if size >= memory]
            free = [one for one in fitting if one[2] not in taken and (not card or one[0] in sizes)]
            if opened in ("", kind) and free:
                return min(free)
        return None


OF_CARDS = ("vgpu", "mig")


def node_of(name, naive):
    cards = len(naive.cards)
    if naive.family == "ascend":
        return ascend_node(name, [(naive.split, NPU, 20)] * cards)
    if naive.family == "gpushare":
        return gpushare_node(name, cards, cards * naive.memory)
    offers = {VGPU[key]: str(amount) for key, amount in zip(VGPU, naive.totals, strict=True)}
    return gpu_node(name, cards, naive.split, "mig" if naive.family == "mig" else "hami-core", offers=offers)


VGPU = {"number": names.VGPU_NUMBER, "memory": names.VGPU_MEMORY, "cores": names.VGPU_CORES}
NPUS = {"number": CHIP, "memory": f"{CHIP}-memory"}
WRITTEN = {"vgpu": VGPU, "mig": VGPU, "ascend": NPUS, "gpushare": {"memory": names.GPUSHARE_MEMORY}}
ALLOCATED = {"ascend": "hami.io/Ascend910B3-devices-allocated", "gpushare": names.GPU_INDEX}
DEVICES = {"ascend": "NPU-{}"}


def pod_of(family, name, wanted, node="", *, held=None, scheduler="volcano", **more):
    """A pod of PodGroup g that requests some amounts; one that runs has its devices."""
    limits = {WRITTEN[family][key]: str(amount) for key, amount in wanted.items()}
    annotations = {}
    if node:
        key = ALLOCATED.get(family, names.VGPU_IDS)
        device = DEVICES.get(family, f"GPU-{node}-{{}}").format
        entries = "".join(f"{device(at)}{part},X,{memory},{cores}:" for at, (memory, cores, part) in held.items())
        annotations = {key: ",".join(map(str, held)) if family == "gpushare" else entries, names.VGPU_NODE: node}
    place = {"name": name, "group": "g", "node": node, "schedulerName": scheduler}
    return written(limits=limits, annotations=annotations, **place, **more)


def amounts(random, family):
    if family == "gpushare":
        return {"memory": random.choice([1, 4000, 8000, 12000, 16000])}
    found = {"number": random.choice([1, 1, 2] if family == "vgpu" else [1, 1, 1, 2])}
    if random.random() < 0.8:
        found["memory"] = random.choice([1000, 16384, 30000, 40960, 65536])
    if family == "mig":
        found["memory"] = random.choice([1000, 9728, 9729, 9729, 19968, 40192])
    if family in OF_CARDS and random.random() < 0.5:
        found["cores"] = random.choice([20, 50, 100])
    return found


FAMILIES = {
    "vgpu": (MEMORY, (1, 2, 10)),
    "mig": (MEMORY, (2, 7)),
    "ascend": (NPU, (2, 4)),
    "gpushare": (16000, (10_000,)),
}


def random_cluster(random, family, prefix="n"):
    """Nodes of a family with pods, and what a naive model has of them."""
    memory, splits = FAMILIES[family]
    few = 2 if family == "mig" else 3  # so that some cards get full
    cards = {f"{prefix}{at}": random.randint(1, few) for at in range(random.randint(1, few))}
    naive = NaiveMig if family == "mig" else Naive
    nodes = {name: naive(family, count, memory, random.choice(splits)) for name, count in cards.items()}
    manifests = [node_of(name, naive) for name, naive in nodes.items()]
    pods = []
    for name in cards:
        for number in range(random.randint(0, 8 if family == "mig" else 4)):
            wanted, naive = amounts(random, family), nodes[name].copy()
            held = naive.place(wanted, random.randrange(len(naive.cards)) if wanted.get("number", 1) == 1 else None)
            if held is None:
                continue
            leaves, scheduler = random.random() < 0.25, random.choice(["volcano", "volcano", "other"])
            more = {"terminating": leaves, "scheduler": scheduler}
            pods.append(pod_of(family, f"{name}-{number}", wanted, name, held=held, **more))
            if leaves:  # it holds no device, but counts in the totals
                naive = nodes[name].copy()
                naive.request(wanted)
            nodes[name] = naive
    return manifests, pods, nodes


def most(naive, wanted):
    naive = naive.copy()
    return sum(1 for _ in takewhile(lambda _: naive.place(wanted) is not None, range(20)))


def expected(nodes, wanted, minimum):
    if sum(most(naive.empty(), wanted) for naive in nodes) < minimum:
        return WaitVerdict.NEVER
    return WaitVerdict.FITS_NOW if sum(most(naive, wanted) for naive in nodes) >= minimum else WaitVerdict.NOT_NOW


CONFIGS = {"mig": reviewing.CONFIG}


@pytest.mark.parametrize("family", FAMILIES)
def test_random_clusters(family):
    for seed in range(SEEDS):
        random = Random(f"{family} {seed}")
        manifests, running, nodes = random_cluster(random, family)
        wanted = amounts(random, family)
        minimum = random.randint(1, 4) if wanted.get("number", 1) == 1 else 1  # else the order of the cards counts
        waiting = [pod_of(family, f"w-{at}", wanted) for at in range(minimum)]
        objects = [*running, *waiting, group(minMember=minimum + members(running))]
        cluster = Cluster(manifests, objects, CONFIGS.get(family, CHIPS))
        verdict = expected(nodes.values(), wanted, minimum)
        where = f"{family} {seed}: {minimum} x {wanted}"
        assert set(cluster.listed.values()) == {verdict}, where
        assert {found.before for found in ahead(cluster).waiting} <= FATES[verdict], where
        check_usage(cluster, manifests, running, family, where)
        asked = {f"asks-{at}": amounts(random, family) for at in range(6)}  # each pod alone
        pods = [pod_of(family, *one) for one in asked.items()]
        alone = Cluster(manifests, [*running, *pods], CONFIGS.get(family, CHIPS))
        assert alone.listed == {name: expected(nodes.values(), one, 1) for name, one in asked.items()}, (where, asked)


@pytest.mark.parametrize("mode", ["hami-core", "mig"])
def test_random_gangs_of_two_tasks(mode):
    """Whatever their devices are, and whichever pod is named."""
    for seed in range(SEEDS):
        random = Random(f"{mode} {seed}")
        families = random.choices(list(FAMILIES), k=2)
        manifests, running = [], []
        for at, family in enumerate(dict.fromkeys(families)):
            nodes, pods, _ = random_cluster(random, family, f"{'xyz'[at]}")
            manifests += nodes
            running += pods
        if mode == "mig":
            manifests.append(gpu_node("mig", random.randint(1, 2), split=7, mode="mig"))
        manifests = [raw | {"spec": {"taints": [TAINT] * (random.random() < 0.3)}} for raw in manifests]
        waiting = []
        for name, family in zip("ab", families, strict=True):
            wanted, more = amounts(random, family), random.choice([{}, {"tolerations": [{"operator": "Exists"}]}])
            waiting += [pod_of(family, f"{name}-{at}", wanted, task=name, **more) for at in range(random.randint(1, 3))]
        least = {name: random.randint(0, 2) for name in "ab"} if random.random() < 0.5 else None
        minimum = random.randint(2, len(waiting)) + members(running)
        objects = [*running, *waiting, group(minMember=minimum, minTaskMember=least or {})]
        cluster = Cluster(manifests, objects, reviewing.CONFIG)
        found, verdicts = fates(cluster), cluster.listed
        where = f"{mode} {seed}: {found}, {verdicts}"
        starts = not {Fate.STARTS, Fate.DEPENDS}.isdisjoint(found.values())
        assert (WaitVerdict.FITS_NOW in verdicts.values()) is starts, where
        for name, verdict in verdicts.items():
            assert found[name] in FATES[verdict] | ({Fate.WAITS} if starts else set()), where


def members(pods):
    return sum("deletionTimestamp" not in raw["metadata"] for raw in pods)


def check_usage(cluster, manifests, running, family, where):
    """The largest pod fits, and none that is larger."""
    (totals,) = report(cluster.live.occupancy, cluster.live.snapshot.families).totals
    largest = {one.number: one for one in totals.largest}

    def fits(number, memory, cores=0):
        wanted = {"memory": memory, "cores": cores} if family in OF_CARDS else {"memory": memory}
        whole = [{**wanted, "number": number}] if family != "gpushare" else [wanted]
        if memory in (MEMORY, NPU):
            whole.append({key: value for key, value in whole[0].items() if key != "memory"})
        pods = [pod_of(family, f"asks-{at}", each) for at, each in enumerate(whole)]
        found = Cluster(manifests, [*running, *pods], CONFIGS.get(family, CHIPS)).listed
        return WaitVerdict.FITS_NOW in found.values()

    for number in (1, 2) if family in OF_CARDS else (1,):
        one = largest.get(number)
        assert one is None or fits(number, one.memory, one.cores), f"{where}: {one}"
        above = 1 if one is None else one.memory + 1
        whole = (family, above) == ("ascend", NPU + 1)  # above the capacity, Volcano gives the smallest template
        assert whole or not fits(number, above), f"{where}: {one}"
