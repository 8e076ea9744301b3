"""Helm installs, upgrades, rolls back and removes the chart; pods that are created meanwhile never fail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import CHART, DEPLOY, built
from tests.e2e.cluster import Cluster
from tests.e2e.installation import (
    Installation,
    assert_binding,
    assert_not_called,
    start_and_bind,
    wait_until_not_called,
)
from tests.e2e.load import Load
from tests.e2e.serving import ServiceAuthority
from tests.e2e.shipped import is_configuration
from tests.server.client import SECONDS
from tests.server.program import until

helm = pytest.importorskip("helm_python", reason="there is no Helm library for this platform")

NAME = "vgpu-webhook"
JOBS = f"/apis/batch/v1/namespaces/{NAME}/jobs"


class HelmInstallation(Installation):
    """A release of the chart whose webhook configurations point to a port of this machine."""

    def __init__(self, cluster: Cluster, directory: Path, **values: Any) -> None:
        super().__init__(cluster, built(DEPLOY), NAME, "", directory)
        self.helm = helm.Config(kubeconfig_path=cluster.kubeconfig, namespace=NAME)
        configurations = yaml.safe_dump_all(filter(is_configuration, self.documents))
        self._values = values | {"webhookConfigurations": configurations}

    def install(self) -> None:
        self.helm.install(CHART, NAME, self._values, create_namespace=True)
        self._point_service_here()

    def upgrade(self, **values: Any) -> None:
        self.helm.upgrade(CHART, NAME, self._values | values)
        self._point_service_here()

    def rollback(self, revision: int) -> None:
        self.helm.rollback(NAME, version=revision)
        self._point_service_here()

    def delete(self, documents: list[Any]) -> None:
        if self.helm.list():
            self.helm.uninstall(NAME)

    def jobs(self) -> list[str]:
        with self.cluster.api() as api:
            return [job["metadata"]["name"] for job in api.get(JOBS).body["items"]]

    def _point_service_here(self) -> None:
        """Point the Service to this machine, because no controller gives it endpoints."""
        self.cluster.apply(*(document for document in self.documents if document["kind"] == "Service"))


@pytest.fixture
def release(bare_cluster: Cluster, tmp_path: Path) -> Iterator[HelmInstallation]:
    release = HelmInstallation(bare_cluster, tmp_path)
    with release.service, release.helm:
        release.install()
        try:
            yield release
        finally:
            release.remove()


def fields_of_the_job(release: Installation) -> dict[str, Any]:
    """The fields that the Job writes: CA bundles, rules and owners."""
    entries = {
        name: (document["clientConfig"]["caBundle"], document["rules"]) for name, document in release.entries().items()
    }
    return entries | {
        document["kind"]: document["metadata"]["ownerReferences"] for document in release.configurations()
    }


def test_install_upgrade_rollback_and_uninstall_while_pods_are_created(release: HelmInstallation, tmp_path: Path):
    load = Load(release.cluster, "users")
    with load, start_and_bind(release, tmp_path):
        load.wait_for_creations()
        failed, before = load.failed.keys(), fields_of_the_job(release)
        release.upgrade(replicas=3, excludedNamespaces=["kube-system", "infra"], image={"tag": "next"})
        load.wait_for_creations()
        selector = release.entries()["repair.vgpu-webhook.svc"]["namespaceSelector"]
        assert selector["matchExpressions"][0]["values"] == ["kube-system", "infra"]
        assert fields_of_the_job(release) == before
        assert release.jobs() == ["vgpu-webhook-certs-2"]
        assert_binding(release)
        release.rollback(1)
        load.wait_for_creations()
        assert fields_of_the_job(release) == before
        assert release.jobs() == ["vgpu-webhook-certs"]
        assert_binding(release)
        assert release.certs("ensure").stdout.startswith("in order: ")
        assert load.failed.keys() == failed
        release.delete([])
        wait_until_not_called(release)
        load.wait_for_creations()
        removed = load.failed.keys()
        release.stop()
        load.wait_for_creations()
    assert release.configurations() == []
    assert load.failed.keys() == removed
    # The API server begins and ceases to use the configurations one by one, and may learn earlier that the Service is deleted.
    between = ("foreign-scheduler: ", f'service "{NAME}" not found')
    assert {outcome for outcome in removed if all(text not in outcome for text in between)} == {"created unrepaired"}, (
        load
    )
    assert load.created > 400


def test_a_failed_upgrade_changes_nothing(release: HelmInstallation, tmp_path: Path):
    with start_and_bind(release, tmp_path):
        before = fields_of_the_job(release)
        with pytest.raises(helm.HelmError):
            release.upgrade(podLabels={"not a label": "!"})
        assert fields_of_the_job(release) == before
        release.rollback(1)
        assert_binding(release)


def test_a_user_provided_secret(bare_cluster: Cluster, tmp_path: Path):
    """The release contains the CA bundle; the Job only makes the configurations binding."""
    authority = ServiceAuthority(tmp_path / "tls")
    bundle = authority.ca.certificate.decode()
    certificates = {"source": "secret", "secret": {"name": "team-tls", "caBundle": bundle}}
    release = HelmInstallation(bare_cluster, tmp_path, certificates=certificates)
    with release.service, release.helm:
        try:
            release.install()
            assert_not_called(release)
            release.start(authority.directory)
            result = release.certs("bind", "--wait", str(SECONDS / 2))
            assert result.returncode == 0, result.stderr
            until(lambda: release.scheduler_of_a_new_pod() == "volcano")
            release.upgrade(replicas=3)
            assert release.certs("bind").returncode == 0
            assert all(entry["rules"] for entry in release.entries().values())
        finally:
            release.remove()
