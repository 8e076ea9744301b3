"""`vgpu-webhook scan`: its input, output, PolicyReports and exit codes."""

import csv
import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, only_rules, pod, vgpus
from tests.cli.test_terminal import TerminalStream
from tests.cluster.apihttp import ReceivedRequest
from tests.cluster.apiserver import ApiServer, Object, config_map
from tests.cluster.faults import status
from webhook import names
from webhook.inputs.files import MAX_MANIFEST_BYTES

FLEET = FLEETS / "mixed.yaml"
RULES = ("card-count", "cores-range", "foreign-scheduler")  # what the pods of these tests are refused for
REPORTS = "/apis/wgpolicyk8s.io/v1alpha2"


@pytest.fixture
def settings(only):
    return "--fleet", FLEET, "--device-config", CONFIG, *only(*RULES)


def bound_pod(name: str, cores: int = 50, namespace: str = "team", owner: str = "", **fields: Any) -> dict[str, Any]:
    """A pod that is bound to a node."""
    metadata: dict[str, Any] = {"namespace": namespace, "annotations": {names.VGPU_NODE: "gpu-a"}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "controller": True}
        ]
    return pod(name, limits=vgpus(1, 1000, cores), metadata=metadata, nodeName="elsewhere", **fields)


def listed(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": "List"}


def pods_and_others() -> dict[str, Any]:
    return listed(
        bound_pod("good"),
        bound_pod("db-0", 150, owner="db"),
        bound_pod("db-1", 150, owner="db"),
        bound_pod("loose", schedulerName="default-scheduler", namespace="other"),
        bound_pod("done", 150) | {"status": {"phase": "Succeeded"}},
        pod("plain", metadata={"namespace": "team"}),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
    )


def unknown(kind: str, namespace: str = "team", **spec: Any) -> dict[str, Any]:
    """An object of a kind that the webhook does not review."""
    return {
        "apiVersion": "example.org/v1",
        "kind": kind,
        "metadata": {"name": "r", "namespace": namespace},
        "spec": spec,
    }


REFUSED = pod(limits=vgpus(1, 1000, 101))["spec"]
IN_TEMPLATE, IN_NO_TEMPLATE = {"group": {"template": {"spec": REFUSED}}}, {"container": REFUSED["containers"][0]}


# --- files ----------------------------------------------------------------------------------------------------------


TABLE = """\
NAMESPACE  OBJECT                   LEVEL  RULE            MESSAGE
other      Pod/loose                deny   scheduler-name  would be repaired at creation: spec.schedulerName becomes "volcano"
team       Pod/good                 fine
team       StatefulSet/db (2 pods)  deny   cores-range     container "main" requests volcano.sh/vgpu-cores 150, but it is a \
percentage of one card; write 100 or less

5 reviewed: 5 pods, 0 workloads; requesting devices: 4
3 deny in 3 objects
skipped: 2 finished pods and other objects
"""


def trimmed(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_the_table(run, write, dump, settings):
    result = run("scan", *settings, write("all", dump(pods_and_others())))
    assert (trimmed(result.out), result.err, result.code) == (TABLE, "", 1)


def test_objects_that_are_not_reviewed_are_named(run, write, settings):
    policy = write("policy.yaml", {"namespaces": [{"match": ["own-*"], "exempt": True}]})
    items = [bound_pod("a", 150, namespace=namespace) for namespace in ("kube-system", "own-a")]
    items += [unknown("Session", namespace, **IN_NO_TEMPLATE) for namespace in ("team", "kube-system")]
    path = write("all", listed(*items, {"apiVersion": "v1", "kind": "ConfigMap"}))
    expected = [
        ("not reviewed: namespace kube-system is exempt: ", " (2 objects)"),
        ("not reviewed: namespace own-a is exempt: ", " (1 object)"),
        ("not reviewed: unknown kind Session of example.org: ", " (1 object)"),
    ]

    def matches_expected(lines: list[str], prefix: str = "") -> bool:
        ends = zip(lines, expected, strict=True)
        return all(line.startswith(prefix + start) and line.endswith(end) for line, (start, end) in ends)

    table = run("scan", *settings, "--policy", policy, path)
    assert (table.code, table.err) == (0, "")
    *lines, skipped = table.out.splitlines()[-4:]
    assert matches_expected(lines)
    assert skipped == "skipped: 1 finished pods and other objects"
    result = run("scan", *settings, "--policy", policy, "-o", "json", path)
    assert (result.code, result.out) == (0, "")
    assert matches_expected(result.err.splitlines(), "warning: ")


def test_an_unknown_kind_is_reviewed_by_its_shape(run, write, settings):
    path = write("all", listed(*(unknown("Fleet", each, **IN_TEMPLATE) for each in ("team", "kube-system"))))
    result = run("scan", *settings, path)
    assert result.code == 1
    assert "unknown kind Fleet of example.org: " in " ".join(result.out.split())
    result = run("scan", *settings, "-o", "json", path)
    assert [(line["kind"], line["level"], line["rule"]) for line in result.lines] == [("Fleet", "deny", "cores-range")]
    assert "warning: unknown kind Fleet of example.org: " in result.err


def test_another_installation_exempts_other_namespaces(run, write, settings):
    path = write(
        "all",
        listed(*[bound_pod("a", 150, namespace=namespace) for namespace in ("kube-system", "gpu-system", "team")]),
    )
    exempt = ("--exempt-namespace", "gpu-system")
    result = run("scan", *settings, "-o", "json", *exempt, path)
    assert [line["namespace"] for line in result.lines] == ["kube-system", "team"]
    assert "namespace gpu-system is exempt" in result.err
    result = run("review", *settings, "-o", "json", *exempt, path)
    assert [line["allowed"] for line in result.lines] == [False, True, False]
    assert len(run("scan", *settings, "-o", "json", "--exempt-namespace", "", path).lines) == 3


def test_findings_only_and_finished_pods(run, write, settings):
    result = run("scan", *settings, "--findings-only", "--all", write("all", pods_and_others()))
    assert "Pod/good" not in result.out
    assert "Pod/done" in result.out


def test_without_a_fleet_no_pod_is_fine(run, write, settings):
    note = "the fleet is unknown, so whether any node has such cards was not checked: kubectl get nodes -o yaml > fleet.yaml"
    big = bound_pod("big")
    big["spec"]["containers"][0]["resources"] = {key: {names.VGPU_NUMBER: "12"} for key in ("limits", "requests")}
    path = write("all", listed(big, bound_pod("small")))
    table = run("scan", *settings[-2:], path)
    assert (table.code, table.err) == (0, "")
    assert "fine" not in table.out
    assert re.search(r"Pod/small +unchecked", table.out)
    assert f"note {note}, then add --fleet fleet.yaml" in " ".join(table.out.split())
    lines = run("scan", *settings[-2:], "-o", "json", path)
    assert lines.err == f"warning: {note}, then add --fleet fleet.yaml\n"
    assert run("scan", *settings, path).code == 1, "no node has 12 cards"
    plain = run("scan", write("plain", listed({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}})))
    assert "note" not in plain.out


def test_json_has_one_line_per_row(run, write, settings):
    result = run("scan", *settings, "-o", "json", write("all", pods_and_others()))
    assert [
        (line["kind"], line["name"], line["pods"], line["pod"], line["rule"], line["level"]) for line in result.lines
    ] == [
        ("Pod", "loose", 0, "", "scheduler-name", "deny"),
        ("Pod", "good", 0, "", None, None),
        ("StatefulSet", "db", 2, "db-0", "cores-range", "deny"),
    ]
    assert result.lines[2]["path"] == "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"


@pytest.mark.parametrize("dump", [lambda value: json.dumps(value, indent=1), yaml.safe_dump])
def test_reports_have_the_line_of_each_finding_and_name_unreadable_files(run, write, tmp_path, dump, settings):
    text = dump(pods_and_others())
    path, missing = write("all.yaml", text), tmp_path / "none.yaml"
    result = run("scan", *settings, "-o", "sarif", path, missing)
    (log,) = json.loads(result.out)["runs"]
    lines = {
        found["ruleId"]: text.splitlines()[found["locations"][0]["physicalLocation"]["region"]["startLine"] - 1]
        for found in log["results"]
    }
    assert "volcano.sh/vgpu-cores" in lines["cores-range"]
    assert "schedulerName" in lines["scheduler-name"]
    assert [found["properties"]["pods"] for found in log["results"] if "properties" in found] == [2]
    notes = log["invocations"][0]["toolExecutionNotifications"]
    assert [(note["level"], note["message"]["text"]) for note in notes] == [
        ("error", f"{missing}: No such file or directory")
    ]
    cases = ET.fromstring(run("scan", *settings, "-o", "junit", path, missing).out).iter("testcase")
    assert [(case.get("name"), [child.tag for child in case]) for case in cases] == [
        ("other/Pod/loose", ["failure"]),
        ("team/Pod/good", []),
        ("team/StatefulSet/db", ["failure"]),
        (f"{missing}: No such file or directory", ["error"]),
    ]
    rows = list(csv.DictReader(io.StringIO(run("scan", *settings, "-o", "csv", path).out)))
    assert [(row["name"], row["pods"], row["level"], row["rule"], row["file"]) for row in rows] == [
        ("loose", "0", "deny", "scheduler-name", str(path)),
        ("good", "", "fine", "", str(path)),
        ("db", "2", "deny", "cores-range", str(path)),
    ]
    assert "2 deny, 1 fine" in re.sub("<[^>]*>", "", run("scan", *settings, "-o", "html", path).out)


def test_a_report_says_what_was_not_checked(run, write):
    path = write("all", listed(unknown("Session", **IN_NO_TEMPLATE), bound_pod("a")))
    for output, found in (("sarif", "unknown kind Session"), ("junit", "<skipped"), ("html", "the fleet is unknown")):
        assert found in run("scan", "-o", output, path).out


def test_namespaces_can_be_chosen(run, write, settings):
    result = run("scan", *settings, "-o", "json", "-n", "other", "--namespace", "none", write("all", pods_and_others()))
    assert [line["name"] for line in result.lines] == ["loose"]


def test_labels_can_be_chosen(run, write, settings):
    items = [bound_pod(name, 150) for name in ("a", "b", "c")]
    for item, labels in zip(items, ({"app": "web"}, {"app": "api"}, {}), strict=True):
        item["metadata"]["labels"] = labels
    path = write("all", listed(*items))
    for command in ("scan", "review"):
        result = run(command, *settings, "-o", "json", "-l", "app in (web, api),app!=api", path)
        assert [line["name"] for line in result.lines] == ["a"]
    result = run("scan", "-l", "a b", path)
    assert result.err.startswith(
        "error: invalid value for '-l' / '--selector': 'a b' is not a label selector; write KEY=VALUE"
    )


@pytest.mark.parametrize(
    "items, options, code",
    [
        ([bound_pod("good")], (), 0),
        ([bound_pod("a", tolerations=[])], (), 0),
        ([bound_pod("a", tolerations=[])], ("--warnings-as-errors",), 3),
        ([bound_pod("a", 150)], ("--warnings-as-errors",), 1),
        ([bound_pod("a", 150), {"metadata": {}}], (), 2),
        ([bound_pod("a", 150), bound_pod("b") | {"spec": "text"}], (), 2),
        ([], (), 0),
    ],
)
def test_exit_codes(run, write, settings, *, items, options, code):
    assert run("scan", *settings, *options, write("all", listed(*items))).code == code


def test_unreadable_files_are_named_and_the_rest_is_reported(run, write, tmp_path, settings):
    bad = write("bad.json", '{"items": [{')
    invalid = write("odd.json", bound_pod("b") | {"spec": "\x1b"}, pods_and_others())
    empty, cut = write("empty.json", ""), write("cut.yaml", "apiVersion: v1\nitems:\n- kind: Pod\n")
    result = run("scan", *settings, bad, tmp_path / "none", invalid, empty, cut)
    assert result.code == 2
    assert trimmed(result.out) == TABLE
    errors = result.err.splitlines()
    assert errors[0].startswith(f"error: {bad}: not JSON that can be read")
    assert errors[1] == f"error: {tmp_path / 'none'}: No such file or directory"
    assert errors[2] == f"error: {invalid}: object 1: spec must be an object, not a string"
    assert errors[3] == f"error: {empty}: no document in it"
    assert errors[4].startswith(f"error: {cut}: ends before `kind: List`, so it seems to be cut off")
    assert "\x1b" not in result.err


def test_json_of_standard_input_is_read_up_to_its_error(run, settings):
    whole = json.dumps(pods_and_others())
    assert trimmed(run("scan", *settings, "-", stdin=whole.encode()).out) == TABLE
    result = run("scan", *settings, "-", stdin=whole[: whole.index('"Service"')].encode())
    assert trimmed(result.out) == TABLE.replace("2 finished", "1 finished")
    assert result.code == 2
    assert "standard input: not JSON that can be read" in result.err


def test_hostile_names_are_escaped(run, write, settings):
    result = run("scan", *settings, write("pod.json", bound_pod("x", 150, namespace="\x1b[31mred")))
    assert result.code == 1
    assert "\x1b" not in result.out
    assert "\\x1b[31mred" in result.out


def test_a_large_yaml_file_is_refused_with_advice(run, write):
    path = write("big.yaml", "")
    os.truncate(path, MAX_MANIFEST_BYTES + 1)
    result = run("scan", path)
    assert result.code == 2
    assert "print it with -o json, which is read piece by piece" in result.err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--cluster", "file"],
        ["--kubeconfig", "x", "file"],
        ["-o", "yaml", "file"],
        ["--report", "file"],
        ["--exit-zero", "--warnings-as-errors", "file"],
    ],
)
def test_contradictory_options_are_refused(run, argv):
    assert run("scan", *argv).code == 2


def test_reports_can_be_printed(run, write, settings):
    result = run("scan", *settings, "--report", "-o", "yaml", write("all", pods_and_others()))
    reports = list(yaml.safe_load_all(result.out))
    assert [report["metadata"]["namespace"] for report in reports] == ["other", "team"]
    assert reports[1]["summary"]["fail"] == 1
    assert result.code == 1


def test_memory_is_bounded(tmp_path, settings):
    """Four times as many pods need no more memory."""
    script = (
        "import re, sys; from webhook.cli.main import main; main(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    variables = [{"name": f"V{number}", "value": "x" * 500} for number in range(50)]
    peaks = []
    for count in (150, 600):
        path = tmp_path / f"{count}.json"
        pod_object = bound_pod("p")
        pod_object["spec"]["containers"][0]["env"] = variables
        text = json.dumps(pod_object)
        path.write_text('{"items":[' + ",".join([text] * count) + "]}")
        command = [sys.executable, "-c", script, "scan", *map(str, settings), str(path)]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stderr))
    assert path.stat().st_size > 15_000_000
    assert peaks[1] < peaks[0] + 8_000, "KiB"


def test_progress_is_shown_on_a_terminal_only(run, write, monkeypatch, settings):
    seconds = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    padding = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "x" * MAX_MANIFEST_BYTES}}
    path = write("all.json", listed(*[bound_pod(f"p{number}") for number in range(64)], padding))
    command = ("scan", *settings, "--findings-only", path)
    assert run(*command).err == ""
    terminal = TerminalStream()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert "a second" not in run(*command).out
    assert terminal.getvalue() == "\r\x1b[Kread 64 objects, 10%, 64 a second\r\x1b[K"


# --- a cluster ------------------------------------------------------------------------------------------------------


class ReportServer(ApiServer):
    """A cluster that stores PolicyReports.

    Attributes:
        writes: all writes, as (method, path).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.writes: list[tuple[str, str]] = []

    def write(self, request: ReceivedRequest, body: bytes) -> tuple[Object, dict[str, str]]:
        self.writes.append((request.method, request.path))
        collection, _, name = request.path.rpartition("/")
        if request.method == "DELETE":
            self.delete(collection, name)
            return {}, {}
        report = json.loads(body)
        if request.method == "PUT":
            assert report["metadata"]["resourceVersion"] == self.get(request.path)["metadata"]["resourceVersion"]
        self.put(request.path if request.method == "POST" else collection, report)
        return report, {}

    def page(self, request: ReceivedRequest) -> Object | None:
        """A list, of all namespaces if it is of reports, with the apiVersion that its items omit."""
        collections = {
            path: found for path, found in self._objects.items() if path.startswith(f"{REPORTS}/namespaces/")
        }
        self._objects[f"{REPORTS}/policyreports"] = {
            path: report for path, found in collections.items() for report in found.values()
        }
        parts = request.path.strip("/").split("/")
        return super().page(request) | {"apiVersion": "v1" if parts[0] == "api" else "/".join(parts[1:3])}


def policy_map(policy: dict[str, Any]) -> Object:
    return config_map(names.POLICY_MAP, {names.POLICY_KEY: json.dumps(policy)})


@pytest.fixture
def api() -> Iterator[ReportServer]:
    with ReportServer() as server:
        server.put("/api/v1/nodes", *yaml.safe_load(FLEET.read_text())["items"])
        config = config_map(names.DEVICE_CONFIG_MAP, {names.DEVICE_CONFIG_KEY: CONFIG.read_text()})
        server.put("/api/v1/namespaces/volcano-system/configmaps", config)
        server.put("/api/v1/namespaces/vgpu-webhook/configmaps", policy_map(only_rules(*RULES)))
        yield server


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> tuple[str, ...]:
    return ("--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig", "team")))


def test_a_cluster_is_scanned_with_its_own_settings(run, api, cluster):
    api.put("/api/v1/pods", *[item for item in pods_and_others()["items"] if item["kind"] == "Pod"])
    api.fail(".*/batch.volcano.sh/.*", status(404))
    result = run("scan", *cluster, "-A")
    assert trimmed(result.out) == TABLE.replace("2 finished", "1 finished")
    assert (result.err, result.code) == ("", 1)


def test_objects_of_a_cluster_are_in_no_file(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150))
    (log,) = json.loads(run("scan", *cluster, "-A", "-o", "sarif").out)["runs"]
    path = "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"
    logical = {"name": "team/Pod/a", "kind": "resource", "fullyQualifiedName": f"team/Pod/a/{path}"}
    assert [found["locations"] for found in log["results"]] == [[{"logicalLocations": [logical]}]]
    (suite,) = ET.fromstring(run("scan", *cluster, "-A", "-o", "junit").out)
    assert (suite.get("name"), suite.get("failures")) == ("team", "1")


def test_the_namespace_of_the_context_is_the_default(run, api, cluster):
    api.put("/api/v1/namespaces/team/pods", bound_pod("mine", 150))
    api.put("/api/v1/pods", bound_pod("theirs", 150, namespace="other"))
    assert [line["name"] for line in run("scan", *cluster, "-o", "json").lines] == ["mine"]


def test_the_policy_of_the_cluster_is_used(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150))
    text = "rules: {cores-range: warn, fits-no-node: warn}"
    api.put("/api/v1/namespaces/vgpu-webhook/configmaps", config_map(names.POLICY_MAP, {names.POLICY_KEY: text}))
    assert run("scan", *cluster, "-A").code == 0


def test_objects_of_a_partly_reviewed_kind_are_scanned_too(run, api, cluster):
    """A TrainJob has only the resources of its nodes; its JobSet has the complete pods, and covers its Jobs."""
    template = {"template": {"spec": bound_pod("x", 150)["spec"]}}

    def made(version: str, kind: str, spec: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
        owners = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}] if owner else []
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "train", "ownerReferences": owners},
            "spec": spec,
        }

    trainer = {"numProcPerNode": 1, "resourcesPerNode": {"limits": vgpus(1, 1000, 150)}}
    train_job = made("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": trainer})
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": template}}]}
    job_set = made("jobset.x-k8s.io/v1alpha2", "JobSet", spec, train_job)
    api.put("/apis/trainer.kubeflow.org/v1alpha1/trainjobs", train_job)
    api.put("/apis/jobset.x-k8s.io/v1alpha2/jobsets", job_set)
    api.put("/apis/batch/v1/jobs", made("batch/v1", "Job", template, job_set))
    lines = run("scan", *cluster, "-A", "-o", "json").lines
    assert {(line["kind"], line["level"]) for line in lines} == {("TrainJob", "deny"), ("JobSet", "deny")}


def test_a_kind_is_read_in_the_version_that_the_cluster_serves(run, api, cluster):
    api.fail(".*/kubeflow.org/v1/.*", status(404))
    spec = {"mpiReplicaSpecs": {"Worker": {"template": {"spec": bound_pod("x", 150)["spec"]}}}}
    job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "mpi"}, "spec": spec}
    api.put("/apis/kubeflow.org/v2beta1/mpijobs", job)
    result = run("scan", *cluster, "-A", "-o", "json")
    assert {(line["kind"], line["level"]) for line in result.lines} == {("MPIJob", "deny")}
    assert result.err == ""


def test_a_forbidden_kind_is_reported_and_the_rest_scanned(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150))
    assert run("scan", *cluster, "-A", "--exit-zero").code == 0
    api.fail(".*/cronjobs", lambda handler: handler.refuse(403, "cronjobs is forbidden"))
    assert run("scan", *cluster, "-A", "--exit-zero").code == 2
    result = run("scan", *cluster, "-A")
    assert result.code == 2
    assert "cores-range" in result.out
    assert "403 cronjobs is forbidden" in result.err


def test_reports_are_created_replaced_and_deleted(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150), bound_pod("b", 150, namespace="other"))
    result = run("scan", *cluster, "-A", "--report")
    assert "PolicyReports: 2 created, 0 replaced, 0 deleted, 0 unchanged" in result.out
    assert result.code == 1
    report = api.get(f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook-scan")
    assert report["summary"]["fail"] == 1

    result = run("scan", *cluster, "-A", "--report", "-o", "json")
    assert len(result.lines) == 2
    assert "2 unchanged" in result.err

    api.writes.clear()
    assert "0 created, 0 replaced, 0 deleted, 2 unchanged" in run("scan", *cluster, "-A", "--report").out
    assert api.writes == []

    api.put("/api/v1/pods", bound_pod("a", 160), bound_pod("b", namespace="other"))
    assert "0 created, 1 replaced, 1 deleted, 0 unchanged" in run("scan", *cluster, "-A", "--report").out
    assert api.writes == [
        ("PUT", f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook-scan"),
        ("DELETE", f"{REPORTS}/namespaces/other/policyreports/vgpu-webhook-scan"),
    ]
    selected = [request.query.get("labelSelector") for request in api.requests_for(f"{REPORTS}/policyreports")]
    assert set(selected) == {"app.kubernetes.io/managed-by=vgpu-webhook"}


def test_reports_are_not_deleted_after_an_incomplete_scan(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150))
    run("scan", *cluster, "-A", "--report")
    api.put("/api/v1/pods", bound_pod("a"))
    api.fail(".*/cronjobs", status(403))
    result = run("scan", *cluster, "-A", "--report")
    assert "0 deleted" in result.out
    assert result.code == 2


def test_a_report_that_cannot_be_written_is_an_error(run, api, cluster):
    api.put("/api/v1/pods", bound_pod("a", 150))
    api.fail(f"{REPORTS}/namespaces/team/policyreports", lambda handler: handler.refuse(403, "may not create"))
    result = run("scan", *cluster, "-A", "--report")
    assert result.code == 2
    assert "403 may not create" in result.err


def test_without_the_crd_no_pod_is_read(run, api, cluster):
    api.fail(f"{REPORTS}/.*", status(404))
    result = run("scan", *cluster, "-A", "--report")
    assert result.code == 2
    assert "the cluster has no PolicyReports (wgpolicyk8s.io/v1alpha2): install their CRD" in result.err
    assert not api.requests_for("/api/v1/pods")


def test_a_cluster_that_does_not_answer_is_an_error(run, api, cluster):
    api.stop()
    result = run("scan", *cluster)
    assert result.code == 2
    assert "Connection refused" in result.err


def test_findings_about_assignments(run, write, settings):
    assigned = {names.VGPU_IDS: "GPU-gone,NVIDIA,1000,0:"}
    items = [bound_pod("db-0", owner="db"), bound_pod("db-1", owner="db"), bound_pod("bare")]
    for item in items[:2]:
        item["metadata"]["annotations"] |= assigned
    for item in items:
        item["spec"]["nodeName"] = "gpu-a"
    result = run("scan", *settings, "-o", "json", write("pods.json", listed(*items)))
    rules = {(line["kind"], line["name"], line["pods"]): line["rule"] for line in result.lines if line["rule"]}
    assert rules == {("StatefulSet", "db", 2): "assigned-card-missing", ("Pod", "bare", 0): "bound-without-assignment"}
    assert result.code == 0
    assert run("scan", *settings, "--warnings-as-errors", write("pods.json", listed(*items))).code == 3


def test_devices_of_resource_claims_are_counted(run, write, settings):
    pods = [pod(name) for name in ("a", "b")]
    for each in pods:
        each["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    result = run("scan", *settings, write("l.json", listed(*pods)))
    assert (result.code, "resources.claims is not judged; " in result.out) == (0, True)
    assert "(2 objects)" in result.out
