"""The console against a real API server, with the permissions that deploy/ gives it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import attach, extra_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.console import Console
from tests.e2e.objects import pod, pods
from tests.e2e.test_live import larger_node
from tests.server.program import Authority, Program, until

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def call(
    cluster: Cluster, authority: Authority, audit_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Call]:
    """A function that calls the API of a console, which runs as in deploy/."""
    kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
    settings: list[str | Path] = ["--kubeconfig", kubeconfig, "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    files: list[str | Path] = ["--audit-log", audit_log, "--tls-cert", authority.directory / "tls.crt"]
    console = Console(tmp_path_factory.mktemp("console") / "log", *settings, *files)
    console.wait(lambda: console.api("/fleet")["known"])
    yield console.api
    console.close(10)


def test_the_fleet_follows_the_nodes_of_the_cluster(call: Call, api: Api):
    def names() -> set[str]:
        families = call("/fleet")["families"]
        return {name for family in families for shape in family["shapes"] for name in shape["names"]}

    assert "gpu-a" in names()
    with extra_node(api, larger_node()):
        until(lambda: "larger" in names())
    until(lambda: "larger" not in names())


def test_reviews_use_the_nodes_of_the_cluster(call: Call):
    manifest = json.dumps(pod("greedy", {"volcano.sh/vgpu-number": "9"}))
    (document,) = call("/review", {"manifest": manifest})["documents"]
    assert not document["allowed"]
    assert "the largest node (gpu-a) has 8 cards" in document["message"]


@pytest.fixture
def logged_webhook(cluster: Cluster, serve: Serve, authority: Authority, audit_log: Path) -> Program:
    """A webhook whose audit log the console reads."""
    program = serve("--audit-log", str(audit_log))
    attach(cluster, program.port, authority.ca.certificate, program)
    return program


@pytest.mark.usefixtures("logged_webhook")
def test_decisions_of_the_webhook_appear(call: Call, api: Api, namespace: str):
    refused = api.post(pods(namespace), pod("greedy", {"volcano.sh/vgpu-number": "9"}))
    assert refused.status == 403
    until(lambda: call(f"/decisions?namespace={namespace}&refused=true")["entries"] != [])
    (entry,) = call(f"/decisions?namespace={namespace}&refused=true")["entries"]
    assert entry["rules"] == [{"rule": "card-count", "level": "deny"}]
    replay = call(f"/decisions/{entry['number']}/replay")
    assert "same" in json.dumps(replay)


def test_health_has_the_origins_of_the_settings(call: Call):
    health = call("/health")
    origins = {setting["name"]: setting["source"]["origin"] for setting in health["sources"]}
    assert "volcano-vgpu-device-config" in origins["device config"]
    assert "vgpu-webhook-policy" in origins["policy"]
    assert all(setting["source"]["problem"] is None for setting in health["sources"])


def test_the_doctor_names_missing_permissions(call: Call):
    report = call("/health/doctor")
    assert report["counts"]["not checked"] > 0
    assert any("get on" in line["remedy"] or "needs" in line["remedy"] for line in report["lines"])
