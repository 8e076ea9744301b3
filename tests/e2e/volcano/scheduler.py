"""Volcano's scheduler and controllers on the test cluster. Without a kubelet, pods are bound but never run."""

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.generated import DOCS
from tests.docs.measured import add_row
from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, create_node
from tests.e2e.cluster import ADMIN_TOKEN, Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import Object, config_map, load_nodes, service_account
from tests.e2e.process import Daemon
from tests.parts.compiled import VOLCANO
from tests.reviewing import CONFIG
from tests.server.program import until
from webhook.names import NODE_VGPU_HANDSHAKE
from webhook.policy.policy import parse_policy
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.volcano.scheduler import parse_scheduler_conf

SCHEDULER = "vc-scheduler"
ASSETS_HELP = f"there is no Volcano: {VOLCANO.help}"
PERIOD = 0.2  # seconds between two scheduling cycles
CYCLES = 10  # a pod that is not bound after this many is never bound
NEVER = PERIOD * CYCLES
SOON = 4 * NEVER  # for pods that must be bound; most need two cycles
JOB_SECONDS = 1.0  # until the controllers have created the pods of a job
START_SECONDS = 60.0
HANDSHAKE_SECONDS = 20.0  # the scheduler waits for 60
NAMESPACE = "default"
ASSIGNED = "volcano.sh/vgpu-ids-new"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGE = Path(os.environ.get("PROOF_PAGE") or DOCS / "proof.md")
SEED = int(os.environ.get("PROOF_SEED", "1"))

# Volcano's device code always reads its credentials from the files of a pod.
_IN_POD = (
    "mount -t tmpfs none /var/run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && "
    'printf %s "$1" > /var/run/secrets/kubernetes.io/serviceaccount/token && '
    'cp "$2" /var/run/secrets/kubernetes.io/serviceaccount/ca.crt && shift 2 && exec "$@"'
)

CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true}
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


assets = VOLCANO.find


def version() -> str:
    found = re.search(r"\d+\.\d+\.\d+", os.environ.get("VOLCANO_VERSION") or str(assets()))
    assert found, "VOLCANO_VERSION: write the release like 1.15.1"
    return found[0]


NOT_STARTED = "NOT STARTED"
# The plugin predicates calls Allocate of devices that are nil: pkg/scheduler/plugins/predicates/predicates.go.
CRASH = re.compile(
    r"^panic: runtime error: invalid memory address or nil pointer dereference.*"
    r"^volcano\.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu\.\(\*GPUDevices\)\.Allocate\(0x0, [^\n]*\n[^\n]*\n"
    r"volcano\.sh/volcano/pkg/scheduler/plugins/predicates\.",
    re.MULTILINE | re.DOTALL,
)


def inputs(fleet: str, conf: str = CONF) -> SnapshotInputs:
    """The inputs of the engine: the nodes of the cluster, and the version and configuration of the scheduler."""
    nodes = read_nodes(fleet_nodes(fleet), CONFIG)
    target = {"volcano": version(), "devicePlugin": "1.11.0"}  # which serves several containers
    policy = parse_policy({"target": target, "workloads": "deny"}, "test")
    return SnapshotInputs(CONFIG, policy, nodes, parse_scheduler_conf(yaml.safe_load(conf), "test"))


def report(part: str, of: str, counts: Counter[str], differences: list[Any]) -> None:
    """Print the results of random objects, and write them into a table of the page; fails if there are differences."""
    print(f"\n{part} of {of}, Volcano {version()}, seed {SEED}: {dict(sorted(counts.items()))}")
    for each in differences:
        print(json.dumps(each))
    key = {"Volcano": version(), "objects": of, "seed": str(SEED)}
    PAGE.write_text(add_row(PAGE.read_text(), part, key, dict(sorted(counts.items()))))
    assert not differences


def established(crd: dict[str, Any]) -> bool:
    """Whether the API server serves a CRD; one that was just created has no status, which `kubectl wait` takes for an error."""
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


class Volcano:
    """Running scheduler and controllers; `close` stops both."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        scheduler_conf: str = CONF,
        binaries: Path | None = None,
        token: str = ADMIN_TOKEN,
    ) -> None:
        """Start them as the user of a token; the binaries and CRDs are by default those of VOLCANO_ASSETS."""
        self._daemons: list[Daemon] = []
        binaries = binaries or assets()
        assert binaries is not None, ASSETS_HELP
        cluster.apply(*(yaml.safe_load(file.read_text()) for file in sorted((binaries / "crd").glob("*.yaml"))))
        with cluster.api() as api:
            until(lambda: all(map(established, api.get(CRDS).body["items"])), START_SECONDS)
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "spec": {"weight": 1, "reclaimable": True},
        }
        cluster.apply(*(queue | {"metadata": {"name": name}} for name in ("root", "default")))
        cluster.apply(service_account(WITHOUT_QUOTA))
        self._directory = directory
        conf = directory / "volcano-scheduler.conf"
        conf.write_text(scheduler_conf)
        kubeconfig = cluster.kubeconfig_for_token(token, "volcano")
        common = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--scheduler-name=volcano"]
        period = f"--schedule-period={int(PERIOD * 1000)}ms"
        scheduler = [f"--scheduler-conf={conf}", "--csi-storage=false", period, "--listen-address=127.0.0.1:0"]
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port)}
        inside = ["/usr/bin/env", *(f"{key}={value}" for key, value in environment.items())]
        inside += ["unshare", "--mount", "sh", "-c", _IN_POD, "sh", token, str(cluster.ca)]
        try:
            for name, flags in (("vc-controller-manager", ["--enable-healthz=false"]), (SCHEDULER, scheduler)):
                self._command = [*inside, str(binaries / name), *common, *flags]
                self._daemons.append(Daemon(self._command, directory / f"{name}.log"))
        except BaseException:
            self.close()
            raise

    def restart_scheduler(self) -> None:
        """Start the scheduler again, with an empty cache."""
        self._daemons.pop().close()
        self._daemons.append(Daemon(self._command, self._directory / f"{SCHEDULER}.log"))

    def start_with_retry(self, api: Api, attempt: Callable[[], bool]) -> str:
        """Call `attempt`; if it fails, call it again with a new scheduler and an empty fleet.

        A scheduler may keep bookings and MIG geometries of deleted pods.
        """
        for result in ("started", "started by a fresh scheduler"):
            found = attempt()
            clear(api, NAMESPACE)
            if found:
                return result
            if result == "started":
                self.restart_and_wait(api)
        return NOT_STARTED

    def restart_and_wait(self, api: Api) -> None:
        """Start the scheduler again, and wait until it uses devices and has no bookings."""
        self.restart_scheduler()
        self.wait(api, FIRST, WITHOUT_QUOTA)
        touch_nodes(api)  # 1.14 keeps the booking of the first pod until the next event of its node
        time.sleep(2 * PERIOD)

    def wait(self, api: Api, pod: dict[str, Any], namespace: str) -> None:
        """Touch the nodes until a pod gets cards: a new scheduler has no devices of a node before its next event.

        Until then, the scheduler of 1.14.1 ends at a pod with devices; it is started again, with more time before the pod.
        """
        deadline, pause = time.monotonic() + START_SECONDS, PERIOD
        while True:
            if self.scheduler_crashed():
                self.restart_scheduler()
                pause *= 2
            time.sleep(pause)
            touch_nodes(api)
            found = place(api, namespace, [pod], SOON)[0]  # 1.14.1 takes six seconds if the name was there before
            clear(api, namespace)
            if found and ASSIGNED in found["metadata"]["annotations"]:
                return
            assert time.monotonic() < deadline, "\n".join(daemon.tail() for daemon in self._daemons)

    def scheduler_crashed(self) -> bool:
        """Whether the scheduler has ended as 1.14.1 does at a pod with devices, of a node whose devices it has not read.

        Raises:
            AssertionError: it has ended in another way.
        """
        daemon = self._daemons[-1]
        code = daemon.process.poll()
        if code is not None:
            known = version() == "1.14.1" and CRASH.search(daemon.log.read_text(errors="replace"))
            assert known, f"the scheduler ended with {code}:\n{daemon.tail()}"
        return code is not None

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.close()


def touch_nodes(api: Api) -> None:
    """Cause an event of each node, as the device plugin does with its handshake."""
    for node in api.get("/api/v1/nodes").body["items"]:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        api.merge(path, {"metadata": {"annotations": {NODE_VGPU_HANDSHAKE: handshake()}}})


def handshake() -> str:
    return f"Reported_{datetime.now(UTC):%Y.%m.%d %H:%M:%S.%f}"


def fleet_nodes(fleet: str) -> list[Object]:
    """The nodes of a sample fleet, with the device plugin's handshake."""
    nodes = load_nodes(fleet)
    for node in nodes:
        node["metadata"].setdefault("annotations", {})[NODE_VGPU_HANDSHAKE] = handshake()
    return nodes


@contextmanager
def answering(cluster: Cluster, fleet: str) -> Iterator[None]:
    """Answer the handshake of a release that has one again and again: without, nodes lose their cards after a minute."""
    stop = threading.Event()

    def answer() -> None:
        with cluster.api() as api:
            while not stop.wait(HANDSHAKE_SECONDS):
                touch_nodes(api)

    thread = threading.Thread(target=answer)
    if inputs(fleet).policy.target.facts().reads_handshake:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread.ident:
            thread.join()


@contextmanager
def on_fleet(
    fleet: str, factory: pytest.TempPathFactory, scheduler_conf: str = CONF, answers: bool = True
) -> Iterator[tuple[Cluster, Volcano]]:
    """A cluster with the nodes of a sample fleet, which by default answer the handshake, and a running Volcano."""
    if assets() is None:
        pytest.fail(ASSETS_HELP, pytrace=False)
    with start_cluster(factory) as cluster:
        cluster.apply(
            service_account(NAMESPACE),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
            config_map("kube-system", "volcano-vgpu-device-config", {"device-config.yaml": DEVICE_CONFIG.read_text()}),
        )
        with cluster.api() as api:
            for node in fleet_nodes(fleet):
                create_node(api, {**node, "spec": {}})
                api.merge(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": None}})
            volcano = Volcano(cluster, factory.mktemp("volcano"), scheduler_conf)
            try:
                volcano.wait(api, FIRST, NAMESPACE)
                with answering(cluster, fleet) if answers else nullcontext():
                    yield cluster, volcano
            finally:
                volcano.close()


def manifest(name: str, limits: list[dict[str, int]], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A pod whose containers have these limits."""
    containers = [
        {
            "name": f"c{index}",
            "image": "cuda",
            "resources": {part: {key: str(value) for key, value in each.items()} for part in ("limits", "requests")},
        }
        for index, each in enumerate(limits)
    ]
    metadata = {"name": name, "annotations": annotations or {}}
    spec = {"schedulerName": "volcano", "containers": containers, "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


WITHOUT_QUOTA = "kube-public"  # a namespace of Kubernetes: nothing resets a quota that a deleted pod has used
FIRST = manifest("first", [{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1000}])


def vcjob(
    name: str, tasks: list[tuple[int, list[dict[str, int]]]], minimum: int, queue: str = "default"
) -> dict[str, Any]:
    """A Volcano Job; each task is its number of pods and the limits of their containers."""
    task_specs = [
        {
            "name": f"task{index}",
            "replicas": replicas,
            "template": {"spec": manifest(name, limits)["spec"] | {"restartPolicy": "Never"}},
        }
        for index, (replicas, limits) in enumerate(tasks)
    ]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulerName": "volcano", "queue": queue, "minAvailable": minimum, "tasks": task_specs},
    }


def bound(api: Api, namespace: str) -> dict[str, dict[str, Any]]:
    """The pods of a namespace that have a node, by name."""
    pods = api.get(f"/api/v1/namespaces/{namespace}/pods").body["items"]
    return {pod["metadata"]["name"]: pod for pod in pods if pod["spec"].get("nodeName")}


def wait_bound(api: Api, namespace: str, count: int, seconds: float) -> dict[str, dict[str, Any]]:
    """Wait until `count` pods of a namespace have a node, or for `seconds`; returns the bound pods."""
    deadline = time.monotonic() + seconds
    while True:
        found = bound(api, namespace)
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(PERIOD / 4)


def place(api: Api, namespace: str, pods: list[dict[str, Any]], seconds: float) -> list[dict[str, Any] | None]:
    """Create pods, and wait until all have a node, or for `seconds`; returns each bound pod, or None."""
    for pod in pods:
        created = api.post(f"/api/v1/namespaces/{namespace}/pods", pod)
        assert created.status == 201, created.message
    found = wait_bound(api, namespace, len(pods), seconds)
    return [found.get(pod["metadata"]["name"]) for pod in pods]


def starts(api: Api, namespace: str, job: dict[str, Any], seconds: float) -> bool:
    """Create a Volcano Job; returns whether minAvailable pods have a node within `seconds`."""
    created = api.post(f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs", job)
    assert created.status == 201, created.message
    needed = job["spec"]["minAvailable"]
    return len(wait_bound(api, namespace, needed, seconds)) >= needed


def clear(api: Api, namespace: str) -> None:
    """Delete all jobs, pods and PodGroups, because no garbage collector runs."""
    for path in (
        f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
        f"/api/v1/namespaces/{namespace}/pods",
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
    ):
        now = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        deadline = time.monotonic() + START_SECONDS
        while api.get(path).body["items"]:
            api.send("DELETE", path, now)
            assert time.monotonic() < deadline, f"{path} is not empty"
            time.sleep(PERIOD / 4)
