"""`why`, `what-if` and `usage` of one cluster agree with one another."""

import pytest

from tests.questions.why.test_answer import CHIP, CHIPS, gpu_node, pod
from tests.strategies import ascend_node, gpushare_node
from webhook import names
from webhook.devices.nodes import read_node
from webhook.live.cluster import LiveCluster
from webhook.live.objects import LiveObjects, read_node_status
from webhook.policy.policy import default_policy
from webhook.questions.what_if.answer import WhatIf, what_if
from webhook.questions.what_if.changes import FleetChange, parse_addition
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.listing import list_waiting
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.placing import Fate
from webhook.questions.why.waiting import WaitingState, Wanted
from webhook.settings.snapshot import SnapshotInputs

MEMORY = 81920  # of a card
FATES = {
    WaitVerdict.FITS_NOW: {Fate.STARTS, Fate.DEPENDS},
    WaitVerdict.NOT_NOW: {Fate.WAITS},
    WaitVerdict.NEVER: {Fate.WAITS, Fate.NEVER},
}


class Cluster:
    """Nodes, pods and PodGroups, and what the questions answer about them."""

    def __init__(self, nodes, objects, config=CHIPS, policy=None):
        self.inputs = SnapshotInputs(config, policy or default_policy(), [read_node(raw, config) for raw in nodes])
        snapshot = self.inputs.snapshot()
        found = LiveObjects(snapshot, keeps_running=True)
        for raw in objects:
            found.add(raw)
        found.knows_groups = bool(found.groups)
        statuses = {raw["metadata"]["name"]: read_node_status(raw) for raw in nodes}
        self.state = WaitingState(LiveCluster(self.inputs, snapshot, found.bound).with_statuses(statuses), found)

    def why(self, name):
        return explain_waiting(self.state.subject(Wanted(("default", name))), self.state.live)

    def what_if(self, **change) -> WhatIf:
        return what_if(self.state, self.inputs, FleetChange(**change))

    @property
    def listed(self):
        return {found.name: found.verdict for found in list_waiting(self.state).pods}


def group(name, minimum, tasks=None):
    spec = {"minMember": minimum, "queue": "default"} | ({"minTaskMember": tasks} if tasks else {})
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": names.QUEUE_API, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name, *, task="", terminating=False, tolerates=None, npus=None, scheduler="volcano", **more):
    """A pod of PodGroup g."""
    spec = {"schedulerName": scheduler} | ({"tolerations": [tolerates]} if tolerates else {})
    made = pod(name, group="g", spec=spec, **more)
    made["metadata"]["annotations"] |= {names.TASK: task} if task else {}
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
    if npus is not None:
        made["spec"]["containers"][0]["resources"]["limits"] = {CHIP: str(npus)}
    return made


def marked(node, *, taints=(), cordoned=False, ready=True):
    spec = {"taints": list(taints)} | ({"unschedulable": True} if cordoned else {})
    conditions = [] if ready else [{"type": "Ready", "status": "False"}]
    return node | {"spec": spec, "status": node["status"] | {"conditions": conditions}}


TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
ALL = {"operator": "Exists"}
ONE, TWO = gpu_node("n0", cards=1), gpu_node("n0")
HALF, MOST, ALMOST = MEMORY // 2, MEMORY * 3 // 5, MEMORY * 9 // 10


def task(name, count, memory, **more):
    return [member(f"{name}-{at}", task=name, number=1, memory=memory, **more) for at in range(count)]


CASES = {
    "a role of the gang that never fits": (
        [ONE],
        [group("g", 3), member("master", number=1, memory=1000), *task("w", 2, ALMOST)],
        "never",
    ),
    "a member that no node takes": (
        [ONE],
        [group("g", 2), member("small", number=1, memory=1), member("large", number=2)],
        "never",
    ),
    "an elastic gang starts without it": (
        [ONE],
        [group("g", 2), *task("a", 2, 1), member("large", number=2)],
        {"a-0": "fits-now", "a-1": "fits-now", "large": "never"},
    ),
    "a task with too few that fit": (
        [ONE],
        [group("g", 3, {"a": 2, "b": 1}), *task("a", 2, MOST), *task("b", 2, 1000)],
        "never",
    ),
    "a task with too few pods": (
        [ONE],
        [group("g", 3, {"a": 2, "b": 1}), *task("a", 1, 1), *task("b", 2, 1)],
        "not-now",
    ),
    "minimums of tasks above that of the gang do not count": (
        [ONE],
        [group("g", 2, {"a": 2, "b": 1}), *task("a", 1, 1), *task("b", 1, 1)],
        "fits-now",
    ),
    "NPUs": (
        [ascend_node("npu", [(1, 65536, 20)])],
        [group("g", 2), member("a", npus=1), member("b", npus=1)],
        "never",
    ),
    "gpushare": (
        [gpushare_node("s", 1, 16000)],
        [group("g", 2), member("a", gpu_memory=16000), member("b", gpu_memory=16000)],
        "never",
    ),
    "NPUs and cards": (
        [ONE, ascend_node("npu", [(1, 65536, 20)])],
        [group("g", 3), member("a", npus=1), *task("b", 2, MOST)],
        "never",
    ),
    "NPUs and cards that fit": (
        [TWO, ascend_node("npu", [(1, 65536, 20)])],
        [group("g", 3), member("a", npus=1), *task("b", 2, MOST)],
        "fits-now",
    ),
    "tolerations of each role": (
        [marked(TWO, taints=[TAINT]), gpu_node("n1", cards=1)],
        [group("g", 3), *task("a", 1, ALMOST), *task("b", 2, MOST, tolerates=ALL)],
        "fits-now",
    ),
    "the first role tolerates more than the others": (
        [marked(TWO, taints=[TAINT]), gpu_node("n1", cards=1)],
        [group("g", 3), *task("a", 1, ALMOST, tolerates=ALL), *task("b", 2, MOST)],
        "not-now",
    ),
    "a member that is being deleted": (
        [TWO],
        [
            group("g", 2),
            member("r", node="n0", ids="GPU-n0-0,NVIDIA,1000,0:", number=1, memory=1000, terminating=True),
            member("w", number=1, memory=1000),
        ],
        {"w": "not-now"},
    ),
    "a gated member": (
        [TWO],
        [
            group("g", 2),
            member("a", number=1),
            member("b", number=1) | {"spec": pod(number=1, spec={"schedulingGates": [{"name": "x"}]})["spec"]},
        ],
        "not-now",
    ),
    "another scheduler": (
        [ONE],
        [
            pod("foreign", spec={"schedulerName": "kueue"}, number=1, memory=ALMOST),
            pod("ours", number=1, memory=ALMOST),
        ],
        {"foreign": "never", "ours": "fits-now"},
    ),
    "a member of another scheduler": (
        [TWO],
        [group("g", 2), member("a", number=1, memory=1), member("b", scheduler="kueue", number=1, memory=1)],
        "never",
    ),
    "no such PodGroup": ([ONE], [group("other", 1), member("a", number=1, memory=1)], "not-now"),
    "cordoned, and tolerated": (
        [marked(ONE, cordoned=True)],
        [pod("a", spec={"tolerations": [ALL]}, number=1), pod("b", number=1)],
        {"a": "fits-now", "b": "not-now"},
    ),
    "not ready, and tolerated": (
        [marked(ONE, ready=False)],
        [
            pod("a", spec={"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}, number=1),
            pod(
                "b", spec={"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}, number=1
            ),
        ],
        {"a": "fits-now", "b": "not-now"},
    ),
}


@pytest.mark.parametrize(
    ("mark", "fate"),
    [
        ({"ready": False}, Fate.STARTS),
        ({"cordoned": True}, Fate.STARTS),
        ({"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}, Fate.STARTS),
        ({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, Fate.STARTS),
        ({"taints": [TAINT]}, Fate.WAITS),
    ],
)
def test_a_node_that_is_added_has_only_the_taints_that_last(mark, fate):
    (found,) = Cluster([marked(ONE, **mark)], [pod("a", number=1)]).what_if(add=(parse_addition("n0"),)).waiting
    assert (found.before, found.after) == (Fate.WAITS, fate)


@pytest.mark.parametrize("case", CASES)
def test_a_pod_and_its_gang_have_one_fate(case):
    nodes, objects, expected = CASES[case]
    cluster = Cluster(nodes, objects)
    verdicts = cluster.listed
    assert verdicts == (expected if isinstance(expected, dict) else dict.fromkeys(verdicts, expected))
    fates = {found.name: found.before for found in cluster.what_if().waiting}
    assert fates.keys() == verdicts.keys()
    for name, verdict in verdicts.items():
        assert cluster.why(name).verdict is verdict
        assert fates[name] in FATES[verdict], name
