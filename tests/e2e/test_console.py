"""The console follows the nodes of a real API server, with the permissions that deploy/ gives it."""

import json
import sys
import urllib.request
from pathlib import Path

from tests.e2e.api import Api
from tests.e2e.changes import extra_node
from tests.e2e.cluster import Cluster
from tests.e2e.process import Daemon
from tests.e2e.serving import FORGETS_SOON
from tests.e2e.test_live import larger_node
from tests.server.program import free_port, until
from tests.tuned import tuned


def test_the_fleet_follows_the_nodes_of_the_cluster(cluster: Cluster, api: Api, tmp_path: Path):
    kubeconfig, address = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook"), f"127.0.0.1:{free_port()}"
    options = ["--bind", address, "--kubeconfig", kubeconfig, "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    console = Daemon([sys.executable, *tuned("console", pace=FORGETS_SOON), *options], tmp_path / "log")

    def has(name: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/fleet") as response:
                families = json.load(response)["families"]
        except OSError:
            return False
        return name in {each for family in families for shape in family["shapes"] for each in shape["names"]}

    try:
        console.wait(lambda: has("gpu-a"))
        with extra_node(api, larger_node()):
            until(lambda: has("larger"))
        until(lambda: not has("larger"))
    finally:
        console.close(10)
