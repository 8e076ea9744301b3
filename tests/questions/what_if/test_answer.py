"""The look ahead, against fleets that really have changed, and against a slow scheduler written from its rules alone."""

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.rows import has
from tests.questions.what_if.test_agreement import Naive
from tests.questions.why.clusters import MEMORY, NAMES, Cluster, gpu_node, group, node, replicated, written
from tests.reviewing import DATA, calls_of
from tests.strategies import gpushare_node
from webhook import names
from webhook.devices.vgpu.feasibility import judge
from webhook.errors import ConfigError
from webhook.lenient import obj
from webhook.output.json import as_value
from webhook.pod.gangs import read_groups
from webhook.pod.templates import read_templates
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.questions.what_if.answer import what_if
from webhook.questions.what_if.changes import FleetChange, parse_addition, parse_mode
from webhook.questions.why.placing import Fate, QueuedPod

OWNER = {"kind": "Job", "name": "train", "controller": True}
CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())


def look(nodes, objects, *, policy=None, **change):
    cluster = Cluster(nodes, objects, policy=policy)
    return what_if(cluster.state, cluster.inputs, FleetChange(**change))


def fates(found):
    return {one.name: str(one.after) for one in (*found.waiting, *found.moved)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_would_happen(case):
    pods = [made for fields in case["pods"] for made in replicated(**{"owner": OWNER} | fields)]
    groups = [group(**case["group"])] if "group" in case else []
    change = case.get("change", {})
    change = change | {"add": tuple(map(parse_addition, change.get("add", ())))}
    nodes = [node(name, **fields) for name, fields in case.get("nodes", {}).items()]
    found = look(nodes, [*pods, *groups], policy=case.get("policy"), **change)
    answer = as_value(type(found), found) | {"loses": found.loses}
    assert fates(found) == case.get("fates", {}), answer
    assert has(answer, case.get("answers", {})), answer


WORKS = {
    raw["kind"]: raw
    for path in sorted((DATA / "workloads").glob("*.yaml"))
    for raw in yaml.safe_load_all(path.read_text())
    if raw["kind"] in ("PyTorchJob", "TFJob", "MPIJob", "RayCluster", "JobSet", "LeaderWorkerSet")
}
INDEXED = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "indexed"}}
WORKS["Job"] = INDEXED | {
    "spec": {
        "completionMode": "Indexed",
        "parallelism": 2,
        "completions": 2,
        "template": WORKS["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]["Master"]["template"],
    }
}


def created(raw):
    """The pods that the controller of a workload creates, each with a whole card if it requests vGPUs."""
    kind, name, key = raw["kind"], raw["metadata"]["name"], (raw["apiVersion"].partition("/")[0], raw["kind"])
    templates = {one.path: one.pod for one in read_templates(WORKLOAD_KINDS[key], raw)}
    owner = {"apiVersion": raw["apiVersion"], "kind": kind, "name": name, "controller": True}
    labels, annotations = {}, {}
    if kind == "JobSet":
        owner |= {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-workers-0"}
        labels[names.JOBSET] = name
    elif kind == "LeaderWorkerSet":
        owner |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        labels |= {names.LEADER_WORKER_SET: name, names.LEADER_WORKER_SET_REPLICA: "0"}
    elif kind == "Job":
        annotations[names.JOB_INDEX] = "0"
    for number, role in enumerate(read_groups(*key, raw, templates)[0].roles):
        for index in range(role.replicas):
            found = copy.deepcopy(templates[role.template])
            of_pod = {"namespace": "default", "name": f"{name}-{number}-{index}", "ownerReferences": [owner]}
            found["metadata"] = of_pod | {"labels": labels, "annotations": annotations}
            found["spec"]["schedulerName"] = "volcano"
            for container in found["spec"]["containers"]:
                if names.VGPU_NUMBER in container.get("resources", {}).get("limits", {}):
                    container["resources"] = {"limits": {names.VGPU_NUMBER: "1"}}
            yield {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending"}, **found}


def takes_card(raw):
    return any(names.VGPU_NUMBER in obj(each, "resources", "limits") for each in raw["spec"]["containers"])


@pytest.mark.parametrize("grouped", [False, True])  # Volcano makes a PodGroup for one pod where nobody else makes one
@pytest.mark.parametrize("kind", WORKS)
def test_the_pods_of_a_distributed_job_work_together_or_hold_cards_idly(kind, grouped):
    pods = [raw for raw in created(WORKS[kind]) if takes_card(raw)]
    if grouped:
        for raw in pods:
            raw["metadata"]["annotations"] = raw["metadata"]["annotations"] | {names.GROUP_NAME: "podgroup-1"}
    assert len(pods) > 1
    objects = [*pods, *([group("podgroup-1", minMember=1)] if grouped else [])]
    few = look([gpu_node("a", cards=len(pods) - 1)], objects, split=10)
    assert sorted(fates(few).values()) == ["idles"] * (len(pods) - 1) + ["waits"]
    (reason,) = {one.reason for one in few.waiting if one.after is Fate.IDLES}
    assert reason == f"{len(pods)} pods work together, but only {len(pods) - 1} of them get devices, and hold them"
    enough = look([gpu_node("a", cards=len(pods) - 1)], objects, add=(parse_addition("a"),))
    assert set(fates(enough).values()) == {"starts"}
    assert {one.before for one in enough.waiting} == {Fate.IDLES, Fate.WAITS}


@pytest.mark.parametrize("completions, expected", [(2, ["idles", "waits"]), (3, ["starts", "waits"])])
def test_an_indexed_job_whose_pods_take_turns_is_no_group(completions, expected):
    job = WORKS["Job"] | {"spec": {**WORKS["Job"]["spec"], "completions": completions}}
    assert sorted(fates(look([gpu_node("a", cards=1)], [job, *created(WORKS["Job"])], split=10)).values()) == expected


def test_pods_that_run_count_for_those_that_work_with_them():
    pods = [*created(WORKS["TFJob"])]
    running = [raw for raw in pods if takes_card(raw)]
    last, *first = running
    for at, raw in enumerate(first):
        raw["spec"]["nodeName"] = "a"
        raw["status"]["phase"] = "Running"
        raw["metadata"]["annotations"] = {names.VGPU_IDS: f"GPU-a-{at},NVIDIA,{MEMORY},0:", names.VGPU_NODE: "a"}
    nodes = [gpu_node("a", cards=3), gpu_node("b", cards=2)]
    kept = look(nodes, running, split=10)
    assert fates(kept) == {last["metadata"]["name"]: "starts"}
    lost = look(nodes, running, drain=("a",))
    assert sorted(fates(lost).values()) == ["idles", "idles", "waits", "waits"]
    assert lost.loses
    assert {one.reason for one in (*lost.moved, *lost.waiting) if one.after is Fate.IDLES} == {
        "4 pods work together, but only 2 of them get devices, and hold them"
    }


@pytest.mark.parametrize(
    "change, message",
    [
        ({"drain": ("nowhere",)}, "there is no node nowhere"),
        ({"modes": {"nowhere": "mig"}}, "there is no node nowhere"),
        ({"add": (parse_addition("nowhere"),)}, "neither the policy's fleet.declared nor the cluster has it"),
        ({"add": (parse_addition("gpu-a:2"),)}, "; for copies write 'gpu-a x 2'"),
        ({"add": (parse_addition("pool=x x 2"),)}, "2 kinds; name one of the nodes"),
    ],
)
def test_what_cannot_be_changed(change, message):
    nodes = [gpu_node("a"), gpu_node("b", 1)]
    for raw in nodes:
        raw["metadata"]["labels"] = {"pool": "x"}
    with pytest.raises(ConfigError, match=message):
        look(nodes, [], **change)


@pytest.mark.parametrize("text", ["", "a x 0", "a x 101", "a x b", "a, b", "a 2"])
def test_an_addition_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="is not SHAPE"):
        parse_addition(text)


def test_pods_are_ordered_by_the_numbers_in_their_names_of_any_size():
    sizes = ["a-2", "a-010", f"a-{'9' * 5000}"]
    assert sorted(sorted(sizes), key=lambda name: QueuedPod({"metadata": {"name": name}}).order) == sizes


def test_forms_of_additions_and_modes():
    assert parse_addition("pool=a100 x 2 zone=b rack=") == ("pool=a100", 2, {"zone": "b", "rack": ""})
    assert parse_addition(" gpu-a x3 ") == ("gpu-a", 3, {})
    assert parse_mode("a=mig") == ("a", "mig")
    with pytest.raises(ValueError, match="the modes are hami-core, mig, mps"):
        parse_mode("a=fast")


# --- against fleets that really have changed --------------------------------------------------------------------------

REQUESTS = st.fixed_dictionaries(
    {"number": st.integers(1, 3)},
    optional={"memory": st.sampled_from([1, 20000, 41000, MEMORY, 90000]), "cores": st.sampled_from([0, 30, 60, 100])},
)
OTHERS = st.one_of(
    st.fixed_dictionaries({"gpu_memory": st.integers(1, 40)}), st.fixed_dictionaries({"gpus": st.integers(1, 3)})
)
AGES = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])


@st.composite
def waiting_pods(draw, requests=REQUESTS | OTHERS, most=6):
    found = []
    for at in range(draw(st.integers(1, most))):
        spec = {"nodeSelector": {"kubernetes.io/hostname": "a-added-1"}} if draw(st.integers(0, 5)) == 0 else {}
        spec |= {"group": draw(st.sampled_from(["", "", "g"])), "priority": draw(st.integers(0, 1))}
        found.append(written(owner=OWNER, created=draw(AGES), name=f"w-{at}", **draw(requests), **spec))
    return found


@st.composite
def vgpu_nodes(draw):
    mode = draw(st.sampled_from(["hami-core", "hami-core", "mig"]))
    return gpu_node("a", draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 10])), mode)


@given(
    vgpu_nodes() | st.just(gpushare_node("a", 2, 40)), vgpu_nodes(), waiting_pods(), st.integers(0, 3), st.booleans()
)
def test_an_added_node_is_as_good_as_a_real_one(copied, other, pods, minimum, split):
    other = copy.deepcopy(other)
    other["metadata"]["name"] = "b"
    for raw in (copied, other):
        raw["metadata"]["labels"] = {"kubernetes.io/hostname": raw["metadata"]["name"]}
    real = copy.deepcopy(copied)
    real["metadata"] |= {"name": "a-added-1", "labels": {"kubernetes.io/hostname": "a-added-1"}}
    objects, split = [*pods, group(minMember=minimum)], 3 if split else None
    ahead = look([copied, other], objects, add=(parse_addition("a"),), split=split)
    then = look([copied, other, real], objects, split=split)
    places, real_places = ([(one.name, one.after, one.node) for one in found.waiting] for found in (ahead, then))
    assert places == real_places
    assert ahead.room == then.room


@given(vgpu_nodes(), waiting_pods(), waiting_pods(), st.integers(0, 3))
def test_a_drained_node_is_as_good_as_none(node, running, waiting, minimum):
    """The pods that a first look ahead puts on a node are those that run there."""
    for raw in running:
        raw["metadata"]["name"] = f"r-{raw['metadata']['name']}"
        raw["metadata"]["annotations"].pop(names.GROUP_NAME, None)
    other = gpu_node("b", 2, 10)
    bound = [one.name for one in look([node], running, split=None).waiting if one.after is Fate.STARTS]
    running = [raw for raw in running if raw["metadata"]["name"] in bound]
    for at, raw in enumerate(running):
        raw["spec"]["nodeName"] = "a"
        raw["metadata"]["annotations"] |= {names.VGPU_IDS: f"GPU-a-0,NVIDIA,{at + 1},0:", names.VGPU_NODE: "a"}
    objects = [*running, *waiting, group(minMember=minimum)]
    ahead = look([node, other], objects, drain=("a",))
    for raw in running:  # what their controllers would create
        del raw["spec"]["nodeName"]
        raw["metadata"] |= {"annotations": {}, "creationTimestamp": "2027-01-01T00:00:00Z"}
    then = look([other], objects)
    assert fates(ahead) == fates(then)
    assert ahead.room == then.room


@pytest.mark.parametrize("change", [{"drain": ()}, {"split": 3}])
def test_nodes_that_are_alike_are_judged_once(change):
    """So that the cost does not grow with pods times nodes; each pod that starts makes two new states, one for each order."""
    waits = [written(owner=OWNER, name=f"w-{at}", number=1, memory=50000) for at in range(6)]
    most = []
    for count in (4, 40):
        running = [written(owner=OWNER, name=f"r-{at}", node=f"n{at}", slices={0: (30000, 0)}) for at in range(count)]
        most.append(calls_of(judge, look, [gpu_node(f"n{at}") for at in range(count)], [*running, *waits], **change))
    assert most[0] == most[1] < 50


# --- against a slow scheduler -----------------------------------------------------------------------------------------


def outcomes(nodes, pods):
    """Which pods (name, amounts) may start, one after the other: the sets of their names, over all choices of nodes."""
    if not pods:
        return {frozenset()}
    (name, wanted), *rest = pods
    found = set()
    for at, naive in enumerate(nodes):
        after = naive.copy()
        if after.place(wanted) is not None:
            found |= {each | {name} for each in outcomes([*nodes[:at], after, *nodes[at + 1 :]], rest)}
    return found or outcomes(nodes, rest)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 10])), min_size=1, max_size=3), waiting_pods(REQUESTS)
)
def test_what_starts_is_what_a_slow_scheduler_starts(shapes, pods):
    for raw in pods:
        raw["metadata"]["annotations"].pop(names.GROUP_NAME, None)
        raw["spec"].pop("nodeSelector", None)
    nodes = [gpu_node(f"n{at}", count, split) for at, (count, split) in enumerate(shapes)]
    found = look(nodes, pods, split=None)
    metadata = ("creationTimestamp", "name")
    queue = sorted(pods, key=lambda raw: (-raw["spec"]["priority"], *(raw["metadata"][key] for key in metadata)))
    assert [one.name for one in found.waiting] == [raw["metadata"]["name"] for raw in queue]
    wanted = []
    for raw in queue:
        limits = raw["spec"]["containers"][0]["resources"]["limits"]
        amounts = {key: int(limits[name]) for key, name in NAMES.items() if name in limits}
        wanted.append((raw["metadata"]["name"], amounts))
    possible = outcomes([Naive("vgpu", count, MEMORY, split) for count, split in shapes], wanted)
    starts = {one.name for one in found.waiting if one.after is Fate.STARTS}
    may = starts | {one.name for one in found.waiting if one.after is Fate.DEPENDS}
    assert any(starts <= each <= may for each in possible)
    if len(possible) == 1:
        assert possible == {frozenset(starts)}
    never = {one.name for one in found.waiting if one.after is Fate.NEVER}
    assert never.isdisjoint(frozenset().union(*possible))
