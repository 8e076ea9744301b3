"""The whole cluster: control plane, Volcano, nodes with cards."""

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import helm_python
import yaml

from tests.deploy.files import CHART
from tests.e2e.changes import DEVICE_CONFIG
from tests.e2e.cluster import Cluster
from tests.e2e.objects import config_map, service_account
from tests.e2e.process import Daemon
from tests.e2e.volcano.scheduler import CONF as ALLOCATE
from tests.e2e.volcano.scheduler import PERIOD, Volcano, touch_nodes
from tests.gpuless.assets import find_assets, memory_units
from tests.gpuless.images import TAG, WEBHOOK, webhook_image
from tests.gpuless.namespace import API_ADDRESS
from tests.gpuless.node import DEVICE_PLUGIN, Node
from tests.server.program import free_port

CONF = ALLOCATE.replace('"allocate"', '"allocate, backfill"')  # which places pods without requests
NAME = "vgpu-webhook"  # of the release, its namespace and its Deployment
WEBHOOK_SECONDS = 180
WAIT: dict[str, Any] = {"wait": "watcher", "timeout": WEBHOOK_SECONDS}  # options of Helm: until all pods are ready
SCHEDULER = ("volcano-system", "volcano-scheduler")  # its account

_FLAGS = (
    "--bind-address=0.0.0.0",  # the nodes have their own network
    "--service-cluster-ip-range=10.96.0.0/24",
    "--enable-aggregator-routing=true",  # calls a Service at its endpoints, because nothing routes its address
    "--kubelet-preferred-address-types=InternalIP",
    "--authorization-mode=Node",  # in addition to RBAC
)


class GpuCluster:
    """A running cluster, with its API server and its nodes; as a context manager it stops at the end of the block."""

    def __init__(
        self, directory: Path, profiles: Sequence[str], memory_factor: int | None = None, scheduler_conf: str = CONF
    ) -> None:
        """Start it in an empty directory, with a node for each profile: `a100`, `t4:2` …

        Without a memory_factor, the MiB of one unit of vGPU memory are enough for the memory of each node.
        """
        self._assets = assets = find_assets()
        self._directory, self._memory_factor = directory, memory_factor or memory_units(assets, profiles)
        with contextlib.ExitStack() as stack:
            self.cluster = Cluster(assets, _made(directory / "control-plane"), *_FLAGS, hosts=[API_ADDRESS])
            stack.callback(self.cluster.close)
            keys = self.cluster.ca.parent
            accounts = [f"--service-account-private-key-file={keys / 'tls.key'}", f"--root-ca-file={self.cluster.ca}"]
            for name, flags in (("kube-controller-manager", accounts), ("kube-scheduler", [])):
                stack.callback(self._start(assets / name, *flags).close)
            self._apply_settings(scheduler_conf)
            token = self.cluster.token_of_account(*SCHEDULER)
            self.volcano = Volcano(self.cluster, _made(directory / "volcano"), scheduler_conf, assets, token)
            stack.callback(self.volcano.close)
            self.nodes: list[Node] = []
            self._stack = stack
            for profile in profiles:
                self.add_node(profile)
            self.show_cards()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def add_node(self, profile: str) -> Node:
        """Start one more node, and wait until it offers its cards."""
        node = Node(len(self.nodes) + 1, profile, self._assets, self.cluster, self._directory)
        self.nodes.append(node)
        self._stack.callback(node.close)
        return node

    def show_cards(self) -> None:
        """Let the scheduler see the cards of all nodes: it does not before the next event of a node."""
        with self.cluster.api() as api:
            touch_nodes(api)
        time.sleep(2 * PERIOD)

    def install_webhook(self, **values: Any) -> None:
        """Build the webhook's image, install its chart with these values, and wait until the API server depends on it."""
        image = webhook_image(self._assets, _made(self._directory / "image"))
        for node in self.nodes:
            node.import_image(image)
        values |= {"image": {"repository": WEBHOOK, "tag": TAG}}
        with self.helm() as helm:
            helm.install(CHART, NAME, values, create_namespace=True, **WAIT)
        job = ["job", f"{NAME}-certs", f"--namespace={NAME}", "--timeout=50s"]
        done = self.cluster.kubectl("wait", "--for=condition=Complete", *job)
        assert done.returncode == 0, done.stderr

    def helm(self) -> helm_python.Config:
        return helm_python.Config(kubeconfig_path=self.cluster.kubeconfig, namespace=NAME)

    def forward_console(self) -> str:
        """Forward a port of this machine to the console of a replica; returns its address."""
        port = free_port()
        access = [f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={NAME}"]
        forward = ["port-forward", f"deployment/{NAME}", f"{port}:8480"]
        daemon = Daemon([self._assets / "kubectl", *access, *forward], self._directory / "port-forward.log")
        self._stack.callback(daemon.close)
        daemon.wait(lambda: b"Forwarding" in daemon.log.read_bytes(), WEBHOOK_SECONDS)
        return f"http://127.0.0.1:{port}"

    def _start(self, program: Path, *flags: str) -> Daemon:
        common = [f"--kubeconfig={self.cluster.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
        return Daemon([program, *common, *flags], self._directory / f"{program.name}.log")

    def _apply_settings(self, scheduler_conf: str) -> None:
        """What the manifests of Volcano and its device plugin contain."""
        accounts = [
            {"kind": "ServiceAccount", "namespace": namespace, "name": name}
            for namespace, name in (SCHEDULER, DEVICE_PLUGIN)
        ]
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "volcano"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": accounts,
        }
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SCHEDULER[0]}},
            *(service_account(account["namespace"], account["name"]) for account in accounts),
            config_map(SCHEDULER[0], "volcano-scheduler-configmap", {"volcano-scheduler.conf": scheduler_conf}),
            binding,
        )
        self.write_device_config()

    def write_device_config(self, **settings: Any) -> None:
        """Write the device config, with settings of its section `nvidia` that differ from the sample's."""
        config = yaml.safe_load(DEVICE_CONFIG.read_text())
        config["nvidia"] |= {"gpuMemoryFactor": self._memory_factor, **settings}
        data = {"device-config.yaml": yaml.safe_dump(config)}
        self.cluster.apply(config_map("kube-system", "volcano-vgpu-device-config", data))


@contextlib.contextmanager
def in_own_directory(*profiles: str, **settings: Any) -> Iterator[tuple[Path, GpuCluster]]:
    """A running cluster, and its directory, which both end with the block."""
    find_assets()
    with tempfile.TemporaryDirectory(prefix="vgpu-cluster-", dir="/var/tmp") as name:
        print(f"starting; the logs are in {name}", flush=True)
        with GpuCluster(Path(name), profiles, **settings) as running:
            yield Path(name), running


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory
