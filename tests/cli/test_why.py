"""What `vgpu-webhook why` reads and prints, and its exit codes."""

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, pod, vgpus
from tests.cli.test_usage import ITEMS, PODS, holding
from tests.kube.apiserver import NODES, ApiServer
from tests.kube.faults import status
from webhook import names
from webhook.offline.waiting import JOBS, PODGROUPS

FLEET = FLEETS / "mixed.yaml"
SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)
TEAM = "/api/v1/namespaces/team/pods"


def waiting(name, memory, number=4, group=""):
    """A pod of the API server that waits: gpu-b alone has cards of such memory, four of them."""
    annotations = {names.GROUP_NAME: group, names.JOB_NAME: "train"} if group else {}
    metadata = {"namespace": "team", "uid": name, "annotations": annotations}
    condition = {"type": "PodScheduled", "status": "False", "message": "1/1 tasks in gang unschedulable"}
    made = pod(name, limits=vgpus(number, memory, 0), metadata=metadata)
    return made | {"status": {"phase": "Pending", "conditions": [condition]}}


GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"namespace": "team", "name": "train-1"},
    "spec": {"minMember": 2, "queue": "gpus"},
    "status": {
        "phase": "Inqueue",
        "conditions": [
            {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/2 tasks"}
        ],
    },
}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"namespace": "team", "name": "train"},
    "spec": {
        "minAvailable": 2,
        "tasks": [{"name": "w", "replicas": 2, "template": {"spec": pod(limits=vgpus(4, 50000, 0))["spec"]}}],
    },
}
HELD = [holding("a", "gpu-b", 0, 40000), holding("b", "gpu-b", 1, 20000, "other")]
OBJECTS = [
    *HELD,
    waiting("fits", 41000),
    waiting("waits", 60000),
    waiting("huge", 90000),
    waiting("train-w-0", 50000, group="train-1"),
    waiting("train-w-1", 50000, group="train-1"),
    GROUP,
    JOB,
]


@pytest.fixture
def pods(write):
    return write("pods.json", {"apiVersion": "v1", "kind": "List", "items": OBJECTS})


@pytest.mark.parametrize(
    ("subject", "code", "verdict"),
    [
        ("fits", 0, "fits-now"),
        ("pod/waits", 1, "not-now"),
        ("huge", 3, "never"),
        ("a", 0, "bound"),
        ("vcjob/train", 3, "never"),
    ],
)
def test_verdict_and_exit_code(run, pods, subject, code, verdict):
    done = run("why", subject, "-n", "team", *SETTINGS, "--pods", pods, "-o", "json")
    assert (done.code, done.err) == (code, "")
    [found] = done.lines
    assert (found["verdict"], found["namespace"]) == (verdict, "team")
    again = run("why", subject, "-n", "team", *SETTINGS, "--pods", pods, "-o", "yaml")
    assert (again.code, yaml.safe_load(again.out)) == (code, found)


def test_json_names_what_refuses_and_what_helps(run, pods):
    [found] = run("why", "waits", "-n", "team", *SETTINGS, "--pods", pods, "-o", "json").lines
    reason = next(one for one in found["reasons"] if one["node"] == "gpu-b")
    assert (reason["reason"], reason["verdict"], reason["ends"]) == ("memory", "not-now", "team/a")
    assert [(one["namespace"], one["name"], one["memory"]) for one in reason["holders"]] == [
        ("team", "a", 40000),
        ("other", "b", 20000),
    ]
    assert found["change"] == {"container": "main", "resource": names.VGPU_NUMBER, "most": 3}


def test_text_for_people(run, pods):
    done = run("why", "train-w-0", "-n", "team", *SETTINGS, "--pods", pods)
    assert done.code == 3
    for line in (
        "NEVER  Pod train-w-0 in team",
        "2 pods start together: 2 more must fit at once, but the empty fleet has room for 1",
        "held by team/a: 40000 MiB and 20 % of cores on 1 card",
        "→ once team/a has ended it fits on gpu-b",
        "podgroup  train-1, phase Inqueue, queue gpus",
        "Unschedulable: NotEnoughResources 0/2 tasks",
        "scheduler  1/1 tasks in gang unschedulable",
    ):
        assert line in done.out


def test_manifests(run, pods, write):
    manifest = write("pod.json", waiting("new", 60000) | {"status": {}})
    done = run("why", "-f", manifest, *SETTINGS, "--pods", pods, "-o", "json")
    assert (done.code, [one["verdict"] for one in done.lines]) == (1, ["not-now"])


def test_objects_without_devices_take_no_answer_away(run, pods, write):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    both = {"apiVersion": "v1", "kind": "List", "items": [service, waiting("new", 60000) | {"status": {}}]}
    done = run("why", "-f", write("both.json", both), *SETTINGS, "--pods", pods, "-o", "json")
    assert (done.code, [one["verdict"] for one in done.lines]) == (1, ["not-now"])
    assert "Service s: its pods request no devices" in done.err


def test_what_is_no_object_is_named_with_its_file(run, write):
    done = run("why", "-f", write("both.json", {"kind": "List", "items": [[]]}), "--sample")
    assert done.code == 2
    assert done.err.endswith("both.json: items[0]: this is a list, not a Kubernetes object\n")


def test_the_samples(run, write):
    done = run("why", "-f", write("pod.json", waiting("new", 20000, 1)), "--sample")
    assert (done.code, "it would fit now, on gpu-a" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a pod, vcjob/NAME, or a manifest"),
        (("x", "-f", FLEET), "name a pod, vcjob/NAME, or a manifest"),
        (("a/b/c",), "neither POD nor vcjob/NAME"),
        (("x", "--fleet", FLEET), "name the pods with --pods FILE"),
        (("x", "--sample"), "there is no pod x in namespace default"),
        (("vcjob/x", "--sample"), "there is no Volcano Job x"),
    ],
)
def test_bad_usage(run, arguments, message):
    done = run("why", *arguments)
    assert (done.code, message in done.err) == (2, True)


# --- a cluster --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path):
    with ApiServer() as api:
        api.put(NODES, *ITEMS)
        api.put(PODS, *HELD)
        own = [one for one in OBJECTS if one["kind"] == "Pod" and one["metadata"]["namespace"] == "team"]
        api.put(TEAM, *own)
        api.put(PODGROUPS.format("team", "")[:-1], GROUP)
        api.put(JOBS.format("team", "")[:-1], JOB)
        yield api, ("--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig"), "--device-config", CONFIG, "-n", "team")


def test_a_cluster(cluster, run):
    _, options = cluster
    done = run("why", "waits", *options, "-o", "json")
    assert (done.code, done.err) == (1, "")
    assert done.lines[0]["reasons"][1]["ends"] == "team/a"
    job = run("why", "vcjob/train", *options, "-o", "json")
    assert (job.code, job.lines[0]["group"]["queue"]) == (3, "gpus")
    assert run("why", "nobody", *options).code == 2


def test_nodes_that_are_cordoned(cluster, run):
    api, options = cluster
    api.put(NODES, *[one | {"spec": {"unschedulable": True}} for one in ITEMS])
    done = run("why", "fits", *options)
    assert (done.code, "none takes the pod now: cordoned (1 node)" in done.out) == (1, True)


def test_without_the_right_to_read_podgroups(cluster, run):
    api, options = cluster
    api.fail(PODGROUPS.format("team", "train-1"), status(403))
    done = run("why", "train-w-0", *options, "-o", "json")
    assert (done.code, done.lines[0]["gang"]) == (1, None)
    assert "may not be read, so its gang is unknown" in done.err
