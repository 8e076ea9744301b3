"""Certificates are rotated while pods are created; `certs ensure` has the permissions that deploy/ gives it."""

from collections.abc import Iterator

import pytest

from tests.e2e.api import Api
from tests.e2e.certificates import bundle, ensure, mounted
from tests.e2e.changes import delete_configurations, wait_for_calls
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.load import Load
from tests.e2e.serving import Replica
from tests.e2e.shipped import configurations, with_port_and_ca
from tests.server.program import until


@pytest.fixture(scope="module")
def webhook(cluster: Cluster, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """A webhook with the certificate of the Secret; the API server trusts the bundle that `ensure` publishes."""
    directory = tmp_path_factory.mktemp("secret")
    delete_configurations(cluster)  # they contain the bundles of other tests
    ensure(cluster)
    with mounted(cluster, directory):
        program = serve("--audit-log", "", tls=directory)
        cluster.apply(*(with_port_and_ca(program.port, None, configuration) for configuration in configurations()))
        ensure(cluster)
        wait_for_calls(cluster, program)
        yield program


def served_certificate(webhook: Replica) -> bytes:
    with webhook.connect() as connection:
        return connection.certificate


def test_a_ca_rotation_fails_no_creation(webhook: Replica, cluster: Cluster, api: Api, namespace: str):
    trusted, served = bundle(api), served_certificate(webhook)
    with Load(cluster, namespace) as load:
        load.wait_for_creations()
        ensure(cluster, "--rotate-ca", "--wait", "60", "--publish-lag", "5", "--serve-lag", "1h")
        until(lambda: served_certificate(webhook) != served)
        load.wait_for_creations()
        assert "retire the old CA" in ensure(cluster, "--serve-lag", "0s")
        load.wait_for_creations()
    assert load.failed == {}
    assert bundle(api).count(b"BEGIN CERTIFICATE") == 1
    assert bundle(api) != trusted
