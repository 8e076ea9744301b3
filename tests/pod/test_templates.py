"""Where workloads have their pod templates, and which of them changed."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import each_case
from tests.reviewing import DATA
from tests.workloads import KINDS, kind_id, workload
from webhook.errors import Malformed
from webhook.pod.templates import Template, changed_templates, read_templates
from webhook.pod.unknown_kinds import find_templates, holds_pods
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKind, with_kinds, workload_kind

POD = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
AS_POD = {"apiVersion": "v1", "kind": "Pod", **POD}
DEPLOYMENT, VCJOB = WORKLOAD_KINDS["apps", "Deployment"], WORKLOAD_KINDS["batch.volcano.sh", "Job"]


def changed(kind: WorkloadKind, raw: dict[str, Any], old: dict[str, Any] | None = None) -> list[tuple[str, Any]]:
    return [(template.path, template.pod) for template in changed_templates(kind, raw, old)]


def kind_of(raw: dict[str, Any]) -> WorkloadKind:
    return WORKLOAD_KINDS[raw["apiVersion"].rpartition("/")[0], raw["kind"]]


def test_the_annotations_of_a_model_server_are_those_of_its_pod():
    kind, predictor = WORKLOAD_KINDS["serving.kserve.io", "InferenceService"], {"model": {"name": "m"}}
    ((_, pod),) = changed(kind, {"spec": {"predictor": {**predictor, "annotations": {"a": "b"}}}})
    assert pod["metadata"] == {"annotations": {"a": "b"}}
    ((_, pod),) = changed(kind, {"spec": {"predictor": predictor}})
    assert pod["metadata"] == {}


# --- manifests from the examples of the projects --------------------------------------------------------------------

NUMBER = "resources.limits[volcano.sh/vgpu-number]"
MAIN = f".spec.containers[0].{NUMBER}"
EXPECTED = yaml.safe_load(Path(__file__).with_name("templates.yaml").read_text())


def shown(template: Template) -> str:
    """The path, and after a star the field that requests vGPUs, unless it is the usual one."""
    for index, container in enumerate(template.pod["spec"]["containers"]):
        if "volcano.sh/vgpu-number" in container.get("resources", {}).get("limits", {}):
            field = template.field(f"spec.containers[{index}].{NUMBER}").removeprefix(template.path)
            return f"{template.path}*{'' if field == MAIN else field.replace(NUMBER, 'NUMBER')}"
    return template.path


def manifests() -> list[dict[str, Any]]:
    files = sorted((DATA / "workloads").glob("*.yaml"))
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


def test_templates_are_read_from_the_manifests_of_every_project():
    assert {
        f"{raw['kind']}/{raw['metadata'].get('name', '')}": " ".join(map(shown, read_templates(kind_of(raw), raw)))
        for raw in manifests()
    } == EXPECTED


def test_every_kind_has_a_manifest():
    recorded = {kind for kind in WORKLOAD_KINDS if kind[0] in ("", "apps", "batch")} | {VCJOB.key}
    assert {kind_of(raw).key for raw in manifests()} | recorded == set(WORKLOAD_KINDS)


# --- kinds that hold whole pods -------------------------------------------------------------------------------------


@each_case("kind", KINDS, ids=kind_id)
def test_templates_are_read_at_every_path_of_a_kind(kind: WorkloadKind):
    pod = {"spec": {"containers": [{"name": "node", "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}]}}
    raw = workload(kind, [pod])
    kept = copy.deepcopy(raw)
    templates = list(read_templates(kind, raw))
    assert len(templates) == len(kind.templates)
    assert all(template.pod["spec"]["containers"] == pod["spec"]["containers"] for template in templates)
    assert all(template.whole is kind.is_whole for template in templates)
    assert raw == kept
    assert changed(kind, raw, kept) == []


def test_tasks_without_a_scheduler_get_that_of_the_job():
    tasks = [{"template": POD}, {"template": {"spec": {"schedulerName": "own"}}}, {"template": None}]
    pods = changed(VCJOB, {"spec": {"schedulerName": "volcano", "tasks": tasks}})
    assert [pod["spec"].get("schedulerName") for _, pod in pods] == ["volcano", "own", "volcano"]
    assert [path for path, _ in pods] == [f"spec.tasks[{i}].template" for i in range(3)]
    assert "schedulerName" not in POD["spec"]


def test_a_scheduler_in_the_spec_of_a_deployment_is_ignored():
    raw = {"spec": {"schedulerName": "volcano", "template": POD}}
    assert changed(DEPLOYMENT, raw) == [("spec.template", AS_POD)]


@pytest.mark.parametrize("spec", [{}, {"replicas": 3}, {"template": None}, {"tasks": []}, {"tasks": None}])
def test_a_workload_without_templates_has_none_to_review(spec: dict[str, Any]):
    assert changed(DEPLOYMENT, {"spec": spec}) == changed(VCJOB, {"spec": spec}) == []


OTHER = {"spec": {"containers": []}}
TASK = {"template": POD}


@pytest.mark.parametrize(
    "kind, old, new, paths",
    [
        (DEPLOYMENT, {"replicas": 2, "template": POD}, {"replicas": 3, "template": POD}, []),
        (DEPLOYMENT, {"template": POD}, {"template": OTHER}, ["spec.template"]),
        (VCJOB, {"tasks": [TASK, TASK]}, {"tasks": [TASK, {"template": OTHER}]}, ["spec.tasks[1].template"]),
        (VCJOB, {"schedulerName": "a", "tasks": [TASK]}, {"schedulerName": "b", "tasks": [TASK]}, ["spec.tasks[0].template"]),
    ],
)  # fmt: skip
def test_only_a_changed_template_is_reviewed(kind: WorkloadKind, old: Any, new: Any, paths: list[str]):
    assert [path for path, _ in changed(kind, {"spec": new}, {"spec": copy.deepcopy(old)})] == paths


def test_paths_lead_through_lists_and_maps():
    kind = workload_kind("example.org", "Fleet", "v1", "spec.groups[*].roles.*.template")
    raw = {"spec": {"groups": [{}, {"roles": {"a": {"template": POD}, "b.c": {"template": POD}, "d": {}}}]}}
    assert [path for path, _ in changed(kind, raw)] == [
        "spec.groups[1].roles.a.template",
        "spec.groups[1].roles[b.c].template",
    ]


@each_case(
    "group, kind, raw, path",
    [
        ("apps", "Deployment", {"spec": []}, "spec"),
        ("apps", "Deployment", {"spec": {"template": "x"}}, "spec.template"),
        ("apps", "Deployment", {"spec": {"template": {"spec": 1}}}, "spec.template.spec"),
        ("apps", "Deployment", {"spec": {"template": {"metadata": []}}}, "spec.template.metadata"),
        ("batch", "CronJob", {"spec": {"jobTemplate": 1}}, "spec.jobTemplate"),
        ("batch", "CronJob", {"spec": {"jobTemplate": {"spec": {"template": 1}}}}, "spec.jobTemplate.spec.template"),
        ("", "PodTemplate", {"template": []}, "template"),
        ("batch.volcano.sh", "Job", {"spec": {"tasks": {}}}, "spec.tasks"),
        ("batch.volcano.sh", "Job", {"spec": {"tasks": [1]}}, "spec.tasks[0]"),
        ("batch.volcano.sh", "Job", {"spec": {"tasks": [{"template": []}]}}, "spec.tasks[0].template"),
        ("kubeflow.org", "TFJob", {"spec": {"tfReplicaSpecs": []}}, "spec.tfReplicaSpecs"),
        ("kubeflow.org", "TFJob", {"spec": {"tfReplicaSpecs": {"PS": 1}}}, "spec.tfReplicaSpecs.PS"),
        ("argoproj.io", "Workflow", {"spec": {"templates": [{"container": 1}]}}, "spec.templates[0].container"),
        ("serving.kserve.io", "InferenceService", {"spec": {"predictor": {"model": 1}}}, "spec.predictor.model"),
        ("sparkoperator.k8s.io", "SparkApplication", {"spec": {"driver": {"gpu": 1}}}, "spec.driver.gpu"),
    ],
)
def test_the_path_of_a_malformed_field_is_reported(group: str, kind: str, raw: dict[str, Any], path: str):
    with pytest.raises(Malformed) as caught:
        changed_templates(WORKLOAD_KINDS[group, kind], raw, None)
    assert caught.value.path == path


def test_a_kind_of_the_policy_replaces_a_known_kind():
    other = workload_kind("ray.io", "RayCluster", "v2", "spec.template")
    kinds = with_kinds([other], WORKLOAD_KINDS)
    assert kinds["ray.io", "RayCluster"] is other
    assert len(kinds) == len(WORKLOAD_KINDS)


# --- kinds that hold parts of pods ----------------------------------------------------------------------------------

STEP = {"name": "s", "container": {"image": "i", "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}}
BRACES = "{{inputs.parameters.x}}"


@pytest.mark.parametrize(
    "spec",
    [
        {"podSpecPatch": "containers: []", "templates": [STEP]},
        {"templateDefaults": {"container": {"image": "i"}}, "templates": [STEP]},
        {"templates": [{**STEP, "podSpecPatch": "containers: []"}]},
        {"templates": [{**STEP, "nodeSelector": {"pool": BRACES}}]},
        {"templates": [{**STEP, "metadata": {"annotations": {"nvidia.com/use-gputype": BRACES}}}]},
        {"templates": [{"container": {"resources": {"limits": {"volcano.sh/vgpu-number": BRACES}}}}]},
        {"templates": [{"name": "main", "steps": [[{"name": "a", "template": "b"}]]}]},
    ],
)
def test_steps_that_are_unknown_before_they_run_are_ignored(spec: dict[str, Any]):
    assert changed(WORKLOAD_KINDS["argoproj.io", "Workflow"], {"spec": spec}) == []


def test_a_step_inherits_nothing_from_its_workflow():
    (raw,) = [each for each in manifests() if each["kind"] == "Workflow"]
    _, (_, pod) = changed(kind_of(raw), raw)
    assert pod["metadata"] == {}
    assert pod["spec"]["nodeSelector"] == {"gpu": "true"}
    assert "schedulerName" not in pod["spec"]
    assert [container.get("name") for container in pod["spec"]["containers"]] == [None, "logs"]


def test_gpus_of_spark_join_those_of_its_pod_template():
    limits = {"volcano.sh/vgpu-memory": 4000}
    template = {"spec": {"containers": [{"name": "spark", "resources": {"limits": limits}}]}}
    driver = {"gpu": {"name": "volcano.sh/vgpu-number", "quantity": 2}, "template": template}
    ((path, pod),) = changed(WORKLOAD_KINDS["sparkoperator.k8s.io", "SparkApplication"], {"spec": {"driver": driver}})
    assert path == "spec.driver"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {**limits, "volcano.sh/vgpu-number": 2}
    assert limits == {"volcano.sh/vgpu-memory": 4000}


# --- unknown kinds --------------------------------------------------------------------------------------------------

SHAPES = [
    ({"headGroupSpec": {"template": POD}}, ["spec.headGroupSpec.template"]),
    (
        {"roles": [{"name": "a"}, {"template": POD}, {"template": POD}]},
        ["spec.roles[1].template", "spec.roles[2].template"],
    ),
    ({"replicaSpecs": {"Master": {"template": POD}}}, ["spec.replicaSpecs.Master.template"]),
    ({"worker": POD["spec"]}, ["spec.worker"]),
    ({"containers": [{"name": "proxy"}]}, ["spec"]),
    ({"predictor": {"model": {"resources": {"limits": {"volcano.sh/vgpu-number": 1}}}}}, ["spec.predictor.model"]),
    ({"resources": {"requests": {"nvidia.com/gpu": 1}}, "worker": POD["spec"]}, ["spec", "spec.worker"]),
]


@pytest.mark.parametrize("spec, paths", SHAPES)
def test_templates_are_found_by_their_shape(spec: dict[str, Any], paths: list[str]):
    templates = find_templates({"kind": "Any", "metadata": {"name": "a"}, "spec": spec, "status": spec})
    assert [template.path for template in templates] == paths
    assert all(template.pod["spec"]["containers"] for template in templates)
    assert not any(template.whole for template in templates)
    assert holds_pods({"kind": "Any", "spec": spec})
    assert not holds_pods({"kind": "Any", "status": spec})


@pytest.mark.parametrize(
    "spec",
    [
        {"templates": [{"name": "main", "container": {"image": "cuda"}}]},
        {"templates": [{"name": "main", "container": {"image": "cuda", "resources": {"limits": {"cpu": 1}}}}]},
    ],
)
def test_containers_alone_are_not_a_template(spec: dict[str, Any]):
    assert find_templates({"kind": "Any", "spec": spec}) == []
    assert holds_pods({"kind": "Any", "spec": spec})


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
def test_kinds_without_pods_have_none(raw: dict[str, Any]):
    assert not holds_pods(raw)
    assert find_templates(raw) == []
