"""`--cluster`: each command gives the same result as with the files that kubectl prints from that cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import there
from tests.cluster.apiserver import ApiServer, config_map
from webhook import names
from webhook.settings.sources import SAMPLES
from webhook.settings.table import COLLECTIONS

QUEUES, QUOTAS, CLASSES = (each.path for each in COLLECTIONS)
FILES = {
    "--fleet": SAMPLES / "fleet.yaml",
    "--device-config": SAMPLES / "device-config.yaml",
    "--policy": SAMPLES / "policy.yaml",
    "--queues": SAMPLES / "queues.yaml",
    "--quotas": SAMPLES / "quotas.yaml",
    "--device-classes": SAMPLES / "device-classes.yaml",
}
WITH_FILES = [word for option in FILES.items() for word in option]
LOG = SAMPLES / "audit.jsonl"
PODS = sorted(SAMPLES.glob("pod-*.yaml"))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A cluster with the samples; the webhook is in a namespace that is not the default."""
    with ApiServer() as server:
        server.put("/api/v1/nodes", *yaml.safe_load(FILES["--fleet"].read_text())["items"])
        server.put(QUOTAS, *yaml.safe_load(FILES["--quotas"].read_text())["items"])
        server.put(CLASSES, *yaml.safe_load(FILES["--device-classes"].read_text())["items"])
        server.put(QUEUES, *yaml.safe_load(FILES["--queues"].read_text())["items"])
        config, policy = (
            config_map(name, {key: FILES[option].read_text()})
            for name, key, option in (
                (names.DEVICE_CONFIG_MAP, names.DEVICE_CONFIG_KEY, "--device-config"),
                (names.POLICY_MAP, names.POLICY_KEY, "--policy"),
            )
        )
        server.put("/api/v1/namespaces/kube-system/configmaps", config)
        server.put("/api/v1/namespaces/gpu-system/configmaps", policy)
        yield server


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> list[str]:
    kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig", "team-speech"))
    return ["--cluster", "--kubeconfig", kubeconfig, "--webhook-namespace", "gpu-system"]


@pytest.mark.parametrize(
    "command",
    there(
        [
            ["review", "--explain", "-o", "json", "-n", "team-speech", *PODS],
            ["review", "--explain", "-n", "team-vision", *PODS],
            ["replay", "-o", "json", LOG],
            ["replay", "--what-if", "split=1", "-f", LOG],
        ]
    ),
    ids=lambda command: " ".join(map(str, command[:4])),
)
def test_cluster_and_files_give_the_same_result(command, run, cluster):
    offline, live = run(*command, *WITH_FILES), run(*command, *cluster)
    assert offline.out
    assert live == offline
