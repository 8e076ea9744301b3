"""`vgpu-webhook why`: its input, output and exit codes."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.conftest import CONFIG, FLEETS, python
from tests.cli.held import ITEMS, PODS
from tests.cli.rows import rows, table_of
from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import status
from webhook.live.cluster_reader import ALL_PODGROUPS, PODGROUPS

FLEET = FLEETS / "mixed.yaml"
SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)
TEAM = "/api/v1/namespaces/team/pods"
JOBS, CRONJOBS = "/apis/batch/v1/namespaces/team/jobs", "/apis/batch/v1/namespaces/team/cronjobs"
VCJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs"


test_command = rows(__file__)

TABLE = table_of(__file__)["files"]
OBJECTS, WORKLOADS = (TABLE[name]["items"] for name in ("pods.json", "workloads.json"))
GROUP, JOB = OBJECTS[-2:]
BOUND = OBJECTS[:2]


def test_the_list_has_the_age_of_each_pod(run, write):
    created = f"{datetime.now(UTC) - timedelta(days=9, hours=1):%FT%TZ}"
    old = {**OBJECTS[3], "metadata": OBJECTS[3]["metadata"] | {"creationTimestamp": created}}
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [*BOUND, old]})
    head, row = [line.split() for line in run("why", *SETTINGS, "--pods", pods).out.splitlines()]
    assert (head[:4], row[:4]) == (["NAMESPACE", "POD", "VERDICT", "AGE"], ["team", "waits", "not-now", "9d"])


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
    member = OBJECTS[5]
    bound = member | {"spec": {**member["spec"], "nodeName": "gpu-a"}, "status": {"phase": "Running"}}
    bound["metadata"] = member["metadata"] | {"name": "train-w-2", "uid": "w2"}
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
