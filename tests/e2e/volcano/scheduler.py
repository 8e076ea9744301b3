"""Volcano's scheduler and controllers on the test cluster. Without a kubelet, pods are bound but never run."""

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
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
from tests.server.client import SECONDS
from tests.server.program import until
from webhook.names import NODE_VGPU_HANDSHAKE, NODE_VGPU_REGISTER
from webhook.policy.policy import parse_policy
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.volcano.scheduler import parse_scheduler_conf

SCHEDULER = "vc-scheduler"
ASSETS_HELP = f"there is no Volcano: {VOLCANO.help}"
PERIOD = 0.2  # seconds between two scheduling cycles
CYCLES = 10  # a pod that is not bound after this many is never bound
NEVER = PERIOD * CYCLES
SOON = 4 * NEVER  # for pods that must be bound, before a fresh scheduler tries; most need two cycles
JOB_SECONDS = 1.0  # until the controllers have created the pods of a job
HANDSHAKE_SECONDS = 5.0  # the scheduler waits for 60
NAMESPACE = "default"
ASSIGNED = "volcano.sh/vgpu-ids-new"
NODES = "/api/v1/nodes"
NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
REPORTED = "Reported"  # begins the handshake of the device plugin
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
# The plugin predicates calls Allocate of devices that are nil: pkg/scheduler/plugins/predicates/predicates.go. Other threads
# may log between the lines of the trace.
CRASH = re.compile(
    r"^panic: runtime error: invalid memory address or nil pointer dereference.*"
    r"^volcano\.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu\.\(\*GPUDevices\)\.Allocate\(0x0, (?:(?!\n\n).)*"
    r"^volcano\.sh/volcano/pkg/scheduler/plugins/predicates\.",
    re.MULTILINE | re.DOTALL,
)
LOADED = "Finished loading scheduler config"  # a line of the scheduler's log: pkg/scheduler/scheduler.go


def inputs(fleet: str, conf: str = CONF) -> SnapshotInputs:
    """The inputs of the engine: the nodes of the cluster, and the version and configuration of the scheduler."""
    nodes = read_nodes(fleet_nodes(fleet), CONFIG)
    target = {"volcano": version(), "devicePlugin": "1.11.0"}  # which serves several containers
    policy = parse_policy({"target": target, "workloads": "deny"}, "test")
    return SnapshotInputs(CONFIG, policy, nodes, parse_scheduler_conf(yaml.safe_load(conf), "test"))


def reads_handshake() -> bool:
    return parse_policy({"target": {"volcano": version()}}, "test").target.facts().reads_handshake


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
            until(lambda: all(map(established, api.get(CRDS).body["items"])))
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "spec": {"weight": 1, "reclaimable": True},
        }
        cluster.apply(*(queue | {"metadata": {"name": name}} for name in ("root", "default")))
        cluster.apply(service_account(WITHOUT_QUOTA))
        self._directory = directory
        # In a folder of its own: the scheduler reads it, and logs that, whenever a file beside it changes.
        self.conf = directory / "conf" / "volcano-scheduler.conf"
        self.conf.parent.mkdir()
        self.conf.write_text(scheduler_conf)
        kubeconfig = cluster.kubeconfig_for_token(token, "volcano")
        common = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--scheduler-name=volcano"]
        scheduler = [f"--scheduler-conf={self.conf}", f"--schedule-period={int(PERIOD * 1000)}ms", "-v=2"]
        scheduler += ["--csi-storage=false", "--listen-address=127.0.0.1:0"]
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port)}
        environment["TZ"] = "UTC"  # west of it, handshakes of 1.14.1 are older than a minute when it writes them
        inside = ["/usr/bin/env", *(f"{key}={value}" for key, value in environment.items())]
        inside += ["unshare", "--mount", "sh", "-c", _IN_POD, "sh", token, str(cluster.ca)]
        try:
            for name, flags in (("vc-controller-manager", ["--enable-healthz=false"]), (SCHEDULER, scheduler)):
                self._command = [*inside, str(binaries / name), *common, *flags]
                self._daemons.append(Daemon(self._command, directory / f"{name}.log"))
        except BaseException:
            self.close()
            raise

    def configure(self, conf: str) -> None:
        """Change the configuration of the running scheduler, and wait until it has read it."""
        log = self._daemons[-1].log
        before = log.read_text(errors="replace").count(LOADED)
        new = self._directory / "new.conf"
        new.write_text(conf)
        new.replace(self.conf)
        until(lambda: log.read_text(errors="replace").count(LOADED) > before)

    def restart_scheduler(self) -> None:
        """Start the scheduler again, with an empty cache."""
        self.stop_scheduler()
        self.start_scheduler()

    def stop_scheduler(self) -> None:
        self._daemons.pop().close()

    def start_scheduler(self) -> None:
        self._daemons.append(Daemon(self._command, self._directory / f"{SCHEDULER}.log"))

    def start_with_retry(self, api: Api, attempt: Callable[[float], bool], patience: float = SECONDS) -> str:
        """Call `attempt` for some seconds; if it fails, call it for `patience` with a new scheduler and an empty fleet.

        A scheduler may keep bookings and MIG geometries of deleted pods.
        """
        for result, seconds in (("started", SOON), ("started by a fresh scheduler", patience)):
            found = attempt(seconds)
            clear(api, NAMESPACE)
            if found:
                return result
            if result == "started":
                self.restart_and_wait(api)
        return NOT_STARTED

    def restart_and_wait(self, api: Api) -> None:
        """Start the scheduler again, and wait until it uses devices and has no bookings."""
        self.restart_scheduler()
        self.wait(api, WITHOUT_QUOTA)

    def wait(self, api: Api, namespace: str) -> None:
        """Wait until a new scheduler uses the cards of the nodes, which it has of a node only after its next event.

        A release that reads the handshake answers it with `Requesting`. The first answer shows that it reads cards, perhaps of
        a copy of the node that it does not keep (Clone in pkg/scheduler/api/node_info.go); the second that it uses them.
        Others are shown a pod.
        """
        for _ in range(2 if reads_handshake() else 0):
            touch_nodes(api)
            self._daemons[-1].wait(lambda: not any(map(is_unanswered, api.get(NODES).body["items"])))
        deadline, has_cards = time.monotonic() + SECONDS, reads_handshake()
        while not has_cards:
            assert time.monotonic() < deadline, "\n".join(daemon.tail() for daemon in self._daemons)
            touch_nodes(api)
            found = place(api, namespace, [FIRST], SOON)[0]
            clear(api, namespace)
            has_cards = bool(found and ASSIGNED in found["metadata"]["annotations"])
            touch_nodes(api)  # 1.14 keeps the booking of the pod until the next event of its node
            time.sleep(2 * PERIOD)

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
    for node in api.get(NODES).body["items"]:
        path, changed = f"{NODES}/{node['metadata']['name']}", {NODE_VGPU_HANDSHAKE: handshake()}
        until(lambda: api.merge(path, {"metadata": {"annotations": changed}}).status == 200)  # noqa: B023


def is_unanswered(node: Object) -> bool:
    """Whether a node with cards has a handshake that the scheduler has not read."""
    annotations = node["metadata"]["annotations"]
    return NODE_VGPU_REGISTER in annotations and annotations[NODE_VGPU_HANDSHAKE].startswith(REPORTED)


def keep_cards(api: Api) -> None:
    """Cause an event of each node, unless its handshake waits for an answer, and let its cards not expire.

    1.14.1 waits for a minute after the time that `Requesting` names. It writes that a dozen times for one handshake, five times
    a second for all nodes, and schedules nothing meanwhile.
    """
    for node in api.get(NODES).body["items"]:
        if not is_unanswered(node):
            annotations = {NODE_VGPU_HANDSHAKE: f"Requesting_2999.12.31 {datetime.now(UTC):%H:%M:%S.%f}"}
            only_this = {"resourceVersion": node["metadata"]["resourceVersion"]}
            api.merge(f"{NODES}/{node['metadata']['name']}", {"metadata": only_this | {"annotations": annotations}})


def handshake() -> str:
    return f"{REPORTED}_{datetime.now(UTC):%Y.%m.%d %H:%M:%S.%f}"


def device_config() -> str:
    """The device config without NPUs: 1.14.1 reads none that has them under `configs`, and then knows no MIG instances."""
    return yaml.safe_dump({"nvidia": yaml.safe_load(DEVICE_CONFIG.read_text())["nvidia"]})


def fleet_nodes(fleet: str) -> list[Object]:
    """The nodes of a sample fleet, with the device plugin's handshake."""
    nodes = load_nodes(fleet)
    for node in nodes:
        node["metadata"].setdefault("annotations", {})[NODE_VGPU_HANDSHAKE] = handshake()
    return nodes


@contextmanager
def keeping_cards(cluster: Cluster) -> Iterator[None]:
    """Keep the cards again and again for a release that reads the handshake: without, nodes lose them after a minute."""
    stop = threading.Event()

    def keep() -> None:
        with cluster.api() as api:
            while not stop.wait(HANDSHAKE_SECONDS):
                keep_cards(api)

    thread = threading.Thread(target=keep)
    if reads_handshake():
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread.ident:
            thread.join()


@contextmanager
def on_fleet(
    fleet: str, factory: pytest.TempPathFactory, scheduler_conf: str = CONF, keeps_cards: bool = True
) -> Iterator[tuple[Cluster, Volcano]]:
    """A cluster with the nodes of a sample fleet, which by default keep their cards, and a running Volcano."""
    if assets() is None:
        pytest.fail(ASSETS_HELP, pytrace=False)
    with start_cluster(factory) as cluster:
        cluster.apply(
            service_account(NAMESPACE),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
            config_map("kube-system", "volcano-vgpu-device-config", {"device-config.yaml": device_config()}),
        )
        with cluster.api() as api:
            for node in fleet_nodes(fleet):
                create_node(api, {**node, "spec": {}})
                api.merge(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": None}})
            volcano = Volcano(cluster, factory.mktemp("volcano"), scheduler_conf)
            try:
                volcano.wait(api, NAMESPACE)
                with keeping_cards(cluster) if keeps_cards else nullcontext():
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


def bound(api: Api, namespace: str, of: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """The pods of a namespace that have a node, by name; `of` selects by the UID of the pod, or of its owner."""
    pods = [pod for pod in api.get(f"/api/v1/namespaces/{namespace}/pods").body["items"] if pod["spec"].get("nodeName")]
    return {pod["metadata"]["name"]: pod for pod in pods if not of or not {*uids(pod)}.isdisjoint(of)}


def uids(pod: dict[str, Any]) -> Iterator[str]:
    metadata = pod["metadata"]
    yield from (each["uid"] for each in (metadata, *metadata.get("ownerReferences", ())))


def wait_bound(api: Api, namespace: str, of: Collection[str], count: int, seconds: float) -> dict[str, dict[str, Any]]:
    """Wait until `count` pods of some UIDs or owners have a node, or for `seconds`; returns the bound pods.

    Others may be there: the controllers may create the pods of a job after the job was deleted.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = bound(api, namespace, of)
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(PERIOD / 4)


def create(api: Api, path: str, document: dict[str, Any]) -> str:
    """Create an object; returns its UID."""
    created = api.post(path, document)
    assert created.status == 201, created.message
    return str(created.body["metadata"]["uid"])


def place(api: Api, namespace: str, pods: list[dict[str, Any]], seconds: float) -> list[dict[str, Any] | None]:
    """Create pods, and wait until all have a node, or for `seconds`; returns each bound pod, or None."""
    created = [create(api, f"/api/v1/namespaces/{namespace}/pods", pod) for pod in pods]
    found = wait_bound(api, namespace, created, len(pods), seconds)
    return [found.get(pod["metadata"]["name"]) for pod in pods]


def start_job(api: Api, namespace: str, job: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
    """Create a Volcano Job; returns its pods that have a node as soon as minAvailable have one, or after some seconds."""
    named = job | {
        "metadata": {"generateName": f"{job['metadata']['name']}-"}
    }  # pods of one that was deleted may be late
    created = create(api, f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs", named)
    needed = job["spec"]["minAvailable"]
    return [*wait_bound(api, namespace, [created], needed, seconds + JOB_SECONDS).values()]


def starts(api: Api, namespace: str, job: dict[str, Any], seconds: float) -> bool:
    """Create a Volcano Job; returns whether minAvailable pods have a node within some seconds."""
    return len(start_job(api, namespace, job, seconds)) >= job["spec"]["minAvailable"]


def clear(api: Api, namespace: str) -> None:
    """Delete all jobs, pods and PodGroups, because no garbage collector runs."""
    deadline = time.monotonic() + SECONDS
    for path in (
        f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
        f"/api/v1/namespaces/{namespace}/pods",
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
    ):
        while api.get(path).body["items"]:
            api.send("DELETE", path, NOW)
            assert time.monotonic() < deadline, f"{path} is not empty"
            time.sleep(PERIOD / 4)
