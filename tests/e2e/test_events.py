"""Events about waiting pods, on a real API server with 1,000 of them: no flood, and no double."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, built
from tests.e2e.api import Api
from tests.e2e.changes import create_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import pod, pods, service_account
from tests.e2e.process import Daemon
from tests.e2e.shipped import is_configuration
from tests.server.program import free_port
from tests.strategies import node_json, register
from tests.tuned import tuned
from webhook import names

writing = pytest.importorskip("webhook.questions.why.events")  # unless the question is gone

NEVER, WAITS, GATED = 500, 480, 20
NAMESPACES = ("team-a", "team-b")
CARD = ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/vgpu-webhook/leases/vgpu-webhook-events"
AT_ONCE = writing.EventPace(settle=0.0)
SOON = replace(AT_ONCE, turn=1.0, round=1.0)
FAST = replace(SOON, rate=200.0, most=5000)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node whose cards are half full, and 1,000 pods for which no scheduler cares."""
    with start_cluster(tmp_path_factory, "--max-mutating-requests-inflight=400") as cluster:
        documents = built(DEPLOY / "overlays" / "events")
        cluster.apply(*[each for each in documents if not is_configuration(each) and each["kind"] != "CronJob"])
        for namespace in NAMESPACES:
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            cluster.apply(service_account(namespace))
        with cluster.api() as api:
            create_node(api, node_json("gpu-a", register([CARD, CARD])))
            api.merge("/api/v1/nodes/gpu-a", {"spec": {"taints": None}})
            for number in range(2):
                ids = {names.VGPU_IDS: f"GPU-{number},NVIDIA,40000,0:", names.VGPU_NODE: "gpu-a"}
                create(api, f"holds-{number}", 40000, ids, nodeName="gpu-a")
            create(api, "left-0", 1000, ids | {names.BIND_PHASE: names.ALLOCATING}, nodeName="gpu-a")
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
            assert api.merge(f"{pods(NAMESPACES[0], 'left-0')}/status", {"status": status}).status == 200
            for number in range(NEVER):
                create(api, f"never-{number}", 90000)
            for number in range(WAITS):
                create(api, f"waits-{number}", 60000)
            for number in range(GATED):
                create(api, f"gated-{number}", 60000, schedulingGates=[{"name": "example.com/budget"}])
        yield cluster


def create(api: Api, name: str, memory: int, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    waiting = pod(name, {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: str(memory)})
    waiting["metadata"]["annotations"] = annotations or {}
    waiting["spec"] |= {"schedulerName": "volcano", **spec}
    made = api.post(pods(NAMESPACES[len(name) % 2]), waiting)
    assert made.status == 201, made.message


@pytest.fixture
def start(cluster: Cluster, tmp_path: Any) -> Iterator[Callable[..., Daemon]]:
    """Start `vgpu-webhook console --events` with the account of deploy/; all processes end with the test."""
    kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook-events")
    daemons: list[Daemon] = []

    def run(pace: writing.EventPace) -> Daemon:
        options = ["--bind", f"127.0.0.1:{free_port()}", "--kubeconfig", kubeconfig, "--events"]
        daemons.append(
            Daemon([sys.executable, *tuned("console", event_pace=pace), *options], tmp_path / f"{len(daemons)}.log")
        )
        return daemons[-1]

    yield run
    for daemon in daemons:
        daemon.close()


def events(cluster: Cluster) -> list[Any]:
    with cluster.api() as api:
        found = api.get("/apis/events.k8s.io/v1/events?limit=5000").body["items"]
    return [each for each in found if each["reportingController"] == "vgpu-webhook"]


def count(cluster: Cluster) -> int:
    return len(events(cluster))


def busiest_second(found: list[Any]) -> int:
    times = sorted(datetime.fromisoformat(each["eventTime"]).timestamp() for each in found)
    return max(sum(1 for other in times[at : at + 500] if other - time < 1.0) for at, time in enumerate(times))


def test_each_waiting_pod_gets_one_event_and_another_one_when_its_verdict_changes(
    cluster: Cluster, start: Callable[..., Daemon]
):
    first = start(AT_ONCE)
    first.wait(lambda: count(cluster) > 0)
    second = start(FAST)
    second.wait(lambda: "policy: " in second.tail() and count(cluster) >= 350)
    found = events(cluster)
    assert busiest_second(found) <= writing.PACE.rate + writing.PACE.burst
    with cluster.api() as api:
        leader = api.get(LEASE).body["spec"]["holderIdentity"]
        assert {each["reportingInstance"] for each in found} == {leader}, "one replica writes"
        first.process.kill()
        total = NEVER + WAITS + GATED + 1
        second.wait(lambda: count(cluster) == total)
        assert api.get(LEASE).body["spec"]["holderIdentity"] != leader

    second.wait(lambda: "were there already" in second.tail())
    assert re.search(r"events: \d+ written, (?:[3-9]\d\d|\d{4}) were there already", second.tail()), second.tail()
    second.process.kill()
    third = start(FAST)
    third.wait(lambda: f"events: 0 written, {total} were there already" in third.tail())
    found = events(cluster)
    assert Counter(each["reason"] for each in found) == {
        "VGPUNeverFits": NEVER,
        "VGPUWaits": WAITS + GATED,
        "VGPUAssignmentLeftBehind": 1,
    }
    assert set(Counter(each["regarding"]["uid"] for each in found).values()) == {1}

    with cluster.api() as api:
        for number in range(GATED):
            name = f"gated-{number}"
            assert api.merge(pods(NAMESPACES[len(name) % 2], name), {"spec": {"schedulingGates": None}}).status == 200
    third.wait(lambda: count(cluster) == total + GATED)
    again = Counter(each["regarding"]["name"] for each in events(cluster))
    assert {name for name, times in again.items() if times == 2} == {f"gated-{number}" for number in range(GATED)}
    assert_described(cluster)


def assert_described(cluster: Cluster) -> None:
    """What `kubectl describe pod` shows."""
    texts = {
        "left-0": r"Warning +VGPUAssignmentLeftBehind .*, and the next pod .* gets those assigned to it, .* delete the pod now",
        "never-0": r"Warning +VGPUNeverFits .* vgpu-webhook +container \"main\" requests volcano.sh/vgpu-memory 90000, but",
        "waits-0": r"Normal +VGPUWaits .* vgpu-webhook +once team-[ab]/holds-[01] has ended it fits on gpu-a; with .*41920",
        "waits-10": r"Normal +VGPUWaits .* once a pod of another namespace has ended it fits on gpu-a; with .*41920",
        "gated-0": r"VGPUWaits .* no scheduler looks at the pod before its scheduling gates are removed: example.com/budget",
    }
    for name, text in texts.items():
        described = cluster.kubectl("describe", "pod", name, "-n", NAMESPACES[len(name) % 2]).stdout
        assert re.search(text, described), described
