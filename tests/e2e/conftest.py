"""One cluster for the session, a webhook for each module, a namespace for each test."""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import HERE, HOW_TO_GET_THEM, Cluster, assets
from tests.e2e.objects import (
    Object,
    config_map,
    custom_resource,
    device_pod,
    furnished_namespace,
    load_nodes,
    service_account,
)
from tests.e2e.serving import Replica, ServiceAuthority
from tests.e2e.shipped import is_configuration, pointed_at, render, stand_in
from tests.server.program import COMMAND, DATA, Authority, Program, until

Serve = Callable[..., Program]
Run = Callable[..., subprocess.CompletedProcess[str]]

NODES = load_nodes("mixed")
DEVICE_CONFIG = DATA / "config" / "device-config.yaml"

PROBE = device_pod("probe")

_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("e2e")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not at every test, what is missing."""
    if any(report.longrepr[2].endswith(HOW_TO_GET_THEM) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(f"skipped: {HOW_TO_GET_THEM}")


@contextmanager
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    binaries = assets()
    if binaries is None:
        pytest.skip(HOW_TO_GET_THEM)
    made = Cluster(binaries, tmp_path_factory.mktemp("cluster"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With the sample nodes, their device config, Volcano's Job, and all of deploy/ but what calls the webhook."""
    with start_cluster(tmp_path_factory) as made:
        _furnish(made)
        yield made


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    with cluster.api() as made:
        yield made


@pytest.fixture
def run(cluster: Cluster) -> Run:
    """Run `vgpu-webhook` as the administrator would."""
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(COMMAND), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return command


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    name = f"test-{next(_numbers)}"
    cluster.apply(*furnished_namespace(name))
    return name


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return ServiceAuthority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def serve(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Serve]:
    """Start `vgpu-webhook serve` as deploy/ does, with the same rights; all are ended with the module."""
    programs: list[Replica] = []
    kubeconfig = cluster.kubeconfig_of_account("vgpu-webhook", "vgpu-webhook")
    settings = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]

    def run(*options: str, tls: Path = authority.directory) -> Program:
        log = tmp_path_factory.mktemp("webhook") / "stderr"
        programs.append(Replica(tls, [*settings, *options], log))
        programs[-1].wait_ready()
        return programs[-1]

    yield run
    for program in programs:
        program.process.terminate()  # all at once; close waits
    for program in programs:
        program.close()


@pytest.fixture(scope="module")
def webhook(cluster: Cluster, serve: Serve, authority: Authority) -> Program:
    """The webhook that the API server calls."""
    program = serve("--audit-log", "")
    attach(cluster, program.port, authority.ca.certificate, program)
    return program


def attach(
    cluster: Cluster,
    port: int,
    ca_bundle: bytes,
    *programs: Program,
    documents: Iterable[Object] = (),
    probe: Object = PROBE,
) -> None:
    """Have the API server call what listens on a port, and wait until one of the programs is called.

    Args:
        cluster: whose API server calls.
        port: of the loopback address.
        ca_bundle: to verify the answers with, PEM.
        programs: those that may be called.
        documents: hold the webhook configurations; those of deploy/ if none are given.
        probe: a pod that concerns the webhook.
    """
    found = filter(is_configuration, documents or render(cluster))
    cluster.apply(*(pointed_at(port, ca_bundle, configuration) for configuration in found))
    wait_for_calls(cluster, *programs, probe=probe)


def wait_for_calls(cluster: Cluster, *programs: Program, probe: Object = PROBE) -> None:
    """Try pods until one of the programs is called."""

    def called() -> bool:
        before = [program.metric("requests_total") for program in programs]
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe)
        return [program.metric("requests_total") for program in programs] != before

    until(called)


@contextmanager
def changed(api: Api, config_map: str, key: str, text: str) -> Iterator[None]:
    """Another text in a ConfigMap, for a while."""
    before = api.get(config_map).body["data"][key]
    assert api.merge(config_map, {"data": {key: text}}).status == 200
    try:
        yield
    finally:
        assert api.merge(config_map, {"data": {key: before}}).status == 200


def create_node(api: Api, node: Object) -> None:
    """Create a node as a kubelet does: what it can offer is told afterwards."""
    created = api.post("/api/v1/nodes", node)
    assert created.status == 201, created.message
    told = api.merge(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": node["status"]})
    assert told.status == 200, told.message


@contextmanager
def another_node(api: Api, node: Object) -> Iterator[None]:
    """A node more, for a while."""
    create_node(api, node)
    try:
        yield
    finally:
        assert api.delete(f"/api/v1/nodes/{node['metadata']['name']}").status == 200


def _furnish(cluster: Cluster) -> None:
    cluster.apply(
        custom_resource("batch.volcano.sh", "v1alpha1", "Job"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
        *map(stand_in, itertools.filterfalse(is_configuration, render(cluster))),
        service_account("default"),
        config_map("kube-system", "volcano-vgpu-device-config", {"device-config.yaml": DEVICE_CONFIG.read_text()}),
    )
    with cluster.api() as api:
        for node in NODES:
            create_node(api, node)
