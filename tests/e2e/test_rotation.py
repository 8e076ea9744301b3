"""Certificates change while pods are created."""

from certs import pki, store
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import attach
from tests.e2e.load import Load
from tests.server.program import Authority, Program, until


def serve_another(webhook: Program, authority: Authority, bundle: bytes) -> None:
    """Put a new leaf in place, and wait until it is shown."""

    def shown() -> bytes:
        with webhook.connect() as connection:
            return connection.certificate

    store.replace(authority.directory / store.CA, bundle, 0o644)
    before = shown()
    store.write(authority.directory, authority.leaf(), bundle)
    until(lambda: shown() != before)


def test_leaves_change_without_a_failed_creation(
    webhook: Program, authority: Authority, cluster: Cluster, namespace: str
):
    with Load(cluster, namespace) as load:
        for _ in range(5):
            load.go_on(100)
            serve_another(webhook, authority, authority.ca.certificate)
        load.go_on(100)
    assert load.failed == {}


def test_a_ca_changes_without_a_failed_creation(
    webhook: Program, authority: Authority, cluster: Cluster, namespace: str
):
    """Each bundle that an API server learns makes it connect anew, so whatever leaf is served is verified with it."""
    old, new = authority.ca.certificate, pki.make_ca("the next CA")

    def publish(bundle: bytes) -> None:
        attach(cluster, webhook.port, bundle, webhook)
        load.go_on()

    with Load(cluster, namespace) as load:
        publish(old + new.certificate)
        authority.ca = new
        serve_another(webhook, authority, old + new.certificate)
        publish(new.certificate + old)
        publish(new.certificate)
    assert load.failed == {}
