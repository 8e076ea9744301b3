"""The console against a real API server, with no more rights than deploy/ gives it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import another_node, attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.console import Console
from tests.e2e.objects import pod, pods
from tests.e2e.test_live import larger_node
from tests.server.program import Authority, Program, until

SECONDS = 8.0  # until a change is in use

DeviceRequest = Callable[..., Any]


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def ask(
    cluster: Cluster, authority: Authority, audit_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeviceRequest]:
    """Asks the API of a console that runs as deploy/ has it run."""
    kubeconfig = cluster.kubeconfig_of_account("vgpu-webhook", "vgpu-webhook")
    settings: list[str | Path] = ["--kubeconfig", kubeconfig, "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    files: list[str | Path] = ["--audit-log", audit_log, "--tls-cert", authority.directory / "tls.crt"]
    console = Console(tmp_path_factory.mktemp("console") / "log", *settings, *files)
    console.wait(lambda: console.api("/fleet")["known"])
    yield console.api
    console.close(10)


def test_it_shows_the_nodes_of_the_cluster_as_they_come_and_go(ask: DeviceRequest, api: Api):
    def names() -> set[str]:
        families = ask("/fleet")["families"]
        return {name for family in families for shape in family["shapes"] for name in shape["names"]}

    assert "gpu-a" in names()
    with another_node(api, larger_node()):
        until(lambda: "larger" in names(), SECONDS)
    until(lambda: "larger" not in names(), SECONDS)


def test_it_judges_by_the_nodes_of_the_cluster(ask: DeviceRequest):
    manifest = json.dumps(pod("greedy", {"volcano.sh/vgpu-number": "9"}))
    (document,) = ask("/review", {"manifest": manifest})["documents"]
    assert not document["allowed"]
    assert "the largest node (gpu-a) has 8 cards" in document["message"]


@pytest.fixture
def recording(cluster: Cluster, serve: Serve, authority: Authority, audit_log: Path) -> Program:
    """A webhook whose log the console reads."""
    program = serve("--audit-log", str(audit_log))
    attach(cluster, program.port, authority.ca.certificate, program)
    return program


@pytest.mark.usefixtures("recording")
def test_what_the_webhook_decides_appears(ask: DeviceRequest, api: Api, namespace: str):
    refused = api.post(pods(namespace), pod("greedy", {"volcano.sh/vgpu-number": "9"}))
    assert refused.status == 403
    until(lambda: ask(f"/decisions?namespace={namespace}&denied=true")["entries"] != [], SECONDS)
    (entry,) = ask(f"/decisions?namespace={namespace}&denied=true")["entries"]
    assert entry["rules"] == [{"rule": "card-count", "level": "deny"}]
    again = ask("/replay", {"number": entry["number"]})
    assert "same" in json.dumps(again)


def test_it_shows_where_the_settings_come_from(ask: DeviceRequest):
    health = ask("/health")
    origins = {source["name"]: source["origin"] for source in health["sources"]}
    assert "volcano-vgpu-device-config" in origins["device config"]
    assert "vgpu-webhook-policy" in origins["policy"]
    assert all(source["problem"] is None for source in health["sources"])


def test_the_doctor_names_what_it_may_not_read(ask: DeviceRequest):
    told = ask("/health/doctor")
    assert told["counts"]["not checked"] > 0
    assert any("get on" in line["remedy"] or "needs" in line["remedy"] for line in told["lines"])
