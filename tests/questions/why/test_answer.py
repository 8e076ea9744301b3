"""Why a pod waits, on nodes with known assignments; every suggestion is checked."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import ascend_node, node_json, register
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.nodes import read_node
from webhook.devices.usage import report
from webhook.errors import ConfigError
from webhook.inputs.documents import Document
from webhook.live.devices import LiveCluster
from webhook.live.objects import LiveObjects, NodeStatus, PodGroup, read_node_status, read_pod_group
from webhook.policy.policy import default_policy, parse_policy
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.node_reasons import NodeHolder, WaitVerdict
from webhook.questions.why.subject import WaitingObject
from webhook.questions.why.text import change_words, holder_words
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs
from webhook.volcano.queues import Queue, Queues
from webhook.volcano.scheduler import parse_scheduler_conf

CONFIG = parse_device_config({"nvidia": {}}, "test")
A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
NUMBER, MEMORY, CORES = names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES


def pod(name="waits", namespace="default", node="", ids="", *, group="", spec=None, **limits):
    """A pod as the API server returns it, with a container of these limits."""
    annotations = {names.VGPU_IDS: ids, names.VGPU_NODE: node} if ids else {}
    if group:
        annotations[names.GROUP_NAME] = group
    container = {"name": "train", "resources": {"limits": {NAMES[key]: str(value) for key, value in limits.items()}}}
    pod_spec = {
        "schedulerName": "volcano",
        "containers": [container],
        **({"nodeName": node} if node else {}),
        **(spec or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": f"{namespace}/{name}", "annotations": annotations},
        "spec": pod_spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


NAMES = {
    "number": NUMBER,
    "memory": MEMORY,
    "cores": CORES,
    "gpu_memory": names.GPUSHARE_MEMORY,
    "gpus": names.GPUSHARE_NUMBER,
}


def gpu_node(name, cards=2, split=10, mode="hami-core", **more):
    return node_json(name, register([A100] * cards, mode, split, prefix=f"GPU-{name}"), **more)


def state(nodes, pods=(), config=CONFIG, policy=None, **more):
    inputs = SnapshotInputs(config, policy or default_policy(), [read_node(raw, config) for raw in nodes], **more)
    snapshot = inputs.snapshot()
    objects = LiveObjects(snapshot)
    for raw in pods:
        objects.add(raw)
    statuses = {raw["metadata"]["name"]: read_node_status(raw) for raw in nodes}
    return LiveCluster(inputs, snapshot, objects.bound).with_statuses(statuses), objects


def why(raw, nodes, pods=(), *, exists=True, config=CONFIG, **more):
    live, _ = state(nodes, pods, config)
    return explain_waiting(WaitingObject(Document("a pod", raw), exists, **more), live)


BOTH = "GPU-gpu-a-0,NVIDIA,60000,50:GPU-gpu-a-1,NVIDIA,60000,50:"
HELD = pod("old", "team-a", "gpu-a", BOTH, number=2, memory=60000, cores=50)


@pytest.mark.parametrize(("kubelet", "most"), [("v1.35.0", 51920), ("v1.36.0", 23000)])
def test_no_change_makes_the_status_of_the_pod_too_large(kubelet, most):
    nodes = [gpu_node("gpu-a", cards=1), gpu_node("gpu-b", cards=1)]
    nodes[1]["status"]["nodeInfo"] = {"kubeletVersion": kubelet}
    held = [pod(name, node=name, ids=f"GPU-{name}-0,X,30000,0:", number=1, memory=30000) for name in ("gpu-a", "gpu-b")]
    found = why(pod(number=1), nodes, held)
    assert (found.change.resource, found.change.most) == (MEMORY, most)
    members = [pod(f"g-{at}", group="g", number=1, memory=60000) for at in range(2)]
    gang = why(members[0], nodes, held, waiting=members, group=PodGroup("default", "g", minimum=2))
    assert (gang.change.resource, gang.change.most) == (MEMORY, most)


@pytest.mark.parametrize(
    ("minutes", "locks", "verdict"),
    [(1, True, WaitVerdict.NOT_NOW), (6, True, WaitVerdict.FITS_NOW), (1, False, WaitVerdict.FITS_NOW)],
)
def test_a_locked_node_takes_no_pod_for_five_minutes(minutes, locks, verdict):
    node = gpu_node("gpu-a")
    since = datetime.now(UTC) - timedelta(minutes=minutes)
    node["metadata"]["annotations"]["hamivgpu"] = f"{since:%FT%TZ}"
    plugin = {"name": "deviceshare", "arguments": DEVICESHARE["arguments"] | {"deviceshare.NodeLockEnable": locks}}
    conf = parse_scheduler_conf({"tiers": [{"plugins": [plugin]}]}, "test")
    live, _ = state([node], scheduler=conf)
    found = explain_waiting(WaitingObject(Document("a pod", pod(number=1)), True), live)
    assert found.verdict is verdict
    assert ("locked for at most" in str(found.reasons)) is (verdict is WaitVerdict.NOT_NOW)


def test_what_nodes_answer_is_kept_for_pods_of_the_same_group():
    live, _ = state([gpu_node("gpu-a")], [pod("old", node="gpu-a", ids=BOTH, group="g", number=2, memory=60000)])
    subjects = [WaitingObject(Document("a pod", pod(number=1, memory=30000, group=one)), True) for one in ("", "g")]
    kept = {}
    assert [explain_waiting(one, live, kept).reasons[0].ends for one in subjects] == ["default/old", ""]


def test_a_pod_without_devices_is_not_explained():
    with pytest.raises(ConfigError, match="request no devices"):
        why(pod(), [gpu_node("gpu-a")])


def test_a_gang_waits_until_all_its_pods_fit_together():
    members = [pod(f"train-{i}", group="train", number=2, memory=60000) for i in range(3)]
    nodes = [gpu_node("gpu-a"), gpu_node("gpu-b"), gpu_node("gpu-c")]
    group = PodGroup("default", "train", minimum=3)
    fits = why(members[0], nodes, waiting=members, group=group)
    assert (fits.verdict, fits.gang.minimum, fits.gang.waiting) == (WaitVerdict.FITS_NOW, 3, 3)
    explanation = why(members[0], nodes, [HELD], waiting=members, group=group)
    assert (explanation.verdict, explanation.reasons[0].reason) == (WaitVerdict.NOT_NOW, "gang")
    assert "has room for 2" in explanation.summary
    started = why(members[0], nodes, [HELD], waiting=members[:2], group=group, started={"": 1})
    assert started.verdict is WaitVerdict.FITS_NOW
    never = why(members[0], nodes[:2], waiting=members, group=group)
    assert (never.verdict, "the empty fleet" in never.summary) == (WaitVerdict.NEVER, True)
    few = why(members[0], nodes, waiting=members[:2], group=group)
    assert (few.verdict, few.reasons[0].reason) == (WaitVerdict.NOT_NOW, "gang")


def test_the_pods_of_a_gang_that_lack_room_are_named():
    members = [pod(f"{name}-0", group="g", number=1, memory=memory) for name, memory in (("ps", 1000), ("w", 50000))]
    members.append({**members[1], "metadata": {**members[1]["metadata"], "name": "w-1", "uid": "w-1"}})
    found = why(members[0], [gpu_node("gpu-a", cards=1)], waiting=members, group=PodGroup("default", "g", minimum=3))
    assert "has room for 1 of the 2 pods like w-0 (gpu-a 1)" in found.summary


def job(labels, pods, **limits):
    """A Volcano Job whose pods start together."""
    template = {"metadata": {"labels": labels}, "spec": pod(**limits)["spec"]}
    tasks = [{"name": "w", "replicas": pods, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": "default", "name": "job"},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": tasks},
    }


def test_a_volcano_job_fits_only_with_all_its_pods():
    train, nodes = job({}, 2, number=2, memory=60000), [gpu_node("gpu-a"), gpu_node("gpu-b")]
    assert why(train, nodes, exists=False).verdict is WaitVerdict.FITS_NOW
    assert why(train, nodes, [HELD], exists=False).verdict is WaitVerdict.NOT_NOW


def test_the_nearest_change_of_a_job_is_within_the_limits_of_its_queue():
    two = job({}, 2, number=1)
    two["spec"]["queue"] = "open"  # 20000 for all pods, of which whole cards count as none
    live, _ = state([gpu_node("gpu-a", cards=1)], scheduler=CAPACITY, collections=Collections(Queues(QUEUES)))
    change = explain_waiting(WaitingObject(Document("a job", two), False), live).change
    assert (change.resource, change.most) == (MEMORY, 10000)


def test_the_nearest_change_of_pods_that_never_fit_lets_all_of_the_job_start():
    never = job({}, 3, number=1, memory=90000)
    autoscaled = parse_policy({"fleet": {"autoscaled": True}}, "test")  # else the webhook lowers the memory
    live, _ = state([gpu_node("gpu-a", cards=1)], policy=autoscaled)
    change = explain_waiting(WaitingObject(Document("a job", never), False), live).change
    assert (change.resource, change.most) == (MEMORY, 27306)


DEVICESHARE = {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}
CAPACITY, NODE_GROUPS = (
    parse_scheduler_conf({"tiers": [{"plugins": [DEVICESHARE, *({"name": name} for name in plugins)]}]}, "test")
    for plugins in (("gang", "capacity"), ("nodegroup",))
)
QUEUES = [
    Queue("open", "Open", capability={MEMORY: 20000}),
    Queue("closed", "Closed"),
    Queue("groups", "Open", groups=frozenset({"a"}), group_limits={"a": {MEMORY: 20000}}),
]


@pytest.mark.parametrize(
    ("queue", "conf", "memory", "verdict", "summary"),
    [
        ("open", CAPACITY, 20000, WaitVerdict.FITS_NOW, ""),
        ("open", CAPACITY, 20001, WaitVerdict.NEVER, "allows 20000 in all"),
        ("open", None, 20001, WaitVerdict.FITS_NOW, ""),  # it is unknown whether a plugin enforces queues
        ("closed", CAPACITY, 1, WaitVerdict.NOT_NOW, ""),
        (
            "closed",
            None,
            1,
            WaitVerdict.FITS_NOW,
            "is Closed, so the pod waits until it is open again if the scheduler has",
        ),
        ("nowhere", CAPACITY, 1, WaitVerdict.NOT_NOW, ""),
        ("groups", NODE_GROUPS, 20000, WaitVerdict.FITS_NOW, ""),
        ("groups", NODE_GROUPS, 20001, WaitVerdict.NEVER, ""),
    ],
)
def test_the_queue_of_a_group_is_open_and_large_enough(queue, conf, memory, verdict, summary):
    policy = parse_policy({"target": {"volcano": "1.16.0"}}, "test")
    live, _ = state([gpu_node("gpu-a")], scheduler=conf, collections=Collections(Queues(QUEUES)), policy=policy)
    raw = pod(number=1, memory=memory)
    found = explain_waiting(WaitingObject(Document("a pod", raw), True, group=PodGroup("a", "g", queue=queue)), live)
    assert found.verdict is verdict
    assert summary in found.summary


T4 = node_json("t4", register([("NVIDIA-Tesla T4", 81920)], prefix="GPU-t4"))
ONLY_A100 = {"cards": {"deny": [{"type": "T4"}]}}


@pytest.mark.parametrize(
    ("memory", "held", "limits", "queue", "words"),
    [
        (70000, 30000, {}, "", "with volcano.sh/vgpu-memory 51920 or less in"),
        (None, 30000, {}, "open", "with volcano.sh/vgpu-memory 20000 or less in"),  # no memory counts as 0
        (70000, 30000, {"memory": {"min": 40000}}, "", "with volcano.sh/vgpu-memory 51920 in"),
        (70000, 30000, {"memory": {"min": 60000}}, "", ""),
        (70000, 81920, {}, "", "without nvidia.com/use-gputype"),
        (70000, 81920, ONLY_A100, "", ""),
    ],
)
def test_a_pod_with_the_nearest_change_is_admitted(memory, held, limits, queue, words):
    policy = parse_policy({"namespaces": [{"match": ["default"], "limits": limits}] if limits else []}, "test")
    holder = pod("old", node="gpu-a", ids=f"GPU-gpu-a-0,X,{held},0:", number=1, memory=held)
    chooses = held == A100[1]  # a type of card, of which none is left
    nodes = [gpu_node("gpu-a", cards=1), *([T4] if chooses else [])]
    more = {"scheduler": CAPACITY, "collections": Collections(Queues(QUEUES))}
    live, _ = state(nodes, [holder], policy=policy, **more)
    raw = pod(number=1, **({"memory": memory} if memory else {}))
    raw["metadata"]["annotations"] = {names.USE_GPUTYPE: "A100"} if chooses else {}
    group = PodGroup("default", "g", queue=queue) if queue else None
    change = explain_waiting(WaitingObject(Document("a pod", raw), True, group=group), live).change
    assert words in ("" if change is None else change_words(change)) if words else change is None


@pytest.mark.parametrize(
    ("tasks", "fit", "resource", "most", "changed"),
    [
        ([(4, {"number": 2, "memory": 60000})], 1, MEMORY, 21920, ()),
        ([(3, {"number": 2, "memory": 60000})], 1, MEMORY, 27306, ()),
        ([(1, {"number": 2, "memory": 60000}), (2, {"number": 1, "memory": 50000})], 1, MEMORY, 31920, ("a",)),
        ([(1, {"number": 2, "memory": 60000}), *[(1, {"number": 1, "memory": 50000})] * 2], 1, MEMORY, 31920, ("a",)),
        (
            [
                (2, {"number": 1, "memory": 60000}),
                (1, {"number": 1, "memory": 60000}),
                (1, {"number": 1, "memory": 9000}),
            ],
            3,
            MEMORY,
            40960,
            ("a", "b"),
        ),
        ([(1, {"number": 2}), (1, {"number": 2})], 1, NUMBER, 1, ()),  # of a whole card
        ([(40, {"number": 2, "memory": 60000})], 1, None, 0, ()),  # a card has ten slices
    ],
)
def test_the_nearest_change_of_a_gang_lets_all_of_it_start(tasks, fit, resource, most, changed):
    nodes = [gpu_node("gpu-a"), gpu_node("gpu-b")]
    named = list(zip("abc", tasks, strict=False))

    def answer(change):
        members = []
        for name, (count, limits) in named:
            own = limits | {"spec": {}}
            for number in range(count):
                made = pod(f"{name}-{number}", group="g", **own)
                made["metadata"]["annotations"][names.TASK] = name
                if change is not None and name in (changed or name):
                    made["spec"]["containers"][0]["resources"]["limits"][resource] = str(change)
                members.append(made)
        group = PodGroup("default", "g", minimum=len(members))
        return why(members[0], nodes, [HELD], waiting=members, group=group)

    found = answer(None)
    assert found.gang.fit == fit
    if resource is None:
        assert found.change is None
        return
    assert (found.change.resource, found.change.most, found.changed) == (resource, most, changed)
    assert answer(most).verdict is WaitVerdict.FITS_NOW
    assert answer(most + 1).verdict is not WaitVerdict.FITS_NOW


def test_groups_are_read_as_volcano_writes_them():
    raw = {
        "metadata": {"namespace": "a", "name": "g"},
        "spec": {"minMember": 4, "queue": "team-a"},
        "status": {
            "phase": "Inqueue",
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "message": "old",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                },
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "message": "new",
                    "lastTransitionTime": "2026-01-02T00:00:00Z",
                },
            ],
        },
    }
    group = read_pod_group(raw)
    assert (group.minimum, group.queue, group.phase, group.conditions[0].message) == (4, "team-a", "Inqueue", "new")
    assert read_pod_group({"spec": {"minMember": "x"}, "status": []}).minimum == 1


def test_objects_of_a_cluster_are_sorted_into_bound_waiting_and_started():
    sibling = pod("b", node="gpu-a", group="g")
    odd = [None, {"kind": "Pod"}, pod("plain")]
    _, objects = state([gpu_node("gpu-a")], [HELD, pod("w", group="g", number=1), sibling, *odd])
    assert [bound_pod.name for bound_pod in objects.bound] == ["old"]
    assert list(objects.waiting) == [("default", "w")]
    assert objects.started == {("default", "g"): Counter({"": 1})}
    assert read_node_status({"spec": {"taints": "x"}, "status": 3}) == NodeStatus()


# --- every suggestion is right ----------------------------------------------------------------------------------------

loads = st.tuples(st.integers(0, 4), st.sampled_from([0, 30, 70, 100]))  # memory in fifths of a card, and cores


@st.composite
def clusters(draw):
    """Nodes of two or three cards, and pods that hold known slices of them."""
    nodes, pods = [], []
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        cards = draw(st.integers(1, 3))
        nodes.append(gpu_node(name, cards, split=draw(st.sampled_from([1, 2, 10]))))
        for card in range(cards):
            if (load := draw(loads))[0]:
                ids = f"GPU-{name}-{card},NVIDIA,{load[0] * 16384},{load[1]}:"
                held = {"number": 1, "memory": load[0] * 16384, "cores": load[1]}
                pods.append(pod(f"{name}{card}", "held", name, ids, **held))
    return nodes, pods


requests = st.fixed_dictionaries(
    {"number": st.integers(1, 3)},
    optional={"memory": st.sampled_from([8192, 16384, 40000, 81920]), "cores": st.sampled_from([0, 20, 50, 100])},
)


def takes(node, pods, wanted):
    """A plain implementation of the scheduler's checks for a pod with one container."""
    able = 0
    entries = [one["metadata"]["annotations"][names.VGPU_IDS].rstrip(":") for one in pods]
    for text in filter(None, node["metadata"]["annotations"][names.NODE_VGPU_REGISTER].split(":")):
        uuid, split, memory, *_ = text.split(",")
        held = [fields[2:4] for ids in entries if (fields := ids.split(","))[0] == uuid]
        used, cores = (sum(int(entry[at]) for entry in held) for at in (0, 1))
        slices = len(held)
        need, more = wanted.get("memory") or int(memory), wanted.get("cores", 0)
        able += (
            slices < int(split)
            and int(memory) - used >= need
            and cores + more <= 100
            and not (more == 100 and slices)
            and not (cores == 100 and more == 0)
        )
    return able >= wanted["number"]


@given(clusters(), requests)
def test_the_verdict_agrees_with_a_plain_implementation(cluster, wanted):
    nodes, pods = cluster
    now = any(takes(node, pods, wanted) for node in nodes)
    ever = any(takes(node, [], wanted) for node in nodes)
    expected = WaitVerdict.FITS_NOW if now else WaitVerdict.NOT_NOW if ever else WaitVerdict.NEVER
    explanation = why(pod(**wanted), nodes, pods)
    assert explanation.verdict is expected
    for reason in explanation.fits:
        assert takes(next(node for node in nodes if node["metadata"]["name"] == reason.node), pods, wanted)


@given(clusters(), requests)
def test_every_suggestion_is_right(cluster, wanted):
    nodes, pods = cluster
    explanation = why(pod(**wanted), nodes, pods)
    by_resource = {NAMES[key]: key for key in ("number", "memory", "cores")}
    for reason in explanation.reasons:
        if reason.ends:
            rest = [one for one in pods if reason.ends != f"held/{one['metadata']['name']}"]
            assert len(rest) == len(pods) - 1
            assert why(pod(**wanted), nodes, rest).verdict is WaitVerdict.FITS_NOW
    changes = [reason.change for reason in explanation.reasons] + [explanation.change]
    for change in changes:
        if change is not None:
            changed = wanted | {by_resource[change.resource]: change.most}
            assert why(pod(**changed), nodes, pods).verdict is WaitVerdict.FITS_NOW


# --- the other families -----------------------------------------------------------------------------------------------


CHIP = "huawei.com/Ascend910B3"
CHIPS = parse_device_config(
    {
        "vnpus": [
            {
                "commonWord": "Ascend910B3",
                "resourceName": CHIP,
                "resourceMemoryName": f"{CHIP}-memory",
                "memoryAllocatable": 65536,
                "memoryCapacity": 65536,
                "aiCore": 20,
                "templates": [
                    {"name": "vir05", "memory": 16384, "aiCore": 5},
                    {"name": "vir10", "memory": 32768, "aiCore": 10},
                ],
            }
        ]
    },
    "test",
)


@given(
    st.lists(st.tuples(st.sampled_from([0, 16384, 32768, 65536]), st.integers(1, 2)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from([None, 16384, 32768, 65536]),
)
def test_ascend_verdicts_agree_with_a_plain_implementation(loads, number, memory):
    """Each NPU has two parts at most; several NPUs are assigned whole."""
    nodes = [ascend_node("n", [(2, 65536, 20)] * len(loads))]
    pods = []
    for at, (load, parts) in enumerate(loads):
        for part in range(parts if load in (16384, 32768) else bool(load)):
            held = pod(f"p{at}{part}", node="n")
            held["spec"]["containers"][0]["resources"]["limits"] = {CHIP: "1", f"{CHIP}-memory": str(load)}
            held["metadata"]["annotations"]["hami.io/Ascend910B3-devices-allocated"] = (
                f"NPU-{at},Ascend910B3,{load},0:;"
            )
            pods.append(held)
    wanted = pod()
    limits = {CHIP: str(number)} | ({} if memory is None else {f"{CHIP}-memory": str(memory)})
    wanted["spec"]["containers"][0]["resources"]["limits"] = limits
    need = 65536 if memory is None else memory
    used = Counter(p["metadata"]["annotations"]["hami.io/Ascend910B3-devices-allocated"].split(",")[0] for p in pods)
    able = sum(used[f"NPU-{at}"] < 2 and 65536 - used[f"NPU-{at}"] * load >= need for at, (load, _) in enumerate(loads))
    if (number > 1 and need < 65536) or number > len(loads):
        expected = WaitVerdict.NEVER
    else:
        expected = (
            WaitVerdict.FITS_NOW if able >= number and len(pods) + number <= 2 * len(loads) else WaitVerdict.NOT_NOW
        )
    explanation = why(wanted, nodes, pods, config=CHIPS)
    assert explanation.verdict is expected


def with_families(name, cards, npus):
    found = gpu_node(name, cards)
    npu_node = ascend_node(name, [(2, 65536, 20)] * npus)
    for part in (("metadata", "annotations"), ("status", "allocatable"), ("status", "capacity")):
        found[part[0]].setdefault(part[1], {}).update(npu_node[part[0]][part[1]])
    return found


def test_a_node_whose_device_plugin_restarts_takes_no_pod_now():
    restarting = gpu_node("gpu-a", cards=4)
    restarting["status"]["allocatable"] = dict.fromkeys(restarting["status"]["allocatable"], "0")
    nodes = [restarting, gpu_node("gpu-b")]
    found = why(pod(number=4), nodes)
    assert (found.verdict, found.reasons[0].reason) == (WaitVerdict.NOT_NOW, "in doubt")
    assert why(pod(number=5), nodes).verdict is WaitVerdict.NEVER
    members = [pod(f"train-{i}", group="train", number=2, memory=60000) for i in range(2)]
    gang = why(members[0], nodes, waiting=members, group=PodGroup("default", "train", minimum=2))
    assert (gang.verdict, gang.reasons[0].reason) == (WaitVerdict.NOT_NOW, "gang")
    live, _ = state(nodes)
    usage = report(live.occupancy, live.snapshot.families)
    assert (usage.totals[0].devices, {one.node for one in usage.totals[0].largest}) == (6, {"gpu-b"})


@pytest.mark.parametrize("name", ["rdma/hca", "kubernetes.io/batch-cpu"])
@pytest.mark.parametrize(("amount", "verdict"), [(None, "never"), ("0", "not-now"), ("1", "fits-now")])
def test_a_resource_that_no_node_offers_keeps_a_pod_waiting(name, amount, verdict):
    raw = pod(number=1)
    raw["spec"]["containers"][0]["resources"]["limits"][name] = "1"
    nodes = [gpu_node("gpu-a"), gpu_node("gpu-b", offers={name: amount})]
    found = why(raw, nodes)
    assert found.verdict == verdict
    assert [one.reason for one in found.reasons if one.reason == "resource-not-offered"] == (
        [] if amount == "1" else ["resource-not-offered"]
    )


def blind_node(name):
    """A node that offers vGPUs but no memory: Volcano sees no card there, and binds pods without memory to it."""
    return node_json(name, register([A100], prefix=f"GPU-{name}"), offers={MEMORY: "0"})


@pytest.mark.parametrize("exists", [True, False])
def test_the_names_of_another_system_are_read_by_nobody(exists):
    raw = pod()
    raw["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}}
    with pytest.raises(ConfigError, match="by names that nobody reads here") as raised:
        why(raw, [gpu_node("gpu-a")], exists=exists)
    assert "HAMi" in str(raised.value)
    assert "nvidia.com/gpumem" in str(raised.value)
    assert f"{MEMORY}: 3000" in str(raised.value)


@pytest.mark.parametrize(("memory", "held", "verdict"), [(0, 0, "fits-now"), (0, 1000, "not-now"), (1, 0, "never")])
def test_a_pod_is_decided_however_many_kinds_of_nodes_there_are(memory, held, verdict):
    """Only the last kind has the memory, or no kind has."""
    most = A100[1] + MAX_SHAPES + 5
    nodes = [
        node_json(f"n{size}", register([(A100[0], size)], prefix=f"GPU-{size}")) for size in range(A100[1], most + 1)
    ]
    holder = pod("holder", "default", f"n{most}", f"GPU-{most}-0,NVIDIA,{held},0:", number=1, memory=held)
    found = why(pod(number=1, memory=most + memory), nodes, [holder] if held else ())
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "a/b: 10000 MiB on 1 card"),
        ({"cores": 20, "terminating": True}, "a/b: 10000 MiB and 20 % of cores on 1 card, being deleted"),
        ({"refilled_by": "ReplicaSet"}, "a/b: 10000 MiB on 1 card; its ReplicaSet makes it anew"),
        ({"family": "gpushare"}, "a/b: 10000 of memory on 1 card"),
        ({"family": "ascend", "devices": 2}, "a/b: 10000 MiB on 2 NPUs"),
    ],
)
def test_what_a_pod_holds_in_words(more, words):
    usual = {"devices": 1, "memory": 10000, "cores": 0, "since": "", "terminating": False}
    assert holder_words(NodeHolder("a", "b", **usual | more)) == words
