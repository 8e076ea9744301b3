"""Helm installs, upgrades, rolls back and removes the chart while pods are created: none is refused for want of a webhook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import CHART
from tests.e2e.cluster import Cluster
from tests.e2e.installation import (
    Installation,
    assert_binding,
    assert_passed_by,
    assert_refused,
    bind,
)
from tests.e2e.load import Load
from tests.e2e.serving import ServiceAuthority
from tests.e2e.shipped import is_configuration, render

helm = pytest.importorskip("helm_python", reason="there is no Helm library for this platform")

NAME = "vgpu-webhook"
JOBS = f"/apis/batch/v1/namespaces/{NAME}/jobs"


class HelmInstallation(Installation):
    """A release of the chart. Its webhook configurations lead to a port of this machine."""

    def __init__(self, cluster: Cluster, directory: Path, **values: Any) -> None:
        super().__init__(cluster, render(cluster), NAME, "", directory)
        self.helm = helm.Config(kubeconfig_path=cluster.kubeconfig, namespace=NAME)
        configurations = yaml.safe_dump_all(filter(is_configuration, self.documents))
        self._values = values | {"webhookConfigurations": configurations}

    def install(self) -> None:
        self.helm.install(CHART, NAME, self._values, create_namespace=True)
        self._lead_here()

    def upgrade(self, **values: Any) -> None:
        self.helm.upgrade(CHART, NAME, self._values | values)
        self._lead_here()

    def rollback(self, revision: int) -> None:
        self.helm.rollback(NAME, version=revision)
        self._lead_here()

    def delete(self, documents: list[Any]) -> None:
        if self.helm.list():
            self.helm.uninstall(NAME)

    def jobs(self) -> list[str]:
        with self.cluster.api() as api:
            return [job["metadata"]["name"] for job in api.get(JOBS).body["items"]]

    def _lead_here(self) -> None:
        """Have the Service lead to this machine, as no controller gives it endpoints."""
        self.cluster.apply(*(one for one in self.documents if one["kind"] == "Service"))


@pytest.fixture
def release(bare: Cluster, tmp_path: Path) -> Iterator[HelmInstallation]:
    made = HelmInstallation(bare, tmp_path)
    with made.service, made.helm:
        made.install()
        try:
            yield made
        finally:
            made.remove()


def written_by_the_job(release: Installation) -> dict[str, Any]:
    """What no manifest holds: CA bundles, rules and owners."""
    entries = {name: (one["clientConfig"]["caBundle"], one["rules"]) for name, one in release.entries().items()}
    return entries | {one["kind"]: one["metadata"]["ownerReferences"] for one in release.configurations()}


def test_a_release_whose_pods_never_start_stops_no_pod(release: HelmInstallation):
    assert_passed_by(release)
    assert release.certs("ensure", "--wait", "2").returncode == 1
    assert_passed_by(release)
    release.upgrade(replicas=3)
    release.rollback(1)
    assert_passed_by(release)


def test_install_upgrade_rollback_and_uninstall_while_pods_are_created(release: HelmInstallation, tmp_path: Path):
    load = Load(release.cluster, "users")
    with load, bind(release, tmp_path):
        load.go_on()
        written = written_by_the_job(release)
        release.upgrade(replicas=3, excludedNamespaces=["kube-system", "infra"], image={"tag": "next"})
        load.go_on()
        selector = release.entries()["repair.vgpu-webhook.svc"]["namespaceSelector"]
        assert selector["matchExpressions"][0]["values"] == ["kube-system", "infra"]
        assert written_by_the_job(release) == written
        assert release.jobs() == ["vgpu-webhook-certs-2"]
        assert_binding(release)
        release.rollback(1)
        load.go_on()
        assert written_by_the_job(release) == written
        assert release.jobs() == ["vgpu-webhook-certs"]
        assert_binding(release)
        assert release.certs("ensure").stdout.startswith("in order: ")
        release.delete([])
        load.go_on()
        assert_passed_by(release)
        release.stop()
        load.go_on()
    assert release.configurations() == []
    assert load.failed.keys() == {"created unrepaired"}, load
    assert load.created > 400


def test_the_failure_policy_can_be_changed_later(release: HelmInstallation, tmp_path: Path):
    with bind(release, tmp_path):
        release.upgrade(failurePolicy="Ignore")
        assert_binding(release)
        release.stop()
        assert_passed_by(release)
        release.rollback(1)
        assert_refused(release)


def test_a_failed_upgrade_changes_nothing(release: HelmInstallation, tmp_path: Path):
    with bind(release, tmp_path):
        written = written_by_the_job(release)
        with pytest.raises(helm.HelmError):
            release.upgrade(podLabels={"not a label": "!"})
        assert written_by_the_job(release) == written
        release.rollback(1)
        assert_binding(release)


def test_a_secret_of_ones_own(bare: Cluster, tmp_path: Path):
    """The release brings the CA bundle, and the Job only makes the configurations binding."""
    authority = ServiceAuthority(tmp_path / "tls")
    bundle = authority.ca.certificate.decode()
    certificates = {"source": "secret", "secret": {"name": "team-tls", "caBundle": bundle}}
    made = HelmInstallation(bare, tmp_path, certificates=certificates)
    with made.service, made.helm:
        try:
            made.install()
            assert_passed_by(made)
            made.start(authority.directory)
            done = made.certs("bind", "--wait", "20")
            assert done.returncode == 0, done.stderr
            created = made.create_pod()
            assert (created.status, created.body["spec"]["schedulerName"]) == (201, "volcano"), created.message
            made.upgrade(replicas=3)
            assert made.certs("bind").returncode == 0
            assert all(entry["rules"] for entry in made.entries().values())
        finally:
            made.remove()
