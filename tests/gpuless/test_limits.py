"""Where Kubernetes, Volcano and the device plugin end; docs/proof.md says what was seen."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.objects import Object, pod, pods
from tests.gpuless.cluster import CONF
from tests.gpuless.conftest import start
from tests.gpuless.images import BUSYBOX
from tests.server.program import until

pytestmark = [pytest.mark.e2e, pytest.mark.cluster, pytest.mark.timeout(300)]

UNITS = 23_000  # of memory in one pod: what still works
MEMORY = "volcano.sh/vgpu-memory"


def slice_of(name: str, units: int) -> Object:
    """A pod that runs with this much memory of a card."""
    limits = {"volcano.sh/vgpu-number": "1", MEMORY: str(units)}
    manifest = pod(name, limits, image=BUSYBOX, imagePullPolicy="Never", command=["sh", "-c", "env; sleep 1000"])
    manifest["spec"] |= {"schedulerName": "volcano", "restartPolicy": "Never"}
    return manifest


def create(api: Api, *manifests: Object) -> None:
    for manifest in manifests:
        created = api.post(pods("default"), manifest)
        assert created.status == 201, created.message


def phase(api: Api, name: str) -> str:
    return str(api.get(pods("default", name)).body["status"]["phase"])


def running(api: Api, *names: str) -> Callable[[], bool]:
    return lambda: all(phase(api, name) == "Running" for name in names)


def test_pods_that_start_together_get_their_own_limits_if_the_scheduler_locks_the_node():
    conf = CONF.replace("VGPUEnable: true", "VGPUEnable: true, deviceshare.NodeLockEnable: true")
    sizes = {f"of-{units}": units for units in range(100, 900, 100)}
    with start("a100", scheduler_conf=conf) as found, found.cluster.api() as api:
        create(api, *(slice_of(name, units) for name, units in sizes.items()))
        until(running(api, *sizes), 60)
        for name, units in sizes.items():
            path = f"{pods('default', name)}/log"
            line = f"CUDA_DEVICE_MEMORY_LIMIT_0={10 * units}m\n"
            until(lambda path=path, line=line: line in api.get(path).body)


def test_the_status_of_a_pod_can_become_too_large():
    """The kubelet writes each unit into the status of the pod: the container runs, and the pod stays Pending."""
    with start("a100:1", memory_factor=1) as found, found.cluster.api() as api:
        create(api, slice_of("large", UNITS))
        until(running(api, "large"))
        found.cluster.kubectl("delete", "pod", "large", "--namespace=default", "--now")
        create(api, slice_of("too-large", UNITS + 1000))
        log = found.nodes[0].namespace.directory / "kubelet.log"
        until(lambda: "etcdserver: request is too large" in log.read_text())
        tasks = "ctr", "--namespace=k8s.io", "tasks", "ls"
        until(lambda: found.nodes[0].namespace.run(*tasks).count("RUNNING") == 2)  # its container, and its network's
        assert phase(api, "too-large") == "Pending"


def test_too_many_units_of_memory_hide_the_memory_of_a_node():
    with start("a100", memory_factor=1) as found:
        amounts: dict[str, Any] = found.nodes[0].allocatable()
        assert (amounts["volcano.sh/vgpu-number"], amounts.get(MEMORY, "0")) == ("80", "0")
        log = found.nodes[0].namespace.directory / "device-plugin.log"
        assert (
            "327680 memory devices exceed the 60000 kubelet can receive, set gpuMemoryFactor to at least 6"
            in log.read_text()
        )


def test_a_forged_pod_that_never_runs_chooses_the_card_and_limit_of_another_one():
    """It requests nothing and waits for a scheduler that does not exist; its annotations say 70 MiB of the first card."""
    forged = pod("forged", image=BUSYBOX)
    forged["spec"]["schedulerName"] = "nobody"
    with start("a100") as found, found.cluster.api() as api:
        card = found.nodes[0].cards()[0]
        forged["metadata"]["annotations"] = {
            "volcano.sh/vgpu-node": found.nodes[0].name,
            "volcano.sh/devices-to-allocate": f"{card},NVIDIA,7,0:",
            "volcano.sh/vgpu-time": "1",
        }
        create(api, forged, slice_of("victim", 1000))
        until(running(api, "victim"))
        log = api.get(f"{pods('default', 'victim')}/log").body
        assert "CUDA_DEVICE_MEMORY_LIMIT_0=70m" in log
        assert f"NVIDIA_VISIBLE_DEVICES={card}" in log
        assert phase(api, "forged") == "Pending"


def test_a_pod_with_two_vgpu_containers_takes_the_cards_of_two_others():
    with start("a100") as found, found.cluster.api() as api:
        node = found.nodes[0].namespace
        node.run("pkill", "-STOP", "-x", "kubelet")
        two = slice_of("two", 500)
        two["spec"]["containers"].append(two["spec"]["containers"][0] | {"name": "second"})
        create(api, two)
        time.sleep(1.1)  # the kubelet takes pods in the order of their creation, in seconds
        create(api, slice_of("other-1", 300), slice_of("other-2", 400))
        names = ("two", "other-1", "other-2")
        until(lambda: all("nodeName" in api.get(pods("default", name)).body["spec"] for name in names))
        node.run("pkill", "-CONT", "-x", "kubelet")
        until(running(api, "two"))
        until(lambda: phase(api, "other-1") == phase(api, "other-2") == "Failed")
        logs = [api.get(f"{pods('default', 'two')}/log?container={name}").body for name in ("main", "second")]
        assert {log.partition("CUDA_DEVICE_MEMORY_LIMIT_0=")[2].split()[0] for log in logs} == {"3000m", "4000m"}
