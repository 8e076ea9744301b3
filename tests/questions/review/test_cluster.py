"""`--cluster`: each command gives the same result as with the files that kubectl prints from that cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import there
from tests.cluster.apiserver import NODES, ApiServer, config_map
from webhook import names
from webhook.settings.sources import SAMPLES
from webhook.settings.table import COLLECTIONS

NAMES = ("fleet", "device-config", "policy", "queues", "quotas", "device-classes")
FILES = {name: SAMPLES / f"{name}.yaml" for name in NAMES}
WITH_FILES = [word for name, file in FILES.items() for word in (f"--{name}", file)]
LOG = SAMPLES / "audit.jsonl"
PODS = sorted(SAMPLES.glob("pod-*.yaml"))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A cluster with the samples; the webhook is in a namespace that is not the default."""
    with ApiServer() as server:
        paths = dict(zip(("queues", "quotas", "device-classes"), (each.path for each in COLLECTIONS), strict=True))
        for name, path in {"fleet": NODES, **paths}.items():
            server.put(path, *yaml.safe_load(FILES[name].read_text())["items"])
        for namespace, name, key, file in (
            ("kube-system", names.DEVICE_CONFIG_MAP, names.DEVICE_CONFIG_KEY, FILES["device-config"]),
            ("gpu-system", names.POLICY_MAP, names.POLICY_KEY, FILES["policy"]),
        ):
            server.put(f"/api/v1/namespaces/{namespace}/configmaps", config_map(name, {key: file.read_text()}))
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
