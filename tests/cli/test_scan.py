"""What `vgpu-webhook scan` reads, tells and writes, and its exit codes."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, pod, shell, vgpus
from tests.kube.apihttp import Handler
from tests.kube.apiserver import ApiServer, config_map
from webhook import names

FLEET = FLEETS / "mixed.yaml"
SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)
REPORTS = "/apis/wgpolicyk8s.io/v1alpha2"


def stored(name: str, cores: int = 50, namespace: str = "team", owner: str = "", **fields: Any) -> dict[str, Any]:
    """A pod that the scheduler has placed."""
    metadata: dict[str, Any] = {
        "namespace": namespace,
        "annotations": {names.RESERVED_HAMI_PREFIX + "vgpu-node": "gpu-a"},
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "controller": True}
        ]
    return pod(name, limits=vgpus(1, 1000, cores), metadata=metadata, nodeName="elsewhere", **fields)


def listed(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": "List"}


def many() -> dict[str, Any]:
    return listed(
        stored("good"),
        stored("db-0", 150, owner="db"),
        stored("db-1", 150, owner="db"),
        stored("loose", schedulerName="default-scheduler", namespace="other"),
        stored("done", 150) | {"status": {"phase": "Succeeded"}},
        pod("plain", metadata={"namespace": "team"}),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
    )


def fleet(namespace: str = "team") -> dict[str, Any]:
    """A kind that the webhook does not review, whose pods request too much."""
    return {
        "apiVersion": "example.org/v1",
        "kind": "Fleet",
        "metadata": {"name": "r", "namespace": namespace},
        "spec": {"group": {"template": {"spec": pod(limits=vgpus(1, 1000, 101))["spec"]}}},
    }


def session(namespace: str = "team") -> dict[str, Any]:
    """A kind that the webhook does not review, whose container is in no pod template."""
    container = pod(limits=vgpus(1, 1000, 101))["spec"]["containers"][0]
    metadata = {"name": "s", "namespace": namespace}
    return {
        "apiVersion": "example.org/v1",
        "kind": "Session",
        "metadata": metadata,
        "spec": {"container": container | {"image": "i"}},
    }


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


@pytest.mark.parametrize("spell", [json.dumps, yaml.safe_dump])
def test_the_table(run, write, spell):
    ran = run("scan", *SETTINGS, write("all", spell(many())))
    assert (trimmed(ran.out), ran.err, ran.code) == (TABLE, "", 1)


def test_what_is_not_reviewed_is_named(run, write):
    policy = write("policy.yaml", {"namespaces": [{"match": ["own-*"], "exempt": True}]})
    items = [stored("a", 150, namespace=where) for where in ("kube-system", "own-a")]
    path = write("all", listed(*items, session(), session("kube-system"), {"apiVersion": "v1", "kind": "ConfigMap"}))
    unread = [
        ("not reviewed: namespace kube-system is exempt: ", " (2 objects)"),
        ("not reviewed: namespace own-a is exempt: ", " (1 object)"),
        ("not reviewed: unknown kind Session of example.org: ", " (1 object)"),
    ]

    def names_all(lines: list[str], prefix: str = "") -> bool:
        ends = zip(lines, unread, strict=True)
        return all(line.startswith(prefix + start) and line.endswith(end) for line, (start, end) in ends)

    table = run("scan", *SETTINGS, "--policy", policy, path)
    assert (table.code, table.err) == (0, "")
    *lines, skipped = table.out.splitlines()[-4:]
    assert names_all(lines)
    assert skipped == "skipped: 1 finished pods and other objects"
    ran = run("scan", *SETTINGS, "--policy", policy, "-o", "json", path)
    assert (ran.code, ran.out) == (0, "")
    assert names_all(ran.err.splitlines(), "warning: ")


def test_a_kind_that_is_not_known_is_reviewed_by_its_shape(run, write):
    path = write("all", listed(fleet(), fleet("kube-system")))
    ran = run("scan", *SETTINGS, path)
    assert ran.code == 1
    assert "unknown kind Fleet of example.org: " in " ".join(ran.out.split())
    ran = run("scan", *SETTINGS, "-o", "json", path)
    assert [(line["kind"], line["level"], line["rule"]) for line in ran.lines] == [("Fleet", "deny", "cores-range")]
    assert "warning: unknown kind Fleet of example.org: " in ran.err


def test_another_installation_exempts_other_namespaces(run, write):
    path = write("all", listed(*[stored("a", 150, namespace=where) for where in ("kube-system", "gpu-system", "team")]))
    exempt = ("--exempt-namespace", "gpu-system")
    ran = run("scan", *SETTINGS, "-o", "json", *exempt, path)
    assert [line["namespace"] for line in ran.lines] == ["kube-system", "team"]
    assert "namespace gpu-system is exempt" in ran.err
    ran = run("review", *SETTINGS, "-o", "json", *exempt, path)
    assert [line["allowed"] for line in ran.lines] == [False, True, False]
    assert len(run("scan", *SETTINGS, "-o", "json", "--exempt-namespace", "", path).lines) == 3


def test_a_workload_whose_pods_would_be_refused_is_a_denial(run, write):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": fleet()["spec"]["group"]}
    ran = run("scan", *SETTINGS, "-o", "json", write("all", job))
    assert (ran.code, ran.lines[0]["level"], ran.lines[0]["rule"]) == (1, "deny", "cores-range")


def test_findings_alone_and_finished_pods_too(run, write):
    ran = run("scan", *SETTINGS, "--findings-only", "--all", write("all", many()))
    assert "Pod/good" not in ran.out
    assert "Pod/done" in ran.out


def test_without_a_fleet_nothing_is_called_fine(run, write):
    note = "the fleet is unknown, so whether any node has such cards was not checked: kubectl get nodes -o yaml > fleet.yaml"
    big = stored("big")
    big["spec"]["containers"][0]["resources"] = {key: {names.VGPU_NUMBER: "12"} for key in ("limits", "requests")}
    path = write("all", listed(big))
    table = run("scan", path)
    assert (table.code, table.err) == (0, "")
    assert "fine" not in table.out
    assert "Pod/big  unchecked" in table.out
    assert f"note {note}, then add --fleet fleet.yaml" in " ".join(table.out.split())
    lines = run("scan", "-o", "json", path)
    assert lines.err == f"warning: {note}, then add --fleet fleet.yaml\n"
    assert run("scan", *SETTINGS, path).code == 1, "no node has 12 cards"
    plain = run("scan", write("plain", listed({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}})))
    assert "note" not in plain.out


def test_json_is_a_line_a_row(run, write):
    ran = run("scan", *SETTINGS, "-o", "json", write("all", many()))
    assert [
        (line["kind"], line["name"], line["pods"], line["pod"], line["rule"], line["level"]) for line in ran.lines
    ] == [
        ("Pod", "loose", 0, "", "scheduler-name", "deny"),
        ("Pod", "good", 0, "", None, None),
        ("StatefulSet", "db", 2, "db-0", "cores-range", "deny"),
    ]
    assert ran.lines[2]["path"] == "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"


def test_namespaces_can_be_chosen(run, write):
    ran = run("scan", *SETTINGS, "-o", "json", "-n", "other", "--namespace", "none", write("all", many()))
    assert [line["name"] for line in ran.lines] == ["loose"]


def test_labels_can_be_chosen(run, write):
    items = [stored(name, 150) for name in ("a", "b", "c")]
    for item, labels in zip(items, ({"app": "web"}, {"app": "api"}, {}), strict=True):
        item["metadata"]["labels"] = labels
    path = write("all", listed(*items))
    for command in ("scan", "review"):
        ran = run(command, *SETTINGS, "-o", "json", "-l", "app in (web, api),app!=api", path)
        assert [line["name"] for line in ran.lines] == ["a"]
    ran = run("scan", "-l", "a b", path)
    assert ran.err.startswith(
        "error: invalid value for '-l' / '--selector': 'a b' is not a label selector; write KEY=VALUE"
    )


@pytest.mark.parametrize(
    "items, options, code",
    [
        ([stored("good")], (), 0),
        ([stored("a", tolerations=[])], (), 0),
        ([stored("a", tolerations=[])], ("--warnings-as-errors",), 3),
        ([stored("a", 150)], ("--warnings-as-errors",), 1),
        ([stored("a", 150), {"metadata": {}}], (), 2),
        ([stored("a", 150), stored("b") | {"spec": "text"}], (), 2),
        ([], (), 0),
    ],
)
def test_exit_codes(run, write, items, options, code):
    assert run("scan", *SETTINGS, *options, write("all", listed(*items))).code == code


def test_what_cannot_be_read_is_named_and_the_rest_reported(run, write, tmp_path):
    bad, odd = write("bad.json", '{"items": [{'), write("odd.json", stored("b") | {"spec": "\x1b"}, many())
    ran = run("scan", *SETTINGS, bad, tmp_path / "none", odd)
    assert ran.code == 2
    assert trimmed(ran.out) == TABLE
    told = ran.err.splitlines()
    assert told[0].startswith(f"error: {bad}: not JSON that can be read")
    assert told[1] == f"error: {tmp_path / 'none'}: No such file or directory"
    assert told[2] == f"error: {odd}: object 1: spec must be an object, not a string"
    assert "\x1b" not in ran.err


def test_large_json_is_read_up_to_its_mistake(run, write, monkeypatch):
    monkeypatch.setattr("webhook.offline.objects.MAX_MANIFEST_BYTES", 1000)
    whole = json.dumps(many())
    assert trimmed(run("scan", *SETTINGS, write("all.json", whole)).out) == TABLE
    ran = run("scan", *SETTINGS, write("cut.json", whole[: whole.index('"Service"')]))
    assert trimmed(ran.out) == TABLE.replace("2 finished", "1 finished")
    assert ran.code == 2
    assert "cut.json: not JSON that can be read" in ran.err


def test_standard_input_and_hostile_names():
    evil = stored("x", 150, namespace="\x1b[31mred")
    ran = shell("scan", *SETTINGS, "-", stdin=json.dumps(listed(evil)).encode())
    assert ran.returncode == 1
    assert b"\x1b" not in ran.stdout
    assert b"\\x1b[31mred" in ran.stdout


def test_a_large_yaml_file_is_refused_with_advice(run, write, monkeypatch):
    monkeypatch.setattr("webhook.offline.manifests.MAX_MANIFEST_BYTES", 1000)
    ran = run("scan", write("big.yaml", yaml.safe_dump(many())))
    assert ran.code == 2
    assert "print it with -o json, which is read piece by piece" in ran.err


@pytest.mark.parametrize(
    "argv",
    [[], ["--cluster", "file"], ["--kubeconfig", "x", "file"], ["-o", "yaml", "file"], ["--report", "file"]],
)
def test_what_cannot_be_meant_is_refused(run, argv):
    assert run("scan", *argv).code == 2


def test_reports_can_be_printed(run, write):
    ran = run("scan", *SETTINGS, "--report", "-o", "yaml", write("all", many()))
    reports = list(yaml.safe_load_all(ran.out))
    assert [report["metadata"]["namespace"] for report in reports] == ["other", "team"]
    assert reports[1]["summary"]["fail"] == 1
    assert ran.code == 1


def test_memory_is_bounded(tmp_path):
    """Four times the pods take no more memory."""
    script = (
        "import re, sys; from webhook.cli.main import main; main(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    ballast = [{"name": f"V{number}", "value": "x" * 500} for number in range(50)]
    peaks = []
    for count in (250, 1000):
        path = tmp_path / f"{count}.json"
        one = stored("p")
        one["spec"]["containers"][0]["env"] = ballast
        text = json.dumps(one)
        path.write_text('{"items":[' + ",".join([text] * count) + "]}")
        command = [sys.executable, "-c", script, "scan", *map(str, SETTINGS), str(path)]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stderr))
    assert path.stat().st_size > 25_000_000
    assert peaks[1] < peaks[0] + 8_000, "KiB"


def test_progress_is_shown_on_a_terminal_only(tmp_path, write):
    path = write("all.json", listed(*[stored(f"p{number}") for number in range(300)]))
    script = (
        "import sys; from webhook.cli import progress; progress.EVERY = 0.01; "
        "from webhook.offline import objects; objects.MAX_MANIFEST_BYTES = 1000; "
        "from webhook.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "scan", *map(str, SETTINGS), "--findings-only", str(path)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        told = b""
        try:
            while data := os.read(ours, 4096):
                told += data
        except OSError:  # the other end is closed
            pass
        out = process.communicate()[0]
    os.close(ours)
    assert b" objects, " in told
    assert b"%, " in told
    assert b" a second" in told
    assert told.endswith(b"\r\x1b[K")
    assert b"a second" not in out
    assert subprocess.run(command, capture_output=True, check=False).stderr == b""


# --- a cluster ------------------------------------------------------------------------------------------------------


def _write(handler: Any, change: Any) -> None:
    """What the API server of the tests does on a change: it answers reads only."""
    api, path = handler.server.api, handler.path
    content = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length") or 0)) or b"null")
    api.written.append((handler.command, path))
    change(api, path, content)
    handler.respond(200, b"{}")


def _post(api: Any, path: str, content: Any) -> None:
    api.put(path, content)
    _everywhere(api, path, content)


def _put(api: Any, path: str, content: Any) -> None:
    held = api.get(path)
    assert content["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
    _post(api, path.rpartition("/")[0], content)


def _delete(api: Any, path: str, _: Any) -> None:
    collection, _, name = path.rpartition("/")
    api.delete(collection, name)
    api._objects[f"{REPORTS}/policyreports"] = {
        key: held
        for key, held in api._objects[f"{REPORTS}/policyreports"].items()
        if not collection.endswith(f"/{held['metadata']['namespace']}/policyreports")
    }


def _everywhere(api: Any, path: str, content: Any) -> None:
    """The collection of all namespaces holds what its parts hold."""
    namespace = content["metadata"]["namespace"]
    held = api.get(f"{path}/{content['metadata']['name']}")
    api._objects.setdefault(f"{REPORTS}/policyreports", {})[f"{namespace}-report"] = held


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    for method, change in (("do_POST", _post), ("do_PUT", _put), ("do_DELETE", _delete)):
        monkeypatch.setattr(Handler, method, lambda handler, change=change: _write(handler, change), raising=False)
    with ApiServer() as server:
        server.written = []  # type: ignore[attr-defined]
        nodes = yaml.safe_load(FLEET.read_text())["items"]
        server.put("/api/v1/nodes", *nodes)
        text = CONFIG.read_text()
        server.put(
            "/api/v1/namespaces/volcano-system/configmaps",
            config_map(names.DEVICE_CONFIG_MAP, {names.DEVICE_CONFIG_KEY: text}),
        )
        monkeypatch.setattr(server, "page", lambda seen: _with_group(seen.path, ApiServer.page(server, seen)))
        yield server


def _with_group(path: str, page: Any) -> Any:
    """A list as the API server spells it: with the group that its items leave out."""
    parts = path.strip("/").split("/")
    return page | {"apiVersion": "v1" if parts[0] == "api" else "/".join(parts[1:3])}


def everything(api: ApiServer, *items: dict[str, Any]) -> None:
    api.put("/api/v1/pods", *items)


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> tuple[str, ...]:
    return ("--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig", "team")))


def missing(api: ApiServer, path: str) -> None:
    api.fail(path, lambda handler: handler.refuse(404, "not found"))


def test_a_cluster_is_scanned_with_its_own_settings(run, api, cluster):
    everything(api, *[item for item in many()["items"] if item["kind"] == "Pod"])
    missing(api, ".*/batch.volcano.sh/.*")
    ran = run("scan", *cluster, "-A")
    assert trimmed(ran.out) == TABLE.replace("2 finished", "1 finished")
    assert (ran.err, ran.code) == ("", 1)


def test_the_context_s_namespace_is_the_default(run, api, cluster):
    api.put("/api/v1/namespaces/team/pods", stored("mine", 150))
    everything(api, stored("theirs", 150, namespace="other"))
    assert [line["name"] for line in run("scan", *cluster, "-o", "json").lines] == ["mine"]


def test_the_policy_of_the_cluster_counts(run, api, cluster):
    everything(api, stored("a", 150))
    text = "rules: {cores-range: warn, fits-no-node: warn}"
    api.put("/api/v1/namespaces/vgpu-webhook/configmaps", config_map(names.POLICY_MAP, {names.POLICY_KEY: text}))
    assert run("scan", *cluster, "-A").code == 0


def test_workloads_are_read_and_made_ones_are_not(run, api, cluster):
    template = {"spec": stored("x", 150)["spec"]}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    base = {"apiVersion": "apps/v1", "spec": {"template": template}}
    api.put("/apis/apps/v1/deployments", base | {"kind": "Deployment", "metadata": {"name": "web"}})
    metadata = {"name": "web-1", "ownerReferences": [made]}
    api.put("/apis/apps/v1/replicasets", base | {"kind": "ReplicaSet", "metadata": metadata})
    lines = run("scan", *cluster, "-A", "-o", "json").lines
    assert {(line["kind"], line["level"]) for line in lines} == {("Deployment", "deny")}


def test_what_a_kind_read_in_parts_has_created_is_read_too(run, api, cluster):
    """A TrainJob names the resources of its nodes; the JobSet that it becomes has the whole pods, and covers its Jobs."""
    template = {"template": {"spec": stored("x", 150)["spec"]}}

    def made(version: str, kind: str, spec: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
        owners = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}] if owner else []
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "train", "ownerReferences": owners},
            "spec": spec,
        }

    trainer = {"resourcesPerNode": {"limits": vgpus(1, 1000, 150)}}
    train_job = made("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": trainer})
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": template}}]}
    job_set = made("jobset.x-k8s.io/v1alpha2", "JobSet", spec, train_job)
    api.put("/apis/trainer.kubeflow.org/v1alpha1/trainjobs", train_job)
    api.put("/apis/jobset.x-k8s.io/v1alpha2/jobsets", job_set)
    api.put("/apis/batch/v1/jobs", made("batch/v1", "Job", template, job_set))
    lines = run("scan", *cluster, "-A", "-o", "json").lines
    assert {(line["kind"], line["level"]) for line in lines} == {("TrainJob", "deny"), ("JobSet", "deny")}


def test_a_kind_is_read_in_the_version_that_the_cluster_serves(run, api, cluster):
    missing(api, ".*/kubeflow.org/v1/.*")
    spec = {"mpiReplicaSpecs": {"Worker": {"template": {"spec": stored("x", 150)["spec"]}}}}
    job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "mpi"}, "spec": spec}
    api.put("/apis/kubeflow.org/v2beta1/mpijobs", job)
    ran = run("scan", *cluster, "-A", "-o", "json")
    assert {(line["kind"], line["level"]) for line in ran.lines} == {("MPIJob", "deny")}
    assert ran.err == ""


def test_a_forbidden_kind_is_reported_and_the_rest_scanned(run, api, cluster):
    everything(api, stored("a", 150))
    api.fail(".*/cronjobs", lambda handler: handler.refuse(403, "cronjobs is forbidden"))
    ran = run("scan", *cluster, "-A")
    assert ran.code == 2
    assert "cores-range" in ran.out
    assert "403 cronjobs is forbidden" in ran.err


def test_reports_are_created_changed_and_removed(run, api, cluster):
    everything(api, stored("a", 150), stored("b", 150, namespace="other"))
    ran = run("scan", *cluster, "-A", "--report")
    assert "PolicyReports: 2 created, 0 replaced, 0 deleted, 0 unchanged" in ran.out
    assert ran.code == 1
    report = api.get(f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook")
    assert report["summary"]["fail"] == 1

    ran = run("scan", *cluster, "-A", "--report", "-o", "json")
    assert len(ran.lines) == 2
    assert "2 unchanged" in ran.err

    api.written.clear()
    assert "0 created, 0 replaced, 0 deleted, 2 unchanged" in run("scan", *cluster, "-A", "--report").out
    assert api.written == []

    everything(api, stored("a", 160), stored("b", namespace="other"))
    assert "0 created, 1 replaced, 1 deleted, 0 unchanged" in run("scan", *cluster, "-A", "--report").out
    assert api.written == [
        ("PUT", f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook"),
        ("DELETE", f"{REPORTS}/namespaces/other/policyreports/vgpu-webhook"),
    ]
    selected = [seen.query.get("labelSelector") for seen in api.requests_for(f"{REPORTS}/policyreports")]
    assert set(selected) == {"app.kubernetes.io/managed-by=vgpu-webhook"}


def test_reports_stay_when_not_everything_could_be_read(run, api, cluster):
    everything(api, stored("a", 150))
    run("scan", *cluster, "-A", "--report")
    everything(api, stored("a"))
    api.fail(".*/cronjobs", lambda handler: handler.refuse(403, "forbidden"))
    ran = run("scan", *cluster, "-A", "--report")
    assert "0 deleted" in ran.out
    assert ran.code == 2


def test_a_report_that_cannot_be_written_is_an_error(run, api, cluster, monkeypatch):
    everything(api, stored("a", 150))
    monkeypatch.setattr(Handler, "do_POST", lambda handler: handler.refuse(403, "may not create"))
    ran = run("scan", *cluster, "-A", "--report")
    assert ran.code == 2
    assert "403 may not create" in ran.err


def test_without_the_crd_nothing_is_read(run, api, cluster):
    missing(api, f"{REPORTS}/.*")
    ran = run("scan", *cluster, "-A", "--report")
    assert ran.code == 2
    assert "the cluster has no PolicyReports (wgpolicyk8s.io/v1alpha2): install their CRD" in ran.err
    assert not api.requests_for("/api/v1/pods")


def test_a_cluster_that_does_not_answer_is_an_error(run, api, cluster):
    api.stop()
    ran = run("scan", *cluster)
    assert ran.code == 2
    assert "Connection refused" in ran.err


def test_what_is_wrong_with_assignments(run, write):
    assigned = {names.VGPU_IDS: "GPU-gone,NVIDIA,1000,0:"}
    items = [stored("db-0", owner="db"), stored("db-1", owner="db"), stored("bare")]
    for item in items[:2]:
        item["metadata"]["annotations"] |= assigned
    for item in items:
        item["spec"]["nodeName"] = "gpu-a"
    ran = run("scan", *SETTINGS, "-o", "json", write("pods.json", listed(*items)))
    found = {(line["kind"], line["name"], line["pods"]): line["rule"] for line in ran.lines if line["rule"]}
    assert found == {
        ("StatefulSet", "db", 2): "assigned-card-missing",
        ("Pod", "bare", 0): "bound-without-assignment",
    }
    assert ran.code == 0
    assert run("scan", *SETTINGS, "--warnings-as-errors", write("pods.json", listed(*items))).code == 3
