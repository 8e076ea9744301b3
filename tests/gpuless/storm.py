"""A storm on the whole cluster: `make storm` creates 1,000 pods while everything around the webhook restarts.

Controllers create the pods, half of them with a mistake that must be refused, while a replica is killed with -9 every five
seconds, the kubelet and the device plugin are killed, the certificates rotate, and the chart is upgraded. At the end every
right pod exists and no wrong one, no right pod was refused, and each decision that reached the API server is logged once. Those
in flight when a replica is killed may be missing: the container runtime does not always read its output to the end.
"""

import contextlib
import json
import random
import sys
import threading
import time
from collections import Counter
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.deploy.files import CHART
from tests.docs.measured import write_part
from tests.e2e.objects import Object, namespace_objects
from tests.e2e.objects import pods as pods_path
from tests.gpuless.cluster import NAME, WAIT, GpuCluster, in_own_directory
from tests.gpuless.images import BUSYBOX
from tests.ledger import record

NAMESPACE = "storm"
IN_FLIGHT_SECONDS = 3.0  # before a kill; what the webhook has written may then be lost on its way to the file
PODS = 500  # of each kind
EACH = 25  # pods of a Deployment or Job
KILL_SECONDS = 5.0
ANSWERS = {
    HTTPStatus.CREATED: "201: created",
    HTTPStatus.FORBIDDEN: "403: refused by the webhook",
    HTTPStatus.CONFLICT: "409: it exists already",
    HTTPStatus.INTERNAL_SERVER_ERROR: "500: no webhook answered, so the controller tries again",
}
SETTLE_SECONDS = 900.0  # controllers wait longer after each refusal
RIGHT = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "400"}
WRONG = {"volcano.sh/vgpu-number": "9"}  # of eight cards


def workloads() -> list[Object]:
    """Deployments of right and wrong pods, and Volcano Jobs of right ones; no pod names its scheduler but those of the Jobs."""
    found = []
    for number in range(PODS // EACH):
        found.append(_deployment(f"wrong-{number}", WRONG))
        found.append(_job(f"right-{number}") if number % 4 == 0 else _deployment(f"right-{number}", RIGHT))
    return found


def _template(name: str, limits: dict[str, str]) -> Object:
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "resources": {"limits": limits}}
    spec = {"containers": [container | {"command": ["sleep", "100000"]}], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"labels": {"app": name, "kind": name.partition("-")[0]}}, "spec": spec}


def _deployment(name: str, limits: dict[str, str]) -> Object:
    spec = {"replicas": EACH, "selector": {"matchLabels": {"app": name}}, "template": _template(name, limits)}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _job(name: str) -> Object:
    template = _template(name, RIGHT)
    template["spec"] |= {"schedulerName": "volcano", "restartPolicy": "Never"}
    task = {"name": "task", "replicas": EACH, "template": template}
    spec = {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task]}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


class Killer(threading.Thread):
    """Kills a replica every five seconds, notes when in seconds since 1970, and keeps the logs of all of them."""

    def __init__(self, running: GpuCluster, kept: Path) -> None:
        super().__init__(daemon=True)
        self._running, self._kept = running, kept
        self._ended = threading.Event()
        self.kills: list[float] = []

    def run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(0.2):
            self.keep_logs()
            if time.monotonic() - last > KILL_SECONDS:
                last = time.monotonic()
                self._kill()

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self.keep_logs()

    def _kill(self) -> None:
        """Kill a replica that is ready, and delete those which the kubelet holds back, as an operator would."""
        with self._running.cluster.api() as api:
            ready = []
            for pod in api.get(pods_path(NAME)).body["items"]:
                for container in pod["status"].get("containerStatuses", []):
                    if "waiting" in container["state"] and container["restartCount"]:
                        api.delete(pods_path(NAME, pod["metadata"]["name"]) + "?gracePeriodSeconds=0")
                    elif container["ready"] and container["name"] == "webhook":
                        ready.append(container["containerID"].rpartition("/")[2])
        if ready:
            command = f"ctr --namespace=k8s.io tasks kill --signal=9 {random.choice(ready)} || true"
            self._running.nodes[0].namespace.run("sh", "-c", command)
            self.kills.append(time.time())

    def keep_logs(self) -> None:
        """Link the log files, since the kubelet rotates them, and deletes those of containers that ended."""
        for log in self._running.nodes[0].namespace.directory.glob(f"log/pods/{NAME}_*/webhook/*.log*"):
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                if log.suffix != ".gz":
                    (self._kept / f"{log.stat().st_ino}").hardlink_to(log)


def decisions(kept: Path) -> list[dict[str, Any]]:
    found = []
    for log in sorted(kept.iterdir()):
        for line in log.read_text(errors="replace").splitlines():
            text = line.split(" ", 3)[-1]  # after time, stream and tag
            if text.startswith('{"'):
                decision = json.loads(text)
                if decision.get("namespace") == NAMESPACE and decision.get("kind") == "Pod":
                    found.append(decision)
    return found


def pods(running: GpuCluster) -> list[Object]:
    with running.cluster.api() as api:
        return list(api.get(pods_path(NAMESPACE)).body["items"])


def failed(pod: Object) -> bool:
    """Whether the kubelet refused it; a Deployment then makes another one."""
    return bool(pod["status"]["phase"] == "Failed")


def stands(pod: Object) -> bool:
    """Whether it is one of the right pods that must exist in the end."""
    owner = pod["metadata"]["ownerReferences"][0]["kind"]
    return pod["metadata"]["labels"]["kind"] == "right" and not (failed(pod) and owner == "ReplicaSet")


def wait_for_right_pods(running: GpuCluster, seconds: float) -> int:
    """Wait until all right pods exist; returns how many do."""
    deadline = time.monotonic() + seconds
    while True:
        count = sum(map(stands, pods(running)))
        if count >= PODS or time.monotonic() > deadline:
            return count
        time.sleep(1)


def disturb(running: GpuCluster) -> None:
    """Restart, rotate and upgrade what the webhook stands on."""
    node = running.nodes[0]
    time.sleep(10)
    node.namespace.kill("volcano-vgpu-device-plugin")
    node.start_plugin()
    rotate = ["create", "job", "rotate-now", f"--from=cronjob/{NAME}-certs", f"--namespace={NAME}"]
    assert running.cluster.kubectl(*rotate).returncode == 0
    time.sleep(5)
    node.namespace.kill("kubelet")
    node.start_kubelet()
    with running.helm() as helm:
        helm.upgrade(CHART, NAME, {"replicas": 3}, reuse_values=True, timeout=WAIT["timeout"])


def main() -> None:
    with in_own_directory("a100") as (directory, running):
        running.install_webhook()
        running.cluster.apply(*namespace_objects(NAMESPACE))
        kept = directory / "kept"
        kept.mkdir()
        killer = Killer(running, kept)
        began = time.monotonic()
        killer.start()
        running.cluster.apply(*workloads())
        disturb(running)
        right = wait_for_right_pods(running, 60)
        killer.stop()
        right = wait_for_right_pods(running, SETTLE_SECONDS)
        took = time.monotonic() - began
        time.sleep(2)
        killer.keep_logs()
        sys.exit(judge(running, right, decisions(kept), killer.kills, took))


def judge(running: GpuCluster, right: int, lines: list[dict[str, Any]], kills: list[float], seconds: float) -> int:
    """Print the figures of `lines`, the webhook's audit logs, and of the API server's; returns how many claims are wrong."""
    created = [event for event in running.cluster.audit_events() if _creates_pod(event)]
    codes = Counter(event["responseStatus"]["code"] for event in created)
    received = {
        value: datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        for event in created
        for key, value in _annotations(event)
        if key.endswith("/decision-id")
    }
    unchecked = [
        event
        for event in created
        if event["responseStatus"]["code"] == HTTPStatus.CREATED
        and not any(key.startswith("pods.") and key.endswith("/decision-id") for key, _ in _annotations(event))
    ]
    logged = Counter(line["id"] for line in lines)
    lost = [at for each, at in received.items() if not logged[each]]
    strange = [at for at in lost if not any(0 < kill - at < IN_FLIGHT_SECONDS for kill in kills)]
    twice = [each for each in received if logged[each] > 1]
    denied = [line for line in lines if not line["allowed"]]
    falsely = [
        line for line in denied if {f["rule"] for f in line["findings"] if f["level"] == "deny"} != {"card-count"}
    ]
    wrong = [pod for pod in pods(running) if pod["metadata"]["labels"]["kind"] == "wrong"]
    claims = {
        f"{right} of {PODS} right pods exist": right == PODS,
        f"{len(wrong)} of {PODS} wrong pods exist": not wrong,
        f"{len(denied)} decisions refuse a wrong pod, {len(falsely)} a right one": denied and not falsely,
        f"{len(unchecked)} pods were created without a validation": not unchecked,
        f"{len(received)} decisions reached the API server; {len(twice)} are logged twice": received and not twice,
        f"{len(lost)} are not logged, {len(strange)} of them not in the seconds before a kill": not strange,
    }
    refused = Counter(pod["status"].get("message", "")[:100] for pod in pods(running) if failed(pod))
    lines = [
        "| | |",
        "|---|---|",
        f"| pods, half of them with a mistake | {2 * PODS} |",
        f"| replicas killed with -9 | {len(kills)} in {seconds:.0f} s |",
        *(
            f"| creations that the API server answered with {ANSWERS.get(code, code)} | {codes[code]} |"
            for code in sorted(codes)
        ),
        *(f"| pods that the kubelet refused: {message} | {count} |" for message, count in refused.most_common()),
        *(f"| {claim} | {'yes' if holds else 'NO'} |" for claim, holds in claims.items()),
    ]
    print("\n".join(lines))
    record("storm", f"{sum(map(bool, claims.values()))} of {len(claims)} claims hold")
    if all(claims.values()):
        write_part("storm", lines)
    return sum(not holds for holds in claims.values())


def _creates_pod(event: dict[str, Any]) -> bool:
    what = event["objectRef"]
    return event["verb"] == "create" and what.get("namespace") == NAMESPACE and what["resource"] == "pods"


def _annotations(event: dict[str, Any]) -> list[tuple[str, str]]:
    return list(event.get("annotations", {}).items())


if __name__ == "__main__":
    main()
