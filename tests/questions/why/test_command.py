"""`vgpu-webhook why`: its input, output and exit codes."""

from datetime import UTC, datetime, timedelta

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, pod, python, vgpus
from tests.cli.held import ITEMS, PODS, pod_with_slice
from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import status
from webhook import names
from webhook.questions.why.waiting import ALL_PODGROUPS, PODGROUPS

FLEET = FLEETS / "mixed.yaml"
SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)
TEAM = "/api/v1/namespaces/team/pods"
JOBS, CRONJOBS = "/apis/batch/v1/namespaces/team/jobs", "/apis/batch/v1/namespaces/team/cronjobs"
VCJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs"


def pending_pod(name, memory, number=4, group="", days=9):
    """A pending pod; only gpu-b has four cards with this much memory."""
    annotations = {names.GROUP_NAME: group, names.JOB_NAME: "train"} if group else {}
    created = datetime.now(UTC) - timedelta(days=days, hours=1)
    metadata = {"namespace": "team", "uid": name, "annotations": annotations, "creationTimestamp": f"{created:%FT%TZ}"}
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
BOUND = [pod_with_slice("a", "gpu-b", 0, 40000), pod_with_slice("b", "gpu-b", 1, 20000, "other")]
OBJECTS = [
    *BOUND,
    pending_pod("fits", 41000),
    pending_pod("waits", 60000),
    pending_pod("huge", 90000),
    pending_pod("train-w-0", 50000, group="train-1", days=8),
    pending_pod("train-w-1", 50000, group="train-1", days=7),
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
        ("huge", 4, "never"),
        ("a", 0, "bound"),
        ("vcjob/train", 4, "never"),
    ],
)
def test_verdict_and_exit_code(run, pods, subject, code, verdict):
    result = run("why", subject, "-n", "team", *SETTINGS, "--pods", pods, "-o", "json")
    assert (result.code, result.err) == (code, "")
    [report] = result.lines
    assert (report["verdict"], report["namespace"]) == (verdict, "team")
    as_yaml = run("why", subject, "-n", "team", *SETTINGS, "--pods", pods, "-o", "yaml")
    assert (as_yaml.code, yaml.safe_load(as_yaml.out)) == (code, report)


def test_without_a_name_all_waiting_pods_are_listed(run, pods):
    result = run("why", *SETTINGS, "--pods", pods)
    assert (result.code, result.err) == (4, "")
    head, *rows = [line.split(maxsplit=4) for line in result.out.splitlines()]
    assert head == ["NAMESPACE", "POD", "VERDICT", "AGE", "WHY"]
    assert [row[:4] for row in rows] == [
        ["team", "huge", "never", "9d"],
        ["team", "train-w-0", "never", "8d"],
        ["team", "train-w-1", "never", "7d"],
        ["team", "waits", "not-now", "9d"],
        ["team", "fits", "fits-now", "9d"],
    ]
    why = [row[4] for row in rows]
    assert why[0].startswith('container "main" requests volcano.sh/vgpu-memory 90000, but the largest card, ')
    assert why[1] == why[2]
    assert why[1].startswith("2 pods start together: 2 more must fit at once, but the empty fleet has room for 1")
    assert why[3].startswith("once team/a has ended it fits on gpu-b; with volcano.sh/vgpu-")
    assert why[3].endswith(" it fits now")
    listed = run("why", "-n", "team", *SETTINGS, "--pods", pods, "-o", "json").lines
    assert [each["name"] for each in listed] == [row[1] for row in rows]
    assert (listed[3]["reason"], listed[3]["ends"], listed[3]["holder"]["name"]) == ("memory", "team/a", "a")
    nobody = run("why", "-n", "other", *SETTINGS, "--pods", pods)
    assert (nobody.code, nobody.out) == (0, "no pod waits for devices\n")


def test_text(run, pods):
    result = run("why", "train-w-0", "-n", "team", *SETTINGS, "--pods", pods)
    assert result.code == 4
    for line in (
        "NEVER  Pod train-w-0 in team",
        "2 pods start together: 2 more must fit at once, but the empty fleet has room for 1",
        "held by team/a: 40000 MiB and 20 % of cores on 1 card",
        "→ once team/a has ended it fits on gpu-b",
        "podgroup  train-1, phase Inqueue, queue gpus",
        "Unschedulable: NotEnoughResources 0/2 tasks",
        "scheduler  1/1 tasks in gang unschedulable",
    ):
        assert line in result.out


def test_objects_without_devices_are_reported_separately(run, pods, write):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    both = {"apiVersion": "v1", "kind": "List", "items": [service, pending_pod("new", 60000) | {"status": {}}]}
    result = run("why", "-f", write("both.json", both), *SETTINGS, "--pods", pods, "-o", "json")
    assert (result.code, [item["verdict"] for item in result.lines]) == (1, ["not-now"])
    assert "Service s: it has no pods" in result.err


def test_files_without_podgroups_leave_gangs_unknown(run, write):
    alone = write(
        "pods.json", {"apiVersion": "v1", "kind": "List", "items": [one for one in OBJECTS if one is not GROUP]}
    )
    for command in (("why",), ("what-if", "--split", 10)):
        assert "the files have no PodGroups" in run(*command, *SETTINGS, "--pods", alone).err
        assert run(*command, *SETTINGS, "--pods", write("all.json", OBJECTS)).err == ""


def test_an_item_that_is_not_an_object_is_named_with_its_file(run, write):
    result = run("why", "-f", write("both.json", {"kind": "List", "items": [[]]}), "--sample")
    assert result.code == 2
    assert result.err.endswith("both.json: items[0]: this is a list, not a Kubernetes object\n")


def test_the_samples(run, write):
    result = run("why", "-f", write("pod.json", pending_pod("new", 20000, 1)), "--sample")
    assert (result.code, "it would fit now, on gpu-a" in result.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "-f", FLEET), "not both"),
        (("x", "-A"), "--all-namespaces lists waiting pods"),
        (("a/b/c",), "neither POD nor KIND/NAME"),
        (("x", "--fleet", FLEET), "name the pods with --pods FILE"),
        (("x", "--sample"), "there is no pod x in namespace default"),
        (("vcjob/x", "--sample"), "there is no Volcano Job x"),
        (("sts/x", "--sample"), "there is no StatefulSet x in namespace default"),
        (("deploymnt/x", "--sample"), "no kind of workload is called 'deploymnt'; did you mean deployment?"),
    ],
)
def test_bad_usage(run, arguments, message):
    result = run("why", *arguments)
    assert (result.code, message in result.err) == (2, True)


# --- workloads --------------------------------------------------------------------------------------------------------


def workload(api_version, kind, name, number=1, owner=None, **more):
    """A workload with one pod template, and perhaps a controller."""
    template = {"spec": pod(limits=vgpus(number, 1000, 0))["spec"]}
    metadata = {"namespace": "team", "name": name, "ownerReferences": [owner] if owner else []}
    found = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"template": template}}
    return found | more


def controller(api_version, kind, name):
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": True}


def pod_of(name, memory, *owner, **labels):
    found = pending_pod(name, memory)
    found["metadata"] |= {"ownerReferences": [controller(*owner)], "labels": labels}
    return found


def bound(raw):
    return raw | {"spec": {**raw["spec"], "nodeName": "gpu-a"}, "status": {"phase": "Running"}}


HASH = {"pod-template-hash": "5f6d"}
REPLICA = {"Worker": {"template": {"spec": pod(limits=vgpus(4, 60000, 0))["spec"]}}}
WORKLOADS = [
    workload("apps/v1", "Deployment", "server"),
    pod_of("server-5f6d-x", 60000, "apps/v1", "ReplicaSet", "server-5f6d", **HASH),
    workload("apps/v1", "ReplicaSet", "server-5f6d"),
    workload("batch/v1", "CronJob", "nightly") | {"spec": {"jobTemplate": {"spec": {}}}},
    workload("batch/v1", "Job", "nightly-1", owner=controller("batch/v1", "CronJob", "nightly")),
    pod_of("nightly-1-x", 90000, "batch/v1", "Job", "nightly-1"),
    workload("batch/v1", "Job", "done", status={"conditions": [{"type": "Complete", "status": "True"}]}),
    workload("kubeflow.org/v1", "PyTorchJob", "bert") | {"spec": {"pytorchReplicaSpecs": REPLICA}},
    workload("apps/v1", "StatefulSet", "empty"),
    workload("apps/v1", "StatefulSet", "running"),
    bound(pod_of("running-0", 1000, "apps/v1", "StatefulSet", "running")),
    workload("apps/v1", "DaemonSet", "refused", 99),
]


@pytest.mark.parametrize(
    ("subject", "verdict", "summary"),
    [
        ("deployment/server", "not-now", "no node takes it now"),
        ("deploy/server", "not-now", "no node takes it now"),
        ("ReplicaSet/server-5f6d", "not-now", "no node takes it now"),
        ("cronjob/nightly", "never", "but the largest card"),
        ("jobs.batch/nightly-1", "never", "but the largest card"),
        ("job/done", "bound", "its pods do not wait: it has ended as Complete"),
        ("pytorchjob/bert", "not-now", "no node takes it now"),
        ("sts/empty", "fits-now", "it would fit now"),
        ("statefulset/running", "bound", "none of its pods waits for a node; 1 of them have one"),
        ("ds/refused", "never", "the webhook refuses its pods, so they are never created"),
        ("vcjob/train", "never", "2 pods start together"),
    ],
)
def test_a_workload_is_explained_by_its_waiting_pods_or_else_by_its_template(run, write, subject, verdict, summary):
    pods = write("all.json", {"apiVersion": "v1", "kind": "List", "items": [*WORKLOADS, *OBJECTS]})
    (report,) = run("why", subject, "-n", "team", *SETTINGS, "--pods", pods, "-o", "json").lines
    assert (report["verdict"], summary in report["summary"]) == (verdict, True), report["summary"]
    assert (report["namespace"], report["name"]) == ("team", subject.partition("/")[2])


# --- a cluster --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path):
    with ApiServer() as api:
        api.put(NODES, *ITEMS)
        api.put(PODS, *BOUND)
        team_pods = [item for item in OBJECTS if item["kind"] == "Pod" and item["metadata"]["namespace"] == "team"]
        api.put(TEAM, *team_pods)
        api.put(PODGROUPS.format("team", "")[:-1], GROUP)
        api.put(VCJOBS, JOB)
        yield api, ("--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig"), "--device-config", CONFIG, "-n", "team")


def test_a_cluster(cluster, run):
    _, options = cluster
    result = run("why", "waits", *options, "-o", "json")
    assert (result.code, result.err) == (1, "")
    assert result.lines[0]["reasons"][1]["ends"] == "team/a"
    job = run("why", "vcjob/train", *options, "-o", "json")
    assert (job.code, job.lines[0]["group"]["queue"]) == (4, "gpus")
    assert run("why", "unknown", *options).code == 2


def test_the_list_of_a_cluster_counts_what_has_started_of_a_gang(cluster, run):
    api, options = cluster
    waiting = [item for item in OBJECTS if item["kind"] == "Pod" and "nodeName" not in item["spec"]]
    started = pending_pod("train-w-2", 1, group="train-1")
    bound = started | {"spec": {**started["spec"], "nodeName": "gpu-a"}, "status": {"phase": "Running"}}
    api.put(PODS, *BOUND, *waiting)
    api.put(TEAM, bound)
    api.put(ALL_PODGROUPS, GROUP)
    listed = {each["name"]: each for each in run("why", *options, "-o", "json").lines}
    assert {name: each["verdict"] for name, each in listed.items()} == {
        "huge": "never",
        "waits": "not-now",
        "train-w-0": "not-now",
        "train-w-1": "not-now",
        "fits": "fits-now",
    }
    assert listed["train-w-0"]["reason"] != "gang", "only one of the two has to start"
    api.fail(ALL_PODGROUPS, status(403))
    without = run("why", *options)
    assert (without.code, "gangs and queues are unknown" in without.err) == (4, True)


def test_a_cluster_is_asked_for_the_controllers_of_pods(cluster, run):
    api, options = cluster
    by_kind = {kind: [each for each in WORKLOADS if each["kind"] == kind] for kind in ("Pod", "Job", "CronJob")}
    for path, kind in ((TEAM, "Pod"), (JOBS, "Job"), (CRONJOBS, "CronJob")):
        api.put(path, *by_kind[kind])
    found = run("why", "cronjob/nightly", *options, "-o", "json")
    assert (found.code, "but the largest card" in found.lines[0]["summary"]) == (4, True)
    api.fail(f"{JOBS}/nightly-1", status(403))
    unknown = run("why", "cronjob/nightly", *options)
    assert (unknown.code, "its pods request no devices" in unknown.err) == (2, True)


def test_nodes_that_are_cordoned(cluster, run):
    api, options = cluster
    api.put(NODES, *[item | {"spec": {"unschedulable": True}} for item in ITEMS])
    result = run("why", "fits", *options)
    assert (result.code, "none takes the pod now: cordoned (1 node)" in result.out) == (1, True)


def test_without_permission_to_read_podgroups(cluster, run):
    api, options = cluster
    api.fail(PODGROUPS.format("team", "train-1"), status(403))
    result = run("why", "train-w-0", *options, "-o", "json")
    assert (result.code, result.lines[0]["gang"]) == (1, None)
    assert "may not be read, so its gang is unknown" in result.err


def test_a_resource_that_no_node_offers_keeps_a_pod_waiting_for_ever(run, write, pods, only):
    result = run("why", *SETTINGS, "--pods", pods, "-f", write("p.yaml", pod(limits={"nvidia.com/gpu": "1"})))
    assert result.code == 4
    assert result.out.startswith(
        'NEVER  Pod train in default\n  container "main" requests nvidia.com/gpu, but no node offers it; for a slice'
    )
    mixed = write("m.yaml", pod(limits={"amd.com/gpu": "1", **vgpus(1, 1000, 10)}))
    (answer,) = run("why", *SETTINGS, *only("resource-not-offered"), "--pods", pods, "-f", mixed, "-o", "json").lines
    assert (answer["verdict"], answer["findings"], answer["notJudged"]) == ("never", [], [])
    assert answer["summary"].startswith('container "main" requests amd.com/gpu, but no node offers it')


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        (("kube-system", "default-scheduler"), "never"),
        (("lab", "default-scheduler"), "never"),
        (("lab", "volcano"), "fits-now"),
        (("team", "default-scheduler"), "fits-now"),
    ],
)
def test_nothing_repairs_a_manifest_of_an_exempt_namespace(run, write, pods, place, verdict):
    namespace, scheduler = place
    policy = write("policy.yaml", {"namespaces": [{"match": ["lab"], "exempt": True}]})
    path = write("p.yaml", pod(limits=vgpus(1, 1000, 10), schedulerName=scheduler))
    options = ("--policy", policy, "--pods", pods, "-f", path, "-n", namespace, "-o", "json")
    (answer,) = run("why", *SETTINGS, *options).lines
    assert answer["verdict"] == verdict
    if verdict == "never":
        assert f"Volcano never looks at the pod; namespace {namespace} is exempt: the " in answer["summary"]
        assert answer["summary"].endswith('; write "volcano"')


def test_devices_of_resource_claims_are_not_judged(run, write, pods):
    manifest = pod(limits=vgpus(1, 1000, 10))
    manifest["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    path = write("p.yaml", manifest)
    (answer,) = run("why", *SETTINGS, "--pods", pods, "-f", path, "-o", "json").lines
    (sentence,) = answer["notJudged"]
    assert f"  note  {sentence}" in run("why", *SETTINGS, "--pods", pods, "-f", path).out


@pytest.mark.parametrize(
    "replicas, expected",
    [((0, 1), ("fits-now", None)), ((1, 1), ("fits-now", None)), ((1, 399), ("never", 150))],
)
def test_the_pods_of_a_distributed_job_are_asked_for_together(run, write, pods, replicas, expected):
    verdict, fit = expected
    template = {"spec": pod(limits=vgpus(1, 1000, 10))["spec"]}
    roles = {
        role: {"replicas": count, "template": template}
        for role, count in zip(("Master", "Worker"), replicas, strict=True)
    }
    raw = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"}}
    job = write("j.yaml", raw | {"spec": {"pytorchReplicaSpecs": roles}})
    (answer,) = run("why", *SETTINGS, "--pods", pods, "-f", job, "-o", "json").lines
    gang = {"minimum": sum(replicas), "started": 0, "waiting": sum(replicas), "atOnce": False, "fit": fit}
    assert (answer["verdict"], answer["gang"]) == (verdict, gang if sum(replicas) > 1 else None)
    if verdict == "never":
        assert answer["summary"].startswith(
            "400 pods work together: 400 more must fit at once, but the empty fleet has room"
        )


def test_a_manifest_of_a_gang_that_never_starts_is_not_refused(run, write, pods):
    tasks = [{"name": "w", "replicas": 9, "template": {"spec": pod(limits=vgpus(4, 50000, 100))["spec"]}}]
    job = write("j.yaml", JOB | {"spec": {"minAvailable": 9, "tasks": tasks}})
    (answer,) = run("why", *SETTINGS, "--pods", pods, "-f", job, "-o", "json").lines
    assert (answer["verdict"], answer["change"]) == ("never", None)
    assert answer["summary"].startswith('task "w" must start 9 pods at once, but the empty fleet holds ')
    assert answer["reasons"][0]["reason"] == "gang-too-large"
    assert [found for found in answer["findings"] if found["rule"].startswith("gang-")] == []
    refused = write(
        "r.yaml", JOB | {"spec": {"tasks": [{"name": "w", "template": {"spec": pod(limits=vgpus(9, 1, 0))["spec"]}}]}}
    )
    (answer,) = run("why", *SETTINGS, "--pods", pods, "-f", refused, "-o", "json").lines
    assert answer["summary"] == "the webhook refuses its pods, so they are never created"


def test_why_imports_the_rules_and_at_most_120_other_files():
    """It reviews the pod that waits, so it needs every rule, and each is a file."""
    code = (
        "import sys; from webhook.cli.main import main; main(['why', '--sample']); "
        "print(*sorted(name for name, module in sys.modules.items() if name.startswith('webhook.') "
        "and not name.startswith(('webhook.rules.mutate.', 'webhook.rules.validate.')) "
        "and not module.__file__.endswith('__init__.py')))"
    )
    loaded = python(code).stdout.splitlines()[-1].split()
    assert "webhook.questions.why.answer" in loaded
    assert len(loaded) <= 120, loaded
