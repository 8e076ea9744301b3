"""What pods hold of each device, and what the scheduler counts, compared with a plain implementation for each version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.reviewing import CONFIG
from tests.strategies import (
    ascend_node,
    device_node,
    gpushare_node,
    hostile,
    json_values,
    mangled,
    mindcluster_node,
    mixed_fleets,
    node_json,
    register,
)
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.ledger import LedgerRule
from webhook.devices.model import Amounts
from webhook.devices.occupancy import BoundPodReader, Occupancy, cut_pod, occupancy
from webhook.settings.snapshot import read_nodes
from webhook.volcano.target import Target

JSON = TypeAdapter(Occupancy)
VERSIONS = ((1, 14, 3), (1, 15, 1), (1, 16, 0))
OLD, TODAY = (1, 14, 3), (1, 15, 1)

A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
GPU_NODE = node_json("gpu-a", register([A100, A100]))
MIG_NODE = node_json("gpu-mig", register([A100], "mig", split=7, prefix="GPU-mig"))


def bound(name, node, annotations=None, limits=None, phase="Running", **metadata):
    """A pod that is bound to a node, as the API server returns it; one container for each dictionary of limits."""
    all_limits = limits if isinstance(limits, list) else [limits or {names.VGPU_NUMBER: "1"}]
    return {
        "metadata": {"namespace": "default", "name": name, "uid": name, "annotations": annotations or {}, **metadata},
        "spec": {
            "nodeName": node,
            "containers": [{"name": f"c{i}", "resources": {"limits": each}} for i, each in enumerate(all_limits)],
        },
        "status": {"phase": phase},
    }


def assigned(name, node, ids, **more):
    return bound(name, node, {names.VGPU_IDS: ids}, **more)


def read(raw, config):
    """What is kept of a pod: the same if the pod was cut while its file was read."""
    reader = BoundPodReader(config, frozenset({names.RING_CONTROLLER}))
    found = reader.read(raw)
    assert reader.read(cut_pod(raw)) == found
    return found


def occupied(nodes, pods, version=TODAY, config=CONFIG):
    target = Target(volcano=version)
    known = read_nodes(nodes, config)
    kept = [pod for raw in pods if (pod := read(raw, config)) is not None]
    return occupancy(known, kept, build_fleet(known, config, target))


def cards(result, node, family="vgpu"):
    return {card.id: card for one in result.nodes if (one.name, one.family) == (node, family) for card in one.cards}


def amounts(result, node, family="vgpu"):
    return {
        name: (card.accounted.slices, card.accounted.memory, card.accounted.cores)
        for name, card in cards(result, node, family).items()
    }


def rules(result):
    return [(str(one.rule), one.pod) for one in result.findings]


def test_finished_and_terminating_pods_free_their_slices():
    two = [{names.VGPU_NUMBER: "1"}, {names.VGPU_NUMBER: "1"}]
    pods = [
        assigned("p1", "gpu-a", "GPU-0,NVIDIA,20480,30:"),
        assigned("p2", "gpu-a", "GPU-0,NVIDIA,20480,0:;GPU-0,NVIDIA,4096,0:", phase="Pending", limits=two),
        assigned("p3", "gpu-a", "GPU-0,NVIDIA,40960,0:", phase="Succeeded"),
        assigned("p4", "gpu-a", "GPU-0,NVIDIA,8192,0:", **GONE),
        assigned("p5", "", "GPU-0,NVIDIA,8192,0:"),
    ]
    for raw, scheduled in zip(pods, ("True", "False"), strict=False):
        raw["metadata"]["creationTimestamp"] = "created"
        conditions = {"Ready": ("True", "ready"), "PodScheduled": (scheduled, "bound")}
        raw["status"]["conditions"] = [
            {"type": kind, "status": status, "lastTransitionTime": time} for kind, (status, time) in conditions.items()
        ]
    result = occupied([GPU_NODE], pods)
    card = cards(result, "gpu-a")["GPU-0"]
    assert card.accounted == Amounts(2, 40960, 30)
    assert (card.assigned.memory, card.assigned.cores) == (53248, 30)
    assert card.free == Amounts(8, 40960, 70)
    assert [(one.name, one.container, one.memory, one.accounted, one.since) for one in card.pods] == [
        ("p1", "c0", 20480, True, "bound"),
        ("p2", "c0", 20480, True, "created"),
        ("p2", "c1", 4096, False, "created"),
        ("p4", "c0", 8192, False, ""),
    ]
    assert result.findings == ()
    assert result.nodes[0].idle == {names.VGPU_NUMBER: 96, names.VGPU_MEMORY: 1000_000, names.VGPU_CORES: 1000}
    assert amounts(occupied([GPU_NODE], pods, OLD), "gpu-a")["GPU-0"] == (4, 53248, 30)


# --- a plain implementation of the vGPU rules ---------------------------------------------------------------------------


def go_number(text, *, strict):
    """strconv.ParseUint(text, 10, 32), or ParseInt whose error is ignored."""
    sign = text[:1] if text[:1] in ("+", "-") else ""
    digits = text[len(sign) :]
    if not digits or any(c not in "0123456789" for c in digits) or (strict and sign):
        return None if strict else 0
    value = int(text)
    if strict:
        return value if value < 2**32 else None
    return max(-(2**31), min(2**31 - 1, value))


def is_counted(pod, node, version):
    """NodeInfo.AddTask: bound there, not finished, and from 1.15 on not Releasing."""
    if pod["spec"]["nodeName"] != node or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return False
    return version < (1, 15, 0) or "deletionTimestamp" not in pod["metadata"]


def mig_memory(uuid):
    """decodeMIGID and addMigUsed: the memory of the instance; None for an error, which books nothing."""
    inside = uuid.partition("[")[2].partition("]")[0].split("-")
    if "[" not in uuid or "]" not in uuid or len(inside) != 2 or not inside[1].isdigit():
        return None
    groups = {one.group: one.instances for one in CONFIG.vgpu.geometries_of(A100[0])}
    flat = [instance.memory for instance in groups.get(inside[0], ()) for _ in range(instance.count)]
    return flat[int(inside[1])] if flat else 0


def expected_amounts(raw_pods, node, mode, uuids, version):
    """UsedNum, UsedMem and UsedCore of each card: GPUDevices.addResource and AddPod."""
    used = {uuid: [0, 0, 0] for uuid in uuids}
    for pod in raw_pods:
        on_card = set()
        text = pod["metadata"]["annotations"][names.VGPU_IDS] if is_counted(pod, node, version) else ""
        for fields in [entry.split(",") for entry in text.replace(";", ":").split(":") if entry.count(",") >= 3]:
            memory, cores = (go_number(field, strict=version >= (1, 16, 0)) for field in fields[2:4])
            card = next((uuid for uuid in uuids if uuid in fields[0]), None)
            if mode == "mig" and card is not None and memory is not None:
                memory = mig_memory(fields[0])
            repeats = mode != "mig" and version < (1, 15, 0)
            if card is None or memory is None or cores is None or (card in on_card and not repeats):
                continue
            on_card.add(card)
            used[card] = [used[card][0] + 1, used[card][1] + memory, used[card][2] + cores]
    return {uuid: tuple(values) for uuid, values in used.items()}


numbers = st.sampled_from(["0", "1", "8192", "20480", "81920", "4294967295"])
broken_numbers = st.sampled_from(["-5", "+7", "x", "", "4294967296", "9" * 30, " 1", "1_0"])
instances = st.sampled_from(
    ["", "[group1-0]", "[group1-6]", "[group2-3]", "[group2-0]", "[group9-0]", "[group1]", "[a-b-0]"]
)


@st.composite
def entry_texts(draw):
    """One entry of `vgpu-ids-new`: mostly valid, sometimes truncated or of a card that the node does not have."""
    uuid = draw(st.sampled_from(["GPU-0", "GPU-1", "GPU-0", "xGPU-1y", "GPU-9", ""])) + draw(instances)
    fields = [uuid, "NVIDIA", draw(numbers | broken_numbers), draw(st.sampled_from(["0", "30", "100", "x", "-1"]))]
    return ",".join(fields[: draw(st.sampled_from([4, 4, 4, 4, 3, 1]))] + draw(st.sampled_from([[], [], ["more"]])))


assignments = st.lists(st.lists(entry_texts(), max_size=3).map(lambda some: "".join(f"{e}:" for e in some)), max_size=3)


@st.composite
def random_pods(draw):
    pods = []
    for number in range(draw(st.integers(0, 6))):
        gone = GONE if draw(st.integers(0, 4)) == 0 else {}
        phase = draw(st.sampled_from(["Running", "Running", "Pending", "Unknown", "", "Succeeded", "Failed"]))
        node = draw(st.sampled_from(["gpu-a", "gpu-a", "gpu-a", "", "elsewhere"]))
        pods.append(assigned(f"p{number}", node, ";".join(draw(assignments)), phase=phase, **gone))
    return pods


@given(pods=random_pods(), mode=st.sampled_from(["hami-core", "mig"]))
def test_accounted_amounts_equal_those_of_the_scheduler(pods, mode):
    for version in VERSIONS:
        result = occupied([node_json("gpu-a", register([A100, A100], mode))], pods, version)
        expected = expected_amounts(pods, "gpu-a", mode, ["GPU-0", "GPU-1"], version)
        assert amounts(result, "gpu-a") == expected
        for card in cards(result, "gpu-a").values():
            assert card.accounted.slices == sum(holder.accounted for holder in card.pods)
            assert card.assigned.slices == len(card.pods)
            assert card.free.memory <= card.memory


@given(
    pods=st.lists(
        mangled(random_pods().filter(bool).map(lambda some: some[0]))
        | st.fixed_dictionaries({"spec": st.just({"nodeName": "n0"}), "metadata": hostile | json_values}),
        max_size=3,
    ),
    fleet=mixed_fleets(),
    text=st.text(max_size=40) | st.from_regex(r"[0-9A-Za-z,:;\[\]-]{0,60}", fullmatch=True),
    version=st.sampled_from(VERSIONS),
)
def test_no_pod_raises_an_exception(pods, fleet, text, version):
    texts = dict.fromkeys(CONFIG.pod_annotations, text)
    malformed = [bound(node["metadata"]["name"], node["metadata"]["name"], texts) for node in fleet]
    labelled = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}
    every = {names.VGPU_NUMBER: "1", names.GPUSHARE_MEMORY: "1", "huawei.com/Ascend910B3": "1", names.NPU_CORE: "2"}
    malformed.append(bound("y", "n0", texts, every, labels=labelled))
    JSON.dump_json(occupied(fleet, [*pods, *malformed], version))


# --- MIG ----------------------------------------------------------------------------------------------------------------


def test_mig_books_an_instance_and_leaves_the_equal_ones_free():
    pods = [assigned("p1", "gpu-mig", "GPU-mig-0[group2-0],NVIDIA,5000,0:")]
    card = cards(occupied([MIG_NODE], pods), "gpu-mig")["GPU-mig-0"]
    assert card.accounted == Amounts(1, 19968, 0)
    # The 1g instance of the group is no longer assigned; 100 cores need the card alone.
    assert card.free == Amounts(6, 19968, 99)
    full = [assigned(f"p{i}", "gpu-mig", f"GPU-mig-0[group2-{i}],NVIDIA,5000,0:") for i in range(3)]
    assert cards(occupied([MIG_NODE], full), "gpu-mig")["GPU-mig-0"].free == Amounts()


@pytest.mark.parametrize("leaves", [False, True])
def test_a_mig_instance_that_two_pods_share_is_a_finding(leaves):
    ids = "GPU-mig-0[group1-2],NVIDIA,5000,0:"
    pods = [assigned("p0", "gpu-mig", ids, **(GONE if leaves else {})), assigned("p1", "gpu-mig", ids)]
    result = occupied([MIG_NODE], pods)
    assert rules(result) == [("mig-instance-shared", "default/p1")]
    assert ("wait until" in result.findings[0].remedy) is leaves
    assert leaves or amounts(result, "gpu-mig")["GPU-mig-0"] == (2, 2 * 9728, 0)


@pytest.mark.parametrize("uuid", ["GPU-mig-0", "GPU-mig-0[group1-7]", "GPU-mig-0[group9-0]", "GPU-mig-0[group1]"])
def test_an_instance_that_does_not_exist_is_a_finding(uuid):
    result = occupied([MIG_NODE], [assigned("p", "gpu-mig", f"{uuid},NVIDIA,5000,0:")])
    assert rules(result) == [("assignment-unreadable", "default/p")]


def test_amounts_are_multiplied_by_the_memory_factor():
    config = parse_device_config({"nvidia": {"gpuMemoryFactor": 10}}, "test")
    node = node_json("gpu-a", register([("NVIDIA-A", 8192)]))
    result = occupied([node], [assigned("p", "gpu-a", "GPU-0,NVIDIA,100,0:")], config=config)
    card = cards(result, "gpu-a")["GPU-0"]
    assert (card.memory, card.accounted.memory, card.free.memory) == (81920, 1000, 80920)


# --- the other families -------------------------------------------------------------------------------------------------


def test_gpushare_books_the_indexed_cards():
    pods = [
        bound("one", "g", {names.GPU_INDEX: "0"}, {names.GPUSHARE_MEMORY: "1000"}),
        bound("two", "g", {names.GPU_INDEX: "2,3"}, {names.GPUSHARE_NUMBER: "2"}),
        bound("bad", "g", {names.GPU_INDEX: "0,x"}, {names.GPUSHARE_MEMORY: "1000"}),
        bound("none", "g", {names.GPU_INDEX: "0"}, {"cpu": "1"}),
    ]
    result = occupied([gpushare_node("g", 4, 64000, unhealthy="1")], pods)
    assert amounts(result, "g", "gpushare") == {"0": (1, 1000, 0), "2": (1, 0, 0), "3": (1, 0, 0)}
    assert [card.assigned.memory for card in cards(result, "g", "gpushare").values()] == [1000, 16000, 16000]
    assert rules(result) == [("assignment-unreadable", "default/bad"), ("assignment-without-request", "default/none")]


def test_ascend_books_the_first_container_only():
    key = "hami.io/Ascend910B3-devices-allocated"
    two = [{"huawei.com/Ascend910B3": "1"}] * 2
    pods = [
        bound("p", "npu", {key: "NPU-0,Ascend910B3,16384,5:;NPU-1,Ascend910B3,32768,10:;"}, two),
        bound("torn", "npu", {key: "NPU-0,Ascend910B3,16384,5:NPU-1,16384:;"}, two[:1]),
        bound("words", "npu", {key: "NPU-0,Ascend910B3,much,few:;"}, two[:1]),
    ]
    result = occupied([ascend_node("npu", [(4, 65536, 20)] * 2)], pods)
    assert amounts(result, "npu", "ascend") == {"NPU-0": (2, 16384, 5), "NPU-1": (0, 0, 0)}
    second = cards(result, "npu", "ascend")["NPU-1"]
    assert [(one.container, one.memory, one.accounted) for one in second.pods] == [("c1", 32768, False)]
    first = cards(result, "npu", "ascend")["NPU-0"]
    assert [(one.name, one.memory, one.cores) for one in first.pods if one.name == "words"] == [("words", 0, 0)]
    assert rules(result) == [("assignment-unreadable", "default/torn"), ("assignment-unreadable", "default/words")]


def test_mindcluster_books_cores_of_chips():
    labels = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}
    pods = [
        bound("part", "m", {names.NPU_CORE: "0-vir02"}, {names.NPU_CORE: "2"}, labels=labels),
        bound("whole", "m", {names.NPU_CORE: "1,2"}, {names.NPU_CORE: "16"}, labels=labels),
    ]
    result = occupied([mindcluster_node("m", 24)], pods)
    assert amounts(result, "m", "mindcluster") == {"0": (1, 0, 2), "1": (1, 0, 8), "2": (1, 0, 8)}
    free = [card.free for card in cards(result, "m", "mindcluster").values()]
    assert free == [Amounts(1, 0, 6), Amounts(), Amounts()]
    assert result.findings == ()


# --- findings -----------------------------------------------------------------------------------------------------------


def untaken(phase, taken="allocating", reason="", **metadata):
    pod = assigned("p", "gpu-a", "GPU-0,NVIDIA,1000,0:", **metadata)
    pod["metadata"]["annotations"] = pod["metadata"]["annotations"] | {names.BIND_PHASE: taken}
    return pod | {"status": {"phase": phase, "reason": reason}}


@pytest.mark.parametrize(
    ("pod", "rule"),
    [
        (assigned("p", "gpu-a", "GPU-7,NVIDIA,1000,0:"), LedgerRule.CARD_MISSING),
        (assigned("p", "no-gpu", "GPU-0,NVIDIA,1000,0:"), LedgerRule.CARD_MISSING),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA,1000,0:", limits={"cpu": "1"}), LedgerRule.WITHOUT_REQUEST),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA:"), LedgerRule.UNREADABLE),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA,-5,0:"), LedgerRule.UNREADABLE),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA,90000,0:"), LedgerRule.OVERCOMMITTED),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA,0,101:"), LedgerRule.OVERCOMMITTED),
        (bound("p", "gpu-a", {names.VGPU_IDS: "GPU-0,NVIDIA,1,0:", names.VGPU_NODE: "gpu-b"}), LedgerRule.OTHER_NODE),
        (bound("p", "gpu-a"), LedgerRule.UNASSIGNED),
        (
            {**bound("p", "gpu-a"), "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}},
            LedgerRule.UNASSIGNED,
        ),
        (untaken("Failed", reason="UnexpectedAdmissionError"), LedgerRule.LEFT_BEHIND),
        (untaken("Failed", reason="Evicted"), LedgerRule.LEFT_BEHIND),
        (untaken("Succeeded"), LedgerRule.LEFT_BEHIND),
        (untaken("Running"), LedgerRule.NOT_TAKEN),
        (bound("p", "gpu-a", {names.VGPU_IDS: "GPU-0,NVIDIA,1,0:", names.VGPU_NODE: "gpu-a"}), None),
        (bound("p", "gpu-a", limits={"cpu": "1"}), None),
        (bound("p", "gpu-a", phase="Failed"), None),
        (bound("p", ""), None),
        (bound("p", "elsewhere"), None),
        (assigned("p", "gpu-a", "GPU-0,NVIDIA,1,0:", **GONE), None),
        (untaken("Pending"), None),
        (untaken("Running", "success"), None),
        (untaken("Failed", "success", reason="UnexpectedAdmissionError"), None),
        (untaken("Failed", **GONE), None),
        (bound("p", "gpu-a", {names.BIND_PHASE: "allocating"}, limits={"cpu": "1"}, phase="Failed"), None),
    ],
)
def test_an_inconsistent_assignment_is_a_finding(pod, rule):
    result = occupied([GPU_NODE, device_node("no-gpu", capacity={"volcano.sh/gpu-x": "1"})], [pod])
    assert [one.rule for one in result.findings] == ([rule] if rule else [])
    assert all(one.message and one.remedy for one in result.findings)


@pytest.mark.parametrize(
    ("more", "remedy"), [({}, "delete one of them"), (GONE, "wait until those that are being deleted")]
)
def test_a_pod_that_is_being_deleted_is_the_remedy_for_too_much(more, remedy):
    pods = [assigned("p", "gpu-a", "GPU-0,NVIDIA,90000,0:", **more)]
    (found,) = occupied([GPU_NODE], pods).findings
    assert (found.rule, found.remedy[: len(remedy)]) == (LedgerRule.OVERCOMMITTED, remedy)


def test_no_card_is_missing_if_the_nodes_are_unknown():
    target = Target()
    pod = BoundPodReader(CONFIG).read(assigned("p", "gpu-a", "GPU-0,NVIDIA,1,0:"))
    assert occupancy([], [pod], build_fleet(None, CONFIG, target)) == Occupancy((), ())
