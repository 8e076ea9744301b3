"""The console against a real API server, with the permissions that deploy/ gives it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import extra_node
from tests.e2e.cluster import Cluster
from tests.e2e.console import Console
from tests.e2e.test_live import larger_node
from tests.server.program import Authority, until

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def call(cluster: Cluster, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """A function that calls the API of a console, which runs as in deploy/."""
    kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
    settings: list[str | Path] = ["--kubeconfig", kubeconfig, "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    files: list[str | Path] = ["--tls-cert", authority.directory / "tls.crt"]
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


def test_the_doctor_names_missing_permissions(call: Call):
    report = call("/health/doctor")
    assert report["counts"]["not checked"] > 0
    assert any("get on" in line["remedy"] or "needs" in line["remedy"] for line in report["lines"])
