"""`vgpu-webhook scan`: its input, output, PolicyReports and exit codes."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, only_rules, pod, vgpus
from tests.cli.rows import rows, table_of
from tests.cli.test_terminal import TerminalStream
from tests.cluster.apihttp import ReceivedRequest
from tests.cluster.apiserver import ApiServer, Object, config_map
from tests.cluster.faults import status
from webhook import names
from webhook.inputs.files import MAX_MANIFEST_BYTES

test_command = rows(__file__)

FLEET = FLEETS / "mixed.yaml"
RULES = ("card-count", "cores-range", "foreign-scheduler")  # what the pods of these tests are refused for
REPORTS = "/apis/wgpolicyk8s.io/v1alpha2"


@pytest.fixture
def settings(only):
    return "--fleet", FLEET, "--device-config", CONFIG, *only(*RULES)


def bound_pod(name: str, cores: int = 50, namespace: str = "team") -> dict[str, Any]:
    """A pod that is bound to a node."""
    metadata = {"namespace": namespace, "annotations": {names.VGPU_NODE: "gpu-a"}}
    return pod(name, limits=vgpus(1, 1000, cores), metadata=metadata, nodeName="elsewhere")


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", [lambda value: json.dumps(value, indent=1), yaml.safe_dump])
def test_sarif_has_the_line_of_each_finding_and_names_unreadable_files(run, write, tmp_path, dump, settings):
    text = dump(table_of(__file__)["files"]["all.json"])
    path, missing = write("all.yaml", text), tmp_path / "none.yaml"
    result = run("scan", *settings, "-o", "sarif", path, missing)
    (log,) = json.loads(result.out)["runs"]
    places = {found["ruleId"]: found["locations"][0]["physicalLocation"]["region"] for found in log["results"]}
    lines = {rule: text.splitlines()[place["startLine"] - 1] for rule, place in places.items()}
    assert "volcano.sh/vgpu-cores" in lines["cores-range"]
    assert "schedulerName" in lines["scheduler-name"]
    assert [found["properties"]["pods"] for found in log["results"] if "properties" in found] == [2]
    (note,) = log["invocations"][0]["toolExecutionNotifications"]
    assert (note["level"], note["message"]["text"]) == ("error", f"{missing}: No such file or directory")


def test_a_large_yaml_file_is_refused_with_advice(run, write):
    path = write("big.yaml", "")
    os.truncate(path, MAX_MANIFEST_BYTES + 1)
    result = run("scan", path)
    assert result.code == 2
    assert "print it with -o json, which is read piece by piece" in result.err


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
    pods = [bound_pod(f"p{number}") for number in range(64)]
    path = write("all.json", {"apiVersion": "v1", "items": [*pods, padding], "kind": "List"})
    command = ("scan", *settings, "--findings-only", path)
    assert run(*command).err == ""
    terminal = TerminalStream()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert "a second" not in run(*command).out
    assert terminal.getvalue() == "\r\x1b[Kread 64 objects, 10%, 64 a second\r\x1b[K"


# --- a cluster ------------------------------------------------------------------------------------------------------


class ReportServer(ApiServer):
    """A cluster that stores PolicyReports, and lists those of all namespaces."""

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [(request.method, request.path) for request in self.requests if request.method != "GET"]

    def collection(self, path: str) -> dict[str, Object]:
        if path != f"{REPORTS}/policyreports":
            return super().collection(path)
        return {key: obj for key, obj in self.objects.items() if key.startswith(f"{REPORTS}/namespaces/")}

    def page(self, request: ReceivedRequest) -> Object | None:
        """A list with the apiVersion that its items omit."""
        parts = request.path.strip("/").split("/")
        return super().page(request) | {"apiVersion": "v1" if parts[0] == "api" else "/".join(parts[1:3])}


@pytest.fixture
def api() -> Iterator[ReportServer]:
    with ReportServer() as server:
        server.put("/api/v1/nodes", *yaml.safe_load(FLEET.read_text())["items"])
        config = config_map(names.DEVICE_CONFIG_MAP, {names.DEVICE_CONFIG_KEY: CONFIG.read_text()})
        server.put("/api/v1/namespaces/volcano-system/configmaps", config)
        policy = config_map(names.POLICY_MAP, {names.POLICY_KEY: json.dumps(only_rules(*RULES))})
        server.put("/api/v1/namespaces/vgpu-webhook/configmaps", policy)
        yield server


@pytest.fixture
def scan(api: ReportServer, run: Any, tmp_path: Path) -> Callable[..., Any]:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig", "team")
    return lambda *options: run("scan", "--kubeconfig", kubeconfig, "-A", "--report", *options)


def test_reports_are_created_replaced_and_deleted(api, scan):
    api.put("/api/v1/pods", bound_pod("a", 150), bound_pod("b", 150, namespace="other"))
    result = scan()
    assert "PolicyReports: 2 created, 0 replaced, 0 deleted, 0 unchanged" in result.out
    assert result.code == 1
    report = api.get(f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook-scan")
    assert report["summary"]["fail"] == 1

    result = scan("-o", "json")
    assert len(result.lines) == 2
    assert "2 unchanged" in result.err

    api.requests.clear()
    assert "0 created, 0 replaced, 0 deleted, 2 unchanged" in scan().out
    assert api.writes == []

    api.put("/api/v1/pods", bound_pod("a", 160), bound_pod("b", namespace="other"))
    assert "0 created, 1 replaced, 1 deleted, 0 unchanged" in scan().out
    assert api.writes == [
        ("PUT", f"{REPORTS}/namespaces/team/policyreports/vgpu-webhook-scan"),
        ("DELETE", f"{REPORTS}/namespaces/other/policyreports/vgpu-webhook-scan"),
    ]
    selected = [request.query.get("labelSelector") for request in api.requests_for(f"{REPORTS}/policyreports")]
    assert set(selected) == {"app.kubernetes.io/managed-by=vgpu-webhook"}


def test_reports_are_not_deleted_after_an_incomplete_scan(api, scan):
    api.put("/api/v1/pods", bound_pod("a", 150))
    scan()
    api.put("/api/v1/pods", bound_pod("a"))
    api.fail(".*/cronjobs", status(403))
    result = scan()
    assert (result.code, "0 deleted" in result.out) == (2, True)


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("namespaces/team/policyreports", 403, "403 made to fail with 403"),
        (".*", 404, "the cluster has no PolicyReports (wgpolicyk8s.io/v1alpha2): install their CRD"),
    ],
)
def test_reports_that_cannot_be_written_are_an_error(api, scan, path, code, message):
    api.put("/api/v1/pods", bound_pod("a", 150))
    api.fail(f"{REPORTS}/{path}", status(code))
    result = scan()
    assert (result.code, message in result.err) == (2, True), result.err
    assert bool(api.requests_for("/api/v1/pods")) is (code == 403), "without the CRD no pod is read"


def test_a_cluster_that_does_not_answer_is_an_error(api, scan):
    api.stop()
    result = scan()
    assert (result.code, "Connection refused; check the kubeconfig, and that" in result.err) == (2, True)
