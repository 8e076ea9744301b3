"""Installing, upgrading and removing the webhook blocks no pod unnecessarily."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, built
from tests.deploy.test_elsewhere import NAMESPACE, PREFIX, rendered
from tests.e2e.cluster import Cluster
from tests.e2e.installation import (
    Installation,
    assert_binding,
    assert_not_called,
    install,
    start_and_bind,
    wait_until_not_called,
)


@pytest.fixture
def installation(bare_cluster: Cluster, tmp_path: Path) -> Iterator[Installation]:
    """An installation without a running webhook, as if its image could not be pulled."""
    with install(bare_cluster, built(DEPLOY), "vgpu-webhook", "", tmp_path) as installation:
        yield installation


@pytest.fixture
def bound(installation: Installation, tmp_path: Path) -> Iterator[Installation]:
    """An installation with a running replica and binding entries."""
    with start_and_bind(installation, tmp_path):
        yield installation


def test_a_webhook_that_never_starts_blocks_no_pod(installation: Installation):
    assert_not_called(installation)
    result = installation.certs("ensure", "--wait", "3")
    assert result.returncode == 1
    assert 'failed calling webhook "probe.vgpu-webhook.svc"' in result.stderr
    assert "kubectl get pods -n vgpu-webhook" in result.stderr
    assert_not_called(installation)
    assert "repair.vgpu-webhook.svc does not have its rules yet" in installation.certs("show").stdout


@pytest.mark.parametrize("options", [[], ["--server-side", "--force-conflicts"]], ids=["client-side", "server-side"])
def test_applying_again_removes_nothing(bound: Installation, options: list[str]):
    bound.apply(*options)
    bound.apply(*options)
    assert_binding(bound)
    assert bound.certs("ensure").stdout.startswith("in order: ")


@pytest.mark.parametrize("step", [1, -1], ids=["as-written", "reversed"])
def test_deleting_everything_in_any_order(bound: Installation, step: int):
    bound.stop()
    bound.delete(bound.documents[::step])
    wait_until_not_called(bound)


def test_deleting_the_configurations_first_blocks_no_pod(bound: Installation):
    bound.cluster.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "vgpu-webhook")
    bound.stop()
    wait_until_not_called(bound)
    assert bound.certs("ensure").returncode == 0, "missing configurations are skipped"


def test_another_namespace_and_names(bare_cluster: Cluster, tmp_path: Path):
    documents = rendered(tmp_path, DEPLOY)
    with install(bare_cluster, documents, NAMESPACE, PREFIX, tmp_path) as installation:
        assert_not_called(installation)
        with start_and_bind(installation, tmp_path):
            assert_binding(installation)
