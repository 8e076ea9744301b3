"""A policy that does not enforce: the warnings, the stored pods, and the audit log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, attach, changed_config_map
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Run, Serve
from tests.e2e.objects import namespace_objects, pod, pods
from tests.e2e.serving import audit_lines
from tests.e2e.test_live import POLICY, TOO_MANY
from tests.server.program import DATA, Authority, until

AUDITED, WARNED, ENFORCED, OTHER = "observe-audit", "observe-warn", "observe-enforce", "observe-other"
NOT_ENFORCING = {
    "enforcement": "audit",
    "repairs": {"toleration": "off"},
    "namespaces": [
        {"match": [WARNED], "enforcement": "warn", "repairs": {"toleration": "on"}},
        {"match": [ENFORCED], "enforcement": "enforce"},
    ],
}
FLEET = DATA / "fleets" / "mixed.yaml"
TOO_LARGE = pod("p", {"volcano.sh/vgpu-number": "9"})


@pytest.fixture(scope="module")
def log(
    cluster: Cluster, serve: Serve, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The audit log of a webhook with this policy, which the API server calls."""
    file = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    program = serve("--audit-log", str(file))
    attach(cluster, program.port, authority.ca.certificate, program)
    for namespace in (AUDITED, WARNED, ENFORCED, OTHER):
        cluster.apply(*namespace_objects(namespace))
    with cluster.api() as api, changed_config_map(api, POLICY, "policy.yaml", yaml.safe_dump(NOT_ENFORCING)):
        until(lambda: api.post(f"{pods(OTHER)}?dryRun=All", TOO_LARGE).status == 201)
        yield file


def create(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> tuple[int, str]:
    """Create a pod with kubectl; returns its exit code and its standard error."""
    result = cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=manifest)
    return result.returncode, result.stderr


def creation(log: Path, name: str) -> dict[str, dict[str, Any]]:
    """The audit lines of a new pod, by endpoint."""
    lines = audit_lines(log, 2, namespace=AUDITED, name=name, operation="CREATE")
    return {line["endpoint"]: line for line in lines}


def is_unchanged(api: Api, namespace: str, name: str) -> bool:
    """Whether a pod is stored without repairs."""
    spec = api.get(pods(namespace, name)).body["spec"]
    tolerations = [toleration["key"] for toleration in spec["tolerations"]]
    return spec["schedulerName"] == "default-scheduler" and "volcano.sh/vgpu" not in tolerations


def test_audit_admits_without_a_warning_and_records_the_refusal(cluster: Cluster, api: Api, log: Path):
    assert create(cluster, AUDITED, TOO_LARGE) == (0, "")
    assert is_unchanged(api, AUDITED, "p")
    lines = creation(log, "p")
    assert lines["validate"]["allowed"]
    assert {line["enforcement"] for line in lines.values()} == {"audit"}
    denials = [finding["rule"] for finding in lines["validate"]["findings"] if finding["level"] == "deny"]
    assert denials == ["card-count"]
    assert [operation["path"] for operation in lines["mutate"]["patch"]] == ["/spec/schedulerName"]


def test_warn_admits_with_warnings_about_repairs_and_refusals(cluster: Cluster, api: Api, log: Path):
    code, stderr = create(cluster, WARNED, TOO_LARGE)
    assert code == 0
    first, second, third = stderr.splitlines()
    assert first == 'Warning: scheduler-name: would be repaired: spec.schedulerName becomes "volcano"'
    assert second.startswith("Warning: toleration: would be repaired: spec.tolerations gets ")
    assert third.startswith(f"Warning: card-count: would be refused: {TOO_MANY}")
    assert is_unchanged(api, WARNED, "p")


def test_the_log_is_summarized_and_replayed(run: Run, cluster: Cluster, log: Path, tmp_path: Path):
    assert create(cluster, ENFORCED, TOO_LARGE)[0] == 1
    audit_lines(log, 1, namespace=ENFORCED, endpoint="validate")
    summary = json.loads(run("decisions", "--summary", "-o", "json", str(log)).stdout)
    assert summary["namespaces"][AUDITED]["refused"] == summary["namespaces"][WARNED]["refused"] == 0
    assert summary["namespaces"][AUDITED]["wouldBeRefused"] >= 1
    assert summary["namespaces"][ENFORCED]["refused"] >= 1
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(NOT_ENFORCING))
    inputs = ["--fleet", str(FLEET), "--device-config", str(DEVICE_CONFIG), "--policy", str(policy)]
    replayed = run("replay", *inputs, "--set", "enforcement=enforce", "--namespace", AUDITED, str(log))
    assert replayed.returncode == 1, replayed.stderr
    assert "allowed -> refused" in replayed.stdout
    assert "deny  card-count" in replayed.stdout
