"""Without the webhook, only the creation of pods that request devices fails."""

import json
import os
import signal
import subprocess
from contextlib import suppress

import pytest

from tests.bench.conditions import annotated, large, ordinary
from tests.e2e.api import Api
from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import SCHEDULER, device_pod, pod, pods
from tests.e2e.test_cost import create, pod_named, update
from tests.server.program import COMMAND, Authority, Program
from webhook.manifests.match_conditions import MAX_ANNOTATIONS


@pytest.fixture
def program(cluster: Cluster, serve: Serve, authority: Authority) -> Program:
    webhook = serve("--audit-log", "")
    attach(cluster, webhook.port, authority.ca.certificate, webhook, timeout=5)
    return webhook


def assert_only_new_device_pods_fail(cluster: Cluster, namespace: str, reason: str) -> None:
    with cluster.api() as api:
        refused = api.post(pods(namespace), device_pod("device"))
        assert refused.status == 500
        assert 'failed calling webhook "repair.vgpu-webhook.svc"' in refused.message
        assert reason in refused.message
        assert api.post(pods(namespace), pod("ordinary")).status == 201
        exposing = pod("exposing")
        exposing["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
        assert api.post(pods(namespace), exposing).status == 201, "it only gets a warning"
        stored = [item["metadata"]["name"] for item in api.get(pods(namespace)).body["items"]]
        assert stored == ["exposing", "old", "ordinary"]
        assert api.merge(pods(namespace, "old"), {"metadata": {"labels": {"touched": "yes"}}}).status == 200
        assert_scheduled(cluster, namespace)
        assert api.delete(pods(namespace, "old")).status == 200


def assert_large_pods_pass(api: Api, namespace: str) -> None:
    for name, body in large().items():
        created = create(api, namespace, pod_named("large", body))  # which the API server may refuse for its size
        assert created.status == 201 or "webhook" not in created.message, name
    many = pod_named("many", annotated(ordinary(), {f"a{number}": "" for number in range(MAX_ANNOTATIONS + 1)}))
    assert api.post(pods(namespace), many).status == 201
    assert update(api, namespace, many).status == 200
    assert api.delete(pods(namespace, "many")).status == 200


def assert_scheduled(cluster: Cluster, namespace: str) -> None:
    """Volcano can still bind existing pods."""
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "old"}}
    with cluster.api(SCHEDULER) as scheduler:
        response = scheduler.merge(
            pods(namespace, "old"), {"metadata": {"annotations": {"volcano.sh/vgpu-node": "gpu-a"}}}
        )
        assert response.status == 200, response.message
        target = {"target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-a"}}
        response = scheduler.post(pods(namespace, "old", "binding"), binding | target)
        assert response.status == 201, response.message


def test_a_stopped_webhook(program: Program, cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("old"))
    program.close()
    assert_only_new_device_pods_fail(cluster, namespace, "connection refused")
    assert_large_pods_pass(api, namespace)
    workload = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "w"}}
    template = {"template": {"spec": device_pod("p")["spec"]}}
    created = api.post(f"/api/v1/namespaces/{namespace}/podtemplates", workload | template)
    assert (created.status, created.warnings) == (201, ()), "workloads fail open without a warning"
    doctor = [str(COMMAND), "doctor", "-o", "json", "--kubeconfig", str(cluster.kubeconfig)]
    report = json.loads(subprocess.run(doctor, capture_output=True, text=True, check=False).stdout)
    lines = {line["check"]: line for line in report["lines"]}
    assert lines["failed-open"]["status"] == "warning"
    assert "exposed.vgpu-webhook.svc: 1" in lines["failed-open"]["message"]


def test_an_unresponsive_worker(program: Program, cluster: Cluster, api: Api, namespace: str):
    """A stopped worker accepts connections but does not respond."""
    api.post(pods(namespace), device_pod("old"))
    stopped = program.worker
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert_only_new_device_pods_fail(cluster, namespace, "context deadline exceeded")
    finally:
        with suppress(ProcessLookupError):  # on a busy machine it may have been replaced meanwhile
            os.kill(stopped, signal.SIGCONT)
    assert api.post(pods(namespace), device_pod("device")).status == 201
