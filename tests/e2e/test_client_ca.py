"""`--client-ca`: an API server with a client certificate, configured as deploy/ shows, gets a response; others do not."""

import json
from pathlib import Path

import pytest

from certs import pki
from tests.deploy.files import DEPLOY
from tests.e2e.changes import attach
from tests.e2e.conftest import install_prerequisites, start_cluster
from tests.e2e.objects import device_pod, namespace_objects, pods
from tests.e2e.serving import HOST, Replica
from tests.server.client_certificates import client_pair
from tests.server.program import Authority, free_port

EXAMPLE = DEPLOY / "components" / "client-ca" / "api-server"
INSTALLED = "/etc/kubernetes/pki"  # the directory that the files of the example name


def test_an_api_server_with_the_certificate_is_answered(
    authority: Authority, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
):
    ca, port = pki.make_ca("front-proxy CA"), free_port()
    client, pki_directory = client_pair(ca), tmp_path / "pki"
    (pki_directory / "vgpu-webhook").mkdir(parents=True)
    files = {
        "ca.crt": ca.certificate,
        "front-proxy-client.crt": client.certificate,
        "front-proxy-client.key": client.key,
    }
    for name, data in files.items():
        (pki_directory / name).write_bytes(data)
    for file in EXAMPLE.iterdir():
        text = file.read_text().replace(INSTALLED, str(pki_directory)).replace(f"name: {HOST}", f"name: {HOST}:{port}")
        (pki_directory / "vgpu-webhook" / file.name).write_text(text)
    configuration = pki_directory / "vgpu-webhook" / "admission-configuration.yaml"
    lines = tmp_path / "audit.jsonl"
    with start_cluster(tmp_path_factory, f"--admission-control-config-file={configuration}") as cluster:
        install_prerequisites(cluster)
        cluster.apply(*namespace_objects("team"))
        kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
        settings = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
        options = [*settings, "--client-ca", str(pki_directory / "ca.crt"), "--audit-log", str(lines)]
        program = Replica(authority.directory, options, tmp_path / "stderr", port=port)
        try:
            program.wait_ready()
            attach(cluster, port, authority.ca.certificate, program)
            with cluster.api() as api:
                created = api.post(pods("team"), device_pod("p"))
                refused = api.post(pods("team"), device_pod("q", env=[{"name": "LD_PRELOAD", "value": "/x"}]))
        finally:
            program.close()
    assert (created.status, created.body["spec"]["schedulerName"]) == (201, "volcano")
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert {json.loads(line)["clientVerified"] for line in lines.read_text().splitlines()} == {True}
