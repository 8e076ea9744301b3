"""One cluster for the session, a webhook for each module, a namespace for each test."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, built
from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, NODES, attach, create_node
from tests.e2e.cluster import ASSETS_HELP, HERE, Cluster, api_server_version, assets
from tests.e2e.objects import USER, config_map, custom_resource, namespace_objects, pods, service_account
from tests.e2e.serving import FORGETS_SOON, Replica, ServiceAuthority
from tests.e2e.shipped import is_configuration, with_local_service
from tests.ledger import figure, record
from tests.server.program import Authority, Program, until

Serve = Callable[..., Program]

_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("volcano" if item.path.is_relative_to(HERE / "volcano") else "e2e")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print once, not for every test, what is missing; and write the ledger."""
    if config.getoption("ledger") == "e2e" and assets():
        record("e2e", figure(terminalreporter), api_server_version())
    if any(report.longrepr[2].endswith(ASSETS_HELP) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(f"skipped: {ASSETS_HELP}")


@contextmanager
def start_cluster(tmp_path_factory: pytest.TempPathFactory, *flags: str) -> Iterator[Cluster]:
    """Run a cluster with additional flags of the API server."""
    binaries = assets()
    if binaries is None and "KUBEBUILDER_ASSETS" in os.environ:
        pytest.fail(ASSETS_HELP, pytrace=False)
    if binaries is None:
        pytest.skip(ASSETS_HELP)
    cluster = Cluster(binaries, tmp_path_factory.mktemp("cluster"), *flags)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with the sample nodes, their device config, Volcano's Job, and deploy/ without webhook configurations."""
    with start_cluster(tmp_path_factory) as cluster:
        install_prerequisites(cluster)
        yield cluster


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for one module, with nodes, in which the webhook was never installed."""
    with start_cluster(tmp_path_factory) as cluster:
        cluster.apply(*namespace_objects("users"))
        with cluster.api() as api:
            for node in NODES:
                create_node(api, node)
        yield cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    with cluster.api() as connection:
        yield connection


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    name = f"test-{next(_numbers)}"
    cluster.apply(*namespace_objects(name))
    with cluster.api(USER) as user:  # who is forbidden even this before the API server uses the roles
        until(lambda: user.get(pods(name, "p")).status == HTTPStatus.NOT_FOUND)
    return name


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return ServiceAuthority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def serve(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Serve]:
    """Start `vgpu-webhook serve` as deploy/ does, with the same permissions; all processes end with the module."""
    programs: list[Replica] = []
    kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
    settings = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]

    def run(*options: str, tls: Path = authority.directory) -> Program:
        log = tmp_path_factory.mktemp("webhook") / "stderr"
        programs.append(Replica(tls, [*settings, *options], log, pace=FORGETS_SOON))
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


def install_prerequisites(cluster: Cluster) -> None:
    """Create the objects that deploy/ and the tests need."""
    cluster.apply(
        custom_resource("batch.volcano.sh", "v1alpha1", "Job"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
        *map(with_local_service, itertools.filterfalse(is_configuration, built(DEPLOY))),
        service_account("default"),
        config_map("kube-system", "volcano-vgpu-device-config", {"device-config.yaml": DEVICE_CONFIG.read_text()}),
    )
    with cluster.api() as api:
        for node in NODES:
            create_node(api, node)
