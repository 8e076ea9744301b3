"""A node: containerd, the kubelet, and Volcano's device plugin on NVIDIA's mock of its driver library."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.cluster import Cluster
from tests.gpuless.assets import CNI, config_of
from tests.gpuless.images import PAUSE, busybox_image
from tests.gpuless.namespace import API_ADDRESS, NodeNamespace
from webhook.names import NODE_VGPU_REGISTER

START_SECONDS = 90.0
DEVICE_PLUGIN = ("kube-system", "volcano-device-plugin")  # its account

_CONTAINERD = """\
version = 2
root = "{directory}/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{directory}/net.d"
"""


class Node:
    """A running node of a cluster, with a name like `a100-1`; `close` stops it."""

    def __init__(self, number: int, profile: str, assets: Path, cluster: Cluster, directory: Path) -> None:
        """Start it in a directory of its own, and wait until it offers its cards.

        A profile is the kind of its cards, `a100`, `t4`, `h100` …, and how many if not all of the mock's: `a100:1`.
        """
        self._profile, _, self._cards = profile.partition(":")
        self.name = f"{self._profile}-{number}"
        self._assets, self._cluster = assets, cluster
        self._directory = directory / self.name
        self._directory.mkdir()
        self.namespace = NodeNamespace(self._directory, cluster.port)
        try:
            self._start_containerd()
            self.import_image(busybox_image())
            self.start_kubelet()
            self.start_plugin()
        except BaseException:
            self.close()
            raise

    def import_image(self, archive: bytes) -> None:
        self.namespace.run("ctr", "--namespace", "k8s.io", "images", "import", "-", stdin=archive)

    def allocatable(self) -> dict[str, str]:
        """What the scheduler sees of the node's resources."""
        with self._cluster.api() as api:
            response = api.get(f"/api/v1/nodes/{self.name}")
        return dict(response.body["status"].get("allocatable", {})) if response.status == 200 else {}

    def cards(self) -> list[str]:
        """The UUIDs of its cards."""
        with self._cluster.api() as api:
            annotations = api.get(f"/api/v1/nodes/{self.name}").body["metadata"]["annotations"]
        return [card.partition(",")[0] for card in annotations[NODE_VGPU_REGISTER].split(":") if "," in card]

    def start_kubelet(self) -> None:
        """Start the kubelet, and wait until the node has a status."""
        config = self._directory / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self._kubelet_config()))
        identity = (f"system:node:{self.name}", "system:nodes")
        flags = [
            f"--config={config}",
            f"--kubeconfig={self._kubeconfig(*identity)}",
            f"--node-ip={self.namespace.address}",
        ]
        daemon = self.namespace.start("kubelet", self._assets / "kubelet", *flags, f"--hostname-override={self.name}")
        daemon.wait(lambda: "cpu" in self.allocatable(), START_SECONDS)

    def start_plugin(self) -> None:
        """Start the device plugin, and wait until the node offers its cards."""
        mock, hooks = self._assets / "mocknvml", self._directory / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("libvgpu.so", "ld.so.preload"):  # the library that enforces the limits needs CUDA
            (hooks / name).touch()
        account = f"system:serviceaccount:{':'.join(DEVICE_PLUGIN)}"
        environment = {
            "NODE_NAME": self.name,
            "KUBECONFIG": str(self._kubeconfig(account, "system:serviceaccounts")),
            "HOOK_PATH": str(hooks),
            "LD_LIBRARY_PATH": str(mock),
            "MOCK_NVML_CONFIG": str(self._write_cards(config_of(self._assets, self._profile))),
        }
        plugin = self._assets / "volcano-vgpu-device-plugin"
        daemon = self.namespace.start(
            "device-plugin", plugin, "--device-discovery-strategy=nvml", environment=environment
        )

        def offered() -> bool:
            amounts = self.allocatable()
            found = [amounts.get(f"volcano.sh/vgpu-{name}", "0") != "0" for name in ("number", "memory")]
            return all(found) or (found[0] and "kubelet can receive" in daemon.log.read_text())  # too many units

        daemon.wait(offered, START_SECONDS)

    def close(self) -> None:
        self.namespace.close()

    def _write_cards(self, mock: Path) -> Path:
        """The mock's configuration with the cards of this node."""
        config, path = yaml.safe_load(mock.read_text()), self._directory / "cards.yaml"
        cards = config["devices"]
        # As JSON, which quotes all texts: a serial number like 0421819085498 would be read as a number, and the file not used.
        path.write_text(json.dumps(config | {"devices": cards[: int(self._cards or len(cards))]}))
        return path

    def _kubeconfig(self, user: str, group: str) -> Path:
        """A kubeconfig that works in the node, for a user."""
        document = yaml.safe_load(self._cluster.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["server"] = f"https://{API_ADDRESS}"
        document["users"][0]["user"] |= {"as": user, "as-groups": [group, "system:authenticated"]}
        path = self._directory / f"{user.rpartition(':')[2]}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def _start_containerd(self) -> None:
        config, networks = self._directory / "containerd.toml", self._directory / "net.d"
        networks.mkdir()
        config.write_text(_CONTAINERD.format(directory=self._directory, pause=PAUSE, cni=CNI))
        addresses = {"type": "host-local", "ranges": [[{"subnet": self.namespace.pods}]]}
        bridge = {"type": "bridge", "isDefaultGateway": True, "ipam": addresses}
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
        (networks / "pods.conflist").write_text(json.dumps(network))
        daemon = self.namespace.start("containerd", "containerd", f"--config={config}")
        daemon.wait(lambda: "serving..." in daemon.log.read_text(), START_SECONDS)

    def _kubelet_config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            # Only this machine reaches its port.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.namespace.cgroup}",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "failCgroupV1": False,
            "imageGCHighThresholdPercent": 100,  # no registry could give an image back
            "failSwapOn": False,
            "nodeStatusUpdateFrequency": "2s",
            "resolvConf": "",
        }
