"""Why a pod waits, on nodes with known assignments. tests/properties follows what is suggested."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.questions.why.clusters import A100, Cluster, conf, gpu_node, group, pod, written
from tests.strategies import gpushare_node, node_json, register
from webhook import names
from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.usage import report
from webhook.errors import ConfigError
from webhook.live.objects import NodeStatus, read_node_status, read_pod_group
from webhook.pod.gangs import read_gang, read_roles
from webhook.questions.why.gang import needed_of
from webhook.questions.why.node_reasons import NodeHolder, WaitVerdict
from webhook.questions.why.text import holder_words
from webhook.volcano.queues import Queue, Queues

FITS, WAITS, NEVER = WaitVerdict.FITS_NOW, WaitVerdict.NOT_NOW, WaitVerdict.NEVER
HELD = written(name="old", namespace="team-a", node="gpu-a", slices={0: (60000, 50), 1: (60000, 50)})


SHARES = {"VGPUEnable": None, "GPUNumberEnable": True}


@pytest.mark.parametrize(
    ("minutes", "locks", "more", "verdict"),
    [(1, True, {}, WAITS), (6, True, {}, FITS), (1, False, {}, FITS), (1, True, SHARES, FITS)],
)
def test_a_locked_node_takes_no_pod_with_vgpus_for_five_minutes(minutes, locks, more, verdict):
    since = datetime.now(UTC) - timedelta(minutes=minutes)
    nodes = [gpu_node("gpu-a"), gpushare_node("shared", 2, 32000)]
    for node in nodes:
        node["metadata"]["annotations"] = node["metadata"].get("annotations", {}) | {"hamivgpu": f"{since:%FT%TZ}"}
    found = Cluster(nodes, scheduler=conf(NodeLockEnable=locks, **more)).why(pod(**{"gpus" if more else "number": 1}))
    assert found.verdict is verdict
    assert ("locked for at most" in str(found.reasons)) is (verdict is WAITS)


def test_what_nodes_answer_is_kept_for_pods_of_the_same_group_and_queue():
    member = written(name="old", node="gpu-a", group="g", slices={0: (60000, 0), 1: (60000, 0)})
    cluster, kept = Cluster([gpu_node("gpu-a")], [member]), {}
    pods = [pod(number=1, memory=30000, group=one) for one in ("", "g")]
    assert [cluster.why(one, kept=kept).reasons[0].ends for one in pods] == ["default/old", ""]
    queues = Queues([Queue("open", "Open", capability={names.VGPU_MEMORY: 20000}), Queue("other", "Open")])
    objects = [HELD, group("open", queue="open"), group("other", queue="other")]
    cluster, kept = Cluster([gpu_node("gpu-a")], objects, scheduler=conf("capacity"), queues=queues), {}
    assert [cluster.why(pod(number=1, group=one), kept=kept).change.most for one in ("open", "other")] == [20000, 21920]


def test_a_pod_without_devices_is_not_explained():
    with pytest.raises(ConfigError, match="request no devices"):
        Cluster([gpu_node("gpu-a")]).why(pod())


LARGE, HALF = {"number": 2, "memory": 60000}, {"number": 1, "memory": 50000}


@pytest.mark.parametrize(
    ("tasks", "fit", "resource", "most", "changed"),
    [
        ([(4, LARGE)], 1, names.VGPU_MEMORY, 21920, ()),
        ([(3, LARGE)], 1, names.VGPU_MEMORY, 27306, ()),
        ([(1, LARGE), (2, HALF)], 1, names.VGPU_MEMORY, 31920, ("a",)),
        ([(1, LARGE), (1, HALF), (1, HALF)], 1, names.VGPU_MEMORY, 31920, ("a",)),
        (
            [(n, {"number": 1, "memory": m}) for n, m in ((2, 60000), (1, 60000), (1, 9000))],
            3,
            names.VGPU_MEMORY,
            40960,
            ("a", "b"),
        ),
        ([(1, {"number": 2}), (1, {"number": 2})], 1, names.VGPU_NUMBER, 1, ()),  # of a whole card
        ([(40, LARGE)], 1, None, 0, ()),  # a card has ten slices
    ],
)
def test_the_nearest_change_of_a_gang_lets_all_of_it_start(tasks, fit, resource, most, changed):
    def answer(change):
        members = []
        for task, (count, limits) in zip("abc", tasks, strict=False):
            more = {resource: str(change)} if change is not None and task in (changed or task) else {}
            members += [
                written(name=f"{task}-{at}", group="g", task=task, limits=more, **limits) for at in range(count)
            ]
        nodes = [gpu_node("gpu-a"), gpu_node("gpu-b")]
        return Cluster(nodes, [HELD, *members, group(minMember=len(members))]).why(members[0])

    found = answer(None)
    assert found.gang.fit == fit
    if resource is None:
        assert found.change is None
        return
    assert (found.change.resource, found.change.most, found.changed) == (resource, most, changed)
    assert answer(most).verdict is FITS
    assert answer(most + 1).verdict is not FITS


def test_groups_are_read_as_volcano_writes_them():
    usual = {"type": "Unschedulable", "status": "True"}
    conditions = [usual | {"message": f"{day}", "lastTransitionTime": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2)]
    group = read_pod_group(
        {
            "metadata": {"namespace": "a", "name": "g"},
            "spec": {"minMember": 4, "queue": "team-a"},
            "status": {"phase": "Inqueue", "conditions": conditions},
        }
    )
    assert (group.minimum, group.queue, group.phase, group.conditions[0].message) == (4, "team-a", "Inqueue", "2")
    assert read_pod_group({"spec": {"minMember": "x"}, "status": []}).minimum == 1


def test_objects_of_a_cluster_are_sorted_into_bound_waiting_and_started():
    sibling = pod("b", node="gpu-a", group="g")
    odd = [None, {"kind": "Pod"}, pod("plain")]
    objects = Cluster([gpu_node("gpu-a")], [HELD, pod("w", group="g", number=1), sibling, *odd]).objects
    assert [bound_pod.name for bound_pod in objects.bound] == ["old"]
    assert list(objects.waiting) == [("default", "w")]
    assert objects.started == {("default", "g"): Counter({"": 1})}
    locked = {"annotations": {names.NODE_LOCK: "9999-12-31T23:59:59Z"}}
    assert read_node_status({"metadata": locked, "spec": {"taints": "x"}, "status": 3}) == NodeStatus()


def test_the_largest_pod_is_not_on_a_node_whose_device_plugin_restarts():
    restarting = gpu_node("gpu-a", cards=4)
    restarting["status"]["allocatable"] = dict.fromkeys(restarting["status"]["allocatable"], "0")
    live = Cluster([restarting, gpu_node("gpu-b")]).live
    usage = report(live.occupancy, live.snapshot.families)
    assert (usage.totals[0].devices, {one.node for one in usage.totals[0].largest}) == (6, {"gpu-b"})


@pytest.mark.parametrize("exists", [True, False])
def test_the_names_of_another_system_are_read_by_nobody(exists):
    raw = written(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"})
    with pytest.raises(ConfigError, match="by names that nobody reads here") as raised:
        Cluster([gpu_node("gpu-a")]).why(raw, exists=exists)
    for text in ("HAMi", "nvidia.com/gpumem", f"{names.VGPU_MEMORY}: 3000"):
        assert text in str(raised.value)


@pytest.mark.parametrize(("memory", "held", "verdict"), [(0, 0, "fits-now"), (0, 1000, "not-now"), (1, 0, "never")])
def test_a_pod_is_decided_however_many_kinds_of_nodes_there_are(memory, held, verdict):
    """Only the last kind has the memory, or no kind has."""
    most = A100[1] + MAX_SHAPES + 5
    nodes = [
        node_json(f"n{size}", register([(A100[0], size)], prefix=f"GPU-{size}")) for size in range(A100[1], most + 1)
    ]
    holder = pod("holder", "default", f"n{most}", f"GPU-{most}-0,NVIDIA,{held},0:", number=1, memory=held)
    assert Cluster(nodes, [holder] if held else ()).why(pod(number=1, memory=most + memory)).verdict == verdict


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


@pytest.mark.parametrize("minimum, needed", [(6, 2), (3, 0)])
def test_of_some_pods_of_a_task_its_minimum_must_start_unless_the_gang_needs_fewer(minimum, needed):
    tasks = [{"name": "a", "replicas": 3, "minAvailable": 2}, {"name": "b", "replicas": 4}]
    job = {"spec": {"minAvailable": minimum, "tasks": tasks}}
    gang = read_gang("batch.volcano.sh", "Job", job, read_roles("batch.volcano.sh", "Job", job))
    assert needed_of(gang, "a", 2, {"a": 2, "b": 9}) == needed
