"""Where workloads keep their pod templates, and which of them are new."""

import copy
import json
from pathlib import Path

import pytest

from webhook.errors import Malformed
from webhook.pod.templates import WORKLOADS, changed_templates, holds_pods

REVIEWS = Path(__file__).parent.parent / "data" / "reviews"
POD = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
AS_POD = {"apiVersion": "v1", "kind": "Pod", **POD}


def found(kind, raw, old=None):
    return [(template.path, template.pod) for template in changed_templates(kind, raw, old)]


@pytest.mark.parametrize(
    "kind, raw, path",
    [
        ("Deployment", {"spec": {"template": POD}}, "spec.template"),
        ("StatefulSet", {"spec": {"template": POD}}, "spec.template"),
        ("DaemonSet", {"spec": {"template": POD}}, "spec.template"),
        ("ReplicaSet", {"spec": {"template": POD}}, "spec.template"),
        ("ReplicationController", {"spec": {"template": POD}}, "spec.template"),
        ("Job", {"spec": {"template": POD}}, "spec.template"),
        ("PodTemplate", {"template": POD}, "template"),
        ("CronJob", {"spec": {"jobTemplate": {"spec": {"template": POD}}}}, "spec.jobTemplate.spec.template"),
        ("Job", {"spec": {"tasks": [{"template": POD}]}}, "spec.tasks[0].template"),
    ],
)
def test_each_kind_has_its_place(kind, raw, path):
    kept = copy.deepcopy(raw)
    assert found(kind, raw) == [(path, AS_POD)]
    assert raw == kept
    assert kind in {known for _, known in WORKLOADS}


def test_the_jobs_scheduler_holds_for_tasks_that_name_none():
    tasks = [{"template": POD}, {"template": {"spec": {"schedulerName": "own"}}}, {"template": None}]
    pods = found("Job", {"spec": {"schedulerName": "volcano", "tasks": tasks}})
    assert [pod["spec"].get("schedulerName") for _, pod in pods] == ["volcano", "own", "volcano"]
    assert [path for path, _ in pods] == [f"spec.tasks[{i}].template" for i in range(3)]
    assert "schedulerName" not in POD["spec"]


def test_a_deployments_scheduler_is_its_pods_own_business():
    raw = {"spec": {"schedulerName": "volcano", "template": POD}}
    assert found("Deployment", raw) == [("spec.template", AS_POD)]


@pytest.mark.parametrize("spec", [{}, {"replicas": 3}, {"tasks": []}, {"tasks": None}])
def test_no_template_nothing_to_judge(spec):
    assert found("Deployment", {"spec": spec}) == []


def test_only_what_changed_is_judged():
    raw = {"spec": {"replicas": 2, "template": POD}}
    scaled = {"spec": {"replicas": 3, "template": copy.deepcopy(POD)}}
    assert found("Deployment", scaled, raw) == []
    other = {"spec": {"template": {"spec": {"containers": []}}}}
    assert [path for path, _ in found("Deployment", other, raw)] == ["spec.template"]


def test_of_several_tasks_only_the_changed_one():
    old = {"spec": {"tasks": [{"template": copy.deepcopy(POD)}, {"template": copy.deepcopy(POD)}]}}
    new = copy.deepcopy(old)
    new["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["image"] = "x"
    assert [path for path, _ in found("Job", new, old)] == ["spec.tasks[1].template"]


def test_another_scheduler_of_the_job_changes_its_tasks():
    old = {"spec": {"schedulerName": "a", "tasks": [{"template": POD}]}}
    new = {"spec": {"schedulerName": "b", "tasks": [{"template": POD}]}}
    assert [path for path, _ in found("Job", new, old)] == ["spec.tasks[0].template"]


@pytest.mark.parametrize(
    "kind, raw, path",
    [
        ("Deployment", {"spec": []}, "spec"),
        ("Deployment", {"spec": {"template": "x"}}, "spec.template"),
        ("Deployment", {"spec": {"template": {"spec": 1}}}, "spec.template.spec"),
        ("Deployment", {"spec": {"template": {"metadata": []}}}, "spec.template.metadata"),
        ("CronJob", {"spec": {"jobTemplate": 1}}, "spec.jobTemplate"),
        ("CronJob", {"spec": {"jobTemplate": {"spec": 1}}}, "spec.jobTemplate.spec"),
        ("CronJob", {"spec": {"jobTemplate": {"spec": {"template": 1}}}}, "spec.jobTemplate.spec.template"),
        ("PodTemplate", {"template": []}, "template"),
        ("Job", {"spec": {"tasks": {}}}, "spec.tasks"),
        ("Job", {"spec": {"tasks": [1]}}, "spec.tasks[0]"),
        ("Job", {"spec": {"tasks": [{"template": []}]}}, "spec.tasks[0].template"),
    ],
)
def test_a_wrong_shape_is_named(kind, raw, path):
    with pytest.raises(Malformed) as caught:
        changed_templates(kind, raw, None)
    assert caught.value.path == path


def recorded():
    for path in sorted(REVIEWS.glob("*.json")):
        request = json.loads(path.read_bytes())["request"]
        kind = request["kind"]
        if (kind["group"], kind["kind"]) in WORKLOADS:
            yield pytest.param(kind["kind"], request["object"], id=path.stem)


@pytest.mark.parametrize("kind, raw", list(recorded()))
def test_every_recorded_workload_gives_its_pods(kind, raw):
    templates = changed_templates(kind, raw, None)
    assert templates
    assert all(template.pod["spec"]["containers"] for template in templates)
    assert changed_templates(kind, raw, raw) == []


# --- kinds that are not known ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {"headGroupSpec": {"template": POD}},
        {"pytorchReplicaSpecs": {"Master": {"template": POD}}},
        {"templates": [{"name": "main", "container": {"image": "cuda"}}]},
        {"predictor": {"model": {"resources": {"limits": {"volcano.sh/vgpu-number": 1}}}}},
        {"containers": [{"name": "proxy"}]},
    ],
    ids=["RayCluster", "PyTorchJob", "Workflow", "InferenceService", "Prometheus"],
)
def test_pods_are_seen_in_kinds_that_are_not_known(spec):
    assert holds_pods({"kind": "Any", "spec": spec})
    assert not holds_pods({"kind": "Any", "status": spec})


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"kind": "ConfigMap", "data": {"pod.yaml": "spec: {containers: []}"}},
        {"kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"container": "main"}}},
        {"kind": "PersistentVolumeClaim", "spec": {"resources": {"requests": {"storage": "1Gi"}}}},
        {"kind": "CustomResourceDefinition", "spec": {"properties": {"containers": {"type": "array"}}}},
        {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"nvidia.com/gpu": 1}}]}},
        {"kind": "Odd", "containers": [], "container": [], "resources": {"limits": [1], "requests": None}},
    ],
    ids=lambda raw: raw.get("kind"),
)
def test_kinds_without_pods_have_none(raw):
    assert not holds_pods(raw)
