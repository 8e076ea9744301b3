"""Certificates are made and change while pods are created; `python -m certs ensure` has the rights that deploy/ gives it."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.api import Api
from tests.e2e.certificates import bundle, ensure, mounted
from tests.e2e.changes import wait_for_calls
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Run, Serve
from tests.e2e.load import Load
from tests.e2e.serving import Replica
from tests.e2e.shipped import is_configuration, pointed_at, render


@pytest.fixture(scope="module")
def webhook(cluster: Cluster, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """One whose certificate comes from the Secret, called by an API server that trusts what `ensure` publishes."""
    directory = tmp_path_factory.mktemp("secret")
    shipped = list(filter(is_configuration, render(cluster)))
    for one in shipped:  # with the bundles of other tests
        cluster.kubectl("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found")
    ensure(cluster)
    with mounted(cluster, directory):
        program = serve("--audit-log", "", tls=directory)
        cluster.apply(*(pointed_at(program.port, None, one) for one in shipped))
        ensure(cluster)
        wait_for_calls(cluster, program)
        yield program


def shown(webhook: Replica) -> bytes:
    with webhook.connect() as connection:
        return connection.certificate


def test_a_second_run_changes_nothing(webhook: Replica, cluster: Cluster, api: Api):
    trusted, served = bundle(api), shown(webhook)
    assert ensure(cluster).startswith("in order: ")
    assert (bundle(api), shown(webhook)) == (trusted, served)


def test_a_ca_changes_without_a_failed_creation(webhook: Replica, cluster: Cluster, api: Api, namespace: str):
    trusted, served = bundle(api), shown(webhook)
    with Load(cluster, namespace) as load:
        load.go_on()
        said = ensure(cluster, "--rotate-ca", "--wait", "40", "--publish-lag", "1", "--serve-lag", "3")
        load.go_on()
    assert load.failed == {}
    assert "retire the old CA" in said
    assert shown(webhook) != served
    assert bundle(api).count(b"BEGIN CERTIFICATE") == 1
    assert bundle(api) != trusted


def test_doctor_agrees(webhook: Replica, run: Run):
    lines = {line["check"]: line for line in json.loads(run("doctor", "-o", "json").stdout)["lines"]}
    assert [lines[check]["status"] for check in ("ca-bundle", "serving-certificate")] == ["ok", "ok"]
