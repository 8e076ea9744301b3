"""`--client-ca`: an API server with a client certificate, configured as deploy/ shows, gets a response; others do not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs import pki
from certs.pki import Pair
from tests.deploy.files import DEPLOY
from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import install_prerequisites, start_cluster
from tests.e2e.objects import device_pod, namespace_objects, pods
from tests.e2e.serving import HOST, Replica
from tests.server.client_certificates import client_pair
from tests.server.program import Authority, free_port

EXAMPLE = DEPLOY / "components" / "client-ca" / "api-server"
INSTALLED = "/etc/kubernetes/pki"  # the directory that the files of the example name


@pytest.fixture(scope="module")
def client_ca() -> Pair:
    return pki.make_ca("front-proxy CA")


@pytest.fixture(scope="module")
def client_ca_file(client_ca: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("client-ca") / "ca.crt"
    file.write_bytes(client_ca.certificate)
    return file


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def cluster_with_certificate(tmp_path_factory: pytest.TempPathFactory, client_ca: Pair, port: int) -> Iterator[Cluster]:
    """A cluster whose API server has the configuration of the example."""
    pki_directory = tmp_path_factory.mktemp("pki")
    client = client_pair(client_ca)
    (pki_directory / "front-proxy-client.crt").write_bytes(client.certificate)
    (pki_directory / "front-proxy-client.key").write_bytes(client.key)
    (pki_directory / "vgpu-webhook").mkdir()
    for file in EXAMPLE.iterdir():
        text = file.read_text().replace(INSTALLED, str(pki_directory)).replace(f"name: {HOST}", f"name: {HOST}:{port}")
        (pki_directory / "vgpu-webhook" / file.name).write_text(text)
    configuration = pki_directory / "vgpu-webhook" / "admission-configuration.yaml"
    with start_cluster(tmp_path_factory, f"--admission-control-config-file={configuration}") as cluster:
        install_prerequisites(cluster)
        cluster.apply(*namespace_objects("team"))
        yield cluster


def test_an_api_server_with_the_certificate_is_answered(
    cluster_with_certificate: Cluster, authority: Authority, client_ca_file: Path, port: int, tmp_path: Path
):
    lines = tmp_path / "audit.jsonl"
    kubeconfig = cluster_with_certificate.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
    settings = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    options = [*settings, "--client-ca", str(client_ca_file), "--audit-log", str(lines)]
    program = Replica(authority.directory, options, tmp_path / "stderr", port=port)
    try:
        program.wait_ready()
        attach(cluster_with_certificate, port, authority.ca.certificate, program)
        with cluster_with_certificate.api() as api:
            created = api.post(pods("team"), device_pod("p"))
            refused = api.post(pods("team"), device_pod("q", env=[{"name": "LD_PRELOAD", "value": "/x"}]))
    finally:
        program.close()
    assert (created.status, created.body["spec"]["schedulerName"]) == (201, "volcano")
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert {json.loads(line)["clientVerified"] for line in lines.read_text().splitlines()} == {True}
