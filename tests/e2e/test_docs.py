"""Commands of the documentation that read a cluster run as printed."""

from pathlib import Path

import pytest

from tests.docs.commands import PAGES, make_checkout, run
from tests.docs.markdown import Block, blocks
from tests.e2e.cluster import Cluster, assets
from tests.e2e.objects import device_pod, namespace_objects, pods

MARK = f"tests/e2e/{Path(__file__).name}::test_the_commands_of_a_block_work"
BLOCKS = [block for file in PAGES for block in blocks(file.read_text(), "sh") if MARK in block.comment]
NAMESPACE, NAME = "team-a", "training"  # the pod in docs/troubleshooting.md


@pytest.fixture(scope="module")
def pod(cluster: Cluster) -> None:
    cluster.apply(*namespace_objects(NAMESPACE))
    with cluster.api() as api:
        assert api.post(pods(NAMESPACE), device_pod(NAME)).status == 201


@pytest.mark.usefixtures("webhook", "pod")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.text.partition("\n")[0])
def test_the_commands_of_a_block_work(block: Block, cluster: Cluster, tmp_path: Path):
    """A command of vgpu-webhook may find problems (exit code 1); nothing else may fail."""
    checkout = make_checkout(tmp_path)
    for line in block.text.splitlines():
        result = run(line, checkout, KUBECONFIG=str(cluster.kubeconfig), binaries=assets())
        allowed = {0, 1} if "vgpu-webhook " in line.rpartition("|")[2] else {0}
        assert result.returncode in allowed, f"{line}\n{result.stdout}{result.stderr}"
        assert "error:" not in result.stderr.lower(), result.stderr
