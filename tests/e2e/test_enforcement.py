"""A policy that does not enforce: what a pod's author sees, what is stored, and what is recorded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, attach, changed
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Run, Serve
from tests.e2e.objects import furnished_namespace, pod, pods
from tests.e2e.test_live import POLICY, SECONDS, TOO_MANY
from tests.server.program import DATA, Authority, until

AUDITED, WARNED, ENFORCED, OTHER = "observe-audit", "observe-warn", "observe-enforce", "observe-other"
OBSERVING = {
    "enforcement": "audit",
    "repairs": {"toleration": "off"},
    "namespaces": [
        {"match": [WARNED], "enforcement": "warn", "repairs": {"toleration": "on"}},
        {"match": [ENFORCED], "enforcement": "enforce"},
    ],
}
FLEET = DATA / "fleets" / "mixed.yaml"
TOO_LARGE = pod("p", {"volcano.sh/vgpu-number": "9"})
REPAIRABLE = pod("repairable", {"volcano.sh/vgpu-memory": "3000"})


@pytest.fixture(scope="module")
def log(
    cluster: Cluster, serve: Serve, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The audit log of a webhook with that policy, which the API server calls."""
    file = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    program = serve("--audit-log", str(file))
    attach(cluster, program.port, authority.ca.certificate, program)
    for namespace in (AUDITED, WARNED, ENFORCED, OTHER):
        cluster.apply(*furnished_namespace(namespace))
    with cluster.api() as api, changed(api, POLICY, "policy.yaml", yaml.safe_dump(OBSERVING)):
        until(lambda: api.post(f"{pods(OTHER)}?dryRun=All", TOO_LARGE).status == 201, SECONDS)
        yield file


def create(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> tuple[int, str]:
    """Create a pod as its author does; kubectl's exit code, and what it prints beside the answer."""
    done = cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=manifest)
    return done.returncode, done.stderr


def recorded(log: Path, namespace: str, name: str) -> dict[str, dict[str, Any]]:
    """The latest lines about a pod, by endpoint."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return {line["endpoint"]: line for line in lines if (line["namespace"], line["name"]) == (namespace, name)}


def as_sent(api: Api, namespace: str, name: str) -> bool:
    """Whether a pod is stored without any repair."""
    spec = api.get(pods(namespace, name)).body["spec"]
    tolerations = [toleration["key"] for toleration in spec["tolerations"]]
    return spec["schedulerName"] == "default-scheduler" and "volcano.sh/vgpu" not in tolerations


def test_audit_admits_without_a_word_and_records_the_refusal(cluster: Cluster, api: Api, log: Path):
    assert create(cluster, AUDITED, TOO_LARGE) == (0, "")
    assert as_sent(api, AUDITED, "p")
    lines = recorded(log, AUDITED, "p")
    assert lines["validate"]["allowed"]
    assert {line["enforcement"] for line in lines.values()} == {"audit"}
    denials = [finding["rule"] for finding in lines["validate"]["findings"] if finding["level"] == "deny"]
    assert denials == ["card-count"]
    assert [operation["path"] for operation in lines["mutate"]["patch"]] == ["/spec/schedulerName"]


def test_audit_judges_a_pod_as_it_would_be_after_its_repairs(cluster: Cluster, api: Api, log: Path):
    assert create(cluster, AUDITED, REPAIRABLE) == (0, "")
    stored = api.get(pods(AUDITED, "repairable")).body["spec"]["containers"][0]["resources"]
    assert list(stored["limits"]) == ["volcano.sh/vgpu-memory"]
    lines = recorded(log, AUDITED, "repairable")
    assert [finding["rule"] for finding in lines["validate"]["findings"]] == ["toleration-missing"]
    assert {operation["path"].rpartition("/")[2] for operation in lines["mutate"]["patch"]} >= {"schedulerName"}


def test_warn_admits_and_warns_of_repairs_and_refusals(cluster: Cluster, api: Api, log: Path):
    code, told = create(cluster, WARNED, TOO_LARGE)
    assert code == 0
    first, second, third = told.splitlines()
    assert first == 'Warning: scheduler-name: would be repaired: spec.schedulerName becomes "volcano"'
    assert second.startswith("Warning: toleration: would be repaired: spec.tolerations gets ")
    assert third.startswith(f"Warning: card-count: would be refused: {TOO_MANY}")
    assert as_sent(api, WARNED, "p")


def test_enforce_refuses_and_repairs(cluster: Cluster, api: Api, log: Path):
    code, told = create(cluster, ENFORCED, TOO_LARGE)
    assert code == 1
    assert "Error from server (Forbidden)" in told
    assert TOO_MANY in told
    code, told = create(cluster, ENFORCED, REPAIRABLE)
    assert code == 0
    assert told.startswith("Warning: toleration-missing: ")
    assert api.get(pods(ENFORCED, "repairable")).body["spec"]["schedulerName"] == "volcano"


def test_an_update_is_observed(api: Api, log: Path):
    path = pods(AUDITED, "p")
    forged = {"metadata": {"annotations": {"volcano.sh/devices-to-allocate": "x"}}}
    answer = api.merge(path, forged)
    assert answer.status == 200, answer.message
    line = recorded(log, AUDITED, "p")["validate"]
    assert (line["operation"], line["findings"][0]["rule"]) == ("UPDATE", "reserved-annotation")


def test_the_log_is_summed_up_and_replayed(run: Run, log: Path, tmp_path: Path):
    told = json.loads(run("audit", "--summary", "-o", "json", str(log)).stdout)
    assert told["namespaces"][AUDITED]["denied"] == told["namespaces"][WARNED]["denied"] == 0
    assert told["namespaces"][AUDITED]["wouldBeDenied"] >= 1
    assert told["namespaces"][ENFORCED]["denied"] >= 1
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(OBSERVING))
    inputs = ["--fleet", str(FLEET), "--device-config", str(DEVICE_CONFIG), "--policy", str(policy)]
    replayed = run("replay", *inputs, "--set", "enforcement=enforce", "--namespace", AUDITED, str(log))
    assert replayed.returncode == 1, replayed.stderr
    assert "allowed -> denied" in replayed.stdout
    assert "deny  card-count" in replayed.stdout
