"""Applying a workload prints warnings about the pods that it would create."""

from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.objects import custom_resource, device_pod
from tests.workloads import KINDS, workload
from webhook import names
from webhook.pod.templates import read_templates

pytestmark = pytest.mark.usefixtures("webhook")

WARNING = 'container "main" requests 9 vGPUs, but the largest node (gpu-a) has 8 cards; request 8 or fewer\n'


def template(number: int) -> dict[str, Any]:
    manifest = device_pod("p")
    manifest["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/vgpu-number": number}
    return {"metadata": {"labels": {"app": "a"}}, "spec": manifest["spec"]}


def deployment(number: int) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "strategy": {"type": "Recreate"}, "template": template(number)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}


def volcano_job(number: int) -> dict[str, Any]:
    tasks = [{"name": "train", "replicas": 1, "template": template(number)}]
    spec = {"schedulerName": "volcano", "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "w"}, "spec": spec}


def test_a_device_at_the_level_of_the_pod_is_warned_of_where_the_api_server_stores_it(cluster: Cluster, namespace: str):
    job, refused = volcano_job(8), deployment(8)
    for each in (job["spec"]["tasks"][0], refused["spec"]):
        each["template"]["spec"]["resources"] = {"limits": {"volcano.sh/vgpu-memory": "3000"}}
    result = cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=job)
    found = "spec.tasks[0].template: volcano.sh/vgpu-memory stands in spec.resources.limits, where nothing reads it"
    assert (result.returncode, result.stderr.count("Warning: device-misplaced: ")) == (0, 1)
    assert found in result.stderr
    result = cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=refused)
    assert "spec.template.spec.resources.limits[volcano.sh/vgpu-memory]: Unsupported value: " in result.stderr


CUSTOM = [kind for kind in KINDS if "." in kind.group and kind.key != ("batch.volcano.sh", "Job")]


def test_every_kind_is_stored_with_a_warning(cluster: Cluster, namespace: str):
    cluster.apply(*[custom_resource(kind.group, kind.versions[0], kind.kind) for kind in CUSTOM])
    annotations = {names.KSERVE_GPU_TYPES: f'["{names.VGPU_NUMBER}"]'}

    def apply(number: int) -> tuple[int, str]:
        items = [workload(kind, [template(number)], annotations=annotations) for kind in CUSTOM]
        listed = {"apiVersion": "v1", "kind": "List", "items": [deployment(number), volcano_job(number), *items]}
        result = cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=listed)
        return result.returncode, result.stderr

    code, warnings = apply(9)
    assert code == 0, warnings
    assert all(
        f"Warning: card-count: {path}: {WARNING}" in warnings for path in ("spec.template", "spec.tasks[0].template")
    )
    for kind in CUSTOM:
        paths = [each.path for each in read_templates(kind, workload(kind, [template(9)]))]
        assert all(f"Warning: card-count: {path}: " in warnings for path in paths), (kind, warnings)
    assert apply(8) == (0, "")
