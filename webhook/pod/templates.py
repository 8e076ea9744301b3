"""Reads the pod templates of workloads.

Some kinds hold only parts of their pods, and a controller adds the rest. Such a template is not whole: it is read as a pod that
has these parts and demands nothing else, so that what is found in it holds for the pod, whatever is added.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.pod.view import mapping, objects
from webhook.pod.workload_kinds import Form, WorkloadKind

MAX_KEY = 253  # characters of a key that may lead to a template

# A predictor of KServe can name its model server by one of these instead of `model`.
INLINE_CONTAINERS = (
    "model", "huggingface", "lightgbm", "onnx", "paddle", "pmml", "pytorch", "sklearn", "tensorflow", "triton",
    "xgboost",
)  # fmt: skip
STEP_CONTAINERS = ("container", "script")

_STEP_FIELDS = ("nodeSelector", "affinity", "tolerations", "schedulerName", "volumes")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template.

    Attributes:
        path: where the object has it: `spec.template`.
        pod: the pod that it would give.
        whole: whether it describes the whole pod; else a controller adds to it.
        sources: where fields of the pod come from, if not from the same path below `path`: (`spec.containers[0]`, `model`).
    """

    path: str
    pod: dict[str, Any]
    whole: bool = True
    sources: tuple[tuple[str, str], ...] = ()

    def field(self, path: str) -> str:
        """Where the object has a field of the pod."""
        for prefix, source in self.sources:
            if path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")):
                rest = path[len(prefix) :]
                return f"{self.path}.{source}{rest}" if source else f"{self.path}{rest}"
        return f"{self.path}.{path}"


def read_templates(kind: WorkloadKind, raw: Mapping[str, Any], scheduler: str = "") -> Iterator[Template]:
    """The pod templates of a workload, in order.

    Args:
        kind: of the workload.
        raw: the workload.
        scheduler: of the pods of a Volcano Job that names none: Volcano's own webhook writes it. Source: volcano
            `pkg/webhooks/admission/jobs/mutate/mutate_job.go` (patchDefaultScheduler).

    Raises:
        Malformed: a field on the way does not have its kind's shape.
    """
    for template in kind.templates:
        read = _READERS[template.form]
        for path, part in _parts(raw, "", template.steps):
            defaulted = template.form is Form.VOLCANO_JOB and scheduler and not part.get("schedulerName")
            yield from read({**part, "schedulerName": scheduler} if defaulted else part, path)


def changed_templates(
    kind: WorkloadKind, raw: Mapping[str, Any], old: Mapping[str, Any] | None, scheduler: str = ""
) -> list[Template]:
    """The templates of a workload that are new, or differ from the old object's.

    Raises:
        Malformed: a field on the way does not have its kind's shape.
    """
    before = {template.path: template.pod for template in read_templates(kind, old, scheduler)} if old else {}
    return [template for template in read_templates(kind, raw, scheduler) if before.get(template.path) != template.pod]


def _parts(parent: Mapping[str, Any], path: str, steps: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is at the end of a template path, each with its own path; nothing where a field is absent."""
    if not steps:
        yield path, parent
        return
    step, rest = steps[0], steps[1:]
    prefix = f"{path}." if path else ""
    if step.endswith("[*]"):
        key = step.removesuffix("[*]")
        for index, item in objects(parent, key, prefix):
            yield from _parts(item, f"{prefix}{key}[{index}]", rest)
    elif step == "*":
        for key in parent:
            yield from _parts(mapping(parent, key, prefix), f"{path}{step_of(key)}", rest)
    elif parent.get(step) is not None:
        yield from _parts(mapping(parent, step, prefix), f"{prefix}{step}", rest)


def step_of(key: str) -> str:
    """A key, as a step of a path: `.key`, or `[key]` if it has other characters."""
    return f".{key}" if key and _NAME.issuperset(key) else f"[{key}]"


def pod_of(metadata: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod of a template; without metadata if it has none that is an object."""
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(spec)}


def _pod_template(raw: Mapping[str, Any], path: str, scheduler: object = None) -> Iterator[Template]:
    spec = mapping(raw, "spec", f"{path}.")
    if scheduler and not spec.get("schedulerName"):
        spec = {**spec, "schedulerName": scheduler}
    yield Template(path, pod_of(mapping(raw, "metadata", f"{path}."), spec))


def _volcano_job(spec: Mapping[str, Any], path: str) -> Iterator[Template]:
    """The tasks of a Volcano Job, whose scheduler holds for tasks that name none."""
    for index, task in objects(spec, "tasks", f"{path}."):
        where = f"{path}.tasks[{index}]."
        yield from _pod_template(mapping(task, "template", where), f"{where}template", spec.get("schedulerName"))


def _workflow(spec: Mapping[str, Any], path: str) -> Iterator[Template]:
    """The steps of an Argo Workflow, without what its spec adds to them: another workflow may use them, too."""
    if spec.get("podSpecPatch") or spec.get("templateDefaults"):  # these can change what a step requests
        return
    for index, step in objects(spec, "templates", f"{path}."):
        if not step.get("podSpecPatch"):
            yield from _step(step, f"{path}.templates[{index}]")


def _step(step: Mapping[str, Any], path: str) -> Iterator[Template]:
    prefix = f"{path}."
    containers = [(key, mapping(step, key, prefix)) for key in STEP_CONTAINERS if step.get(key)]
    of_set = objects(mapping(step, "containerSet", prefix), "containers", f"{prefix}containerSet.")
    containers += [(f"containerSet.containers[{index}]", each) for index, each in of_set]
    if not containers:
        return
    containers += [(f"sidecars[{index}]", each) for index, each in objects(step, "sidecars", prefix)]
    first = [(f"initContainers[{index}]", each) for index, each in objects(step, "initContainers", prefix)]
    metadata = mapping(step, "metadata", prefix)
    fields = {key: step[key] for key in _STEP_FIELDS if key in step}
    if _has_expression([metadata, fields, [each.get("resources") for _, each in [*containers, *first]]]):
        return  # `{{inputs.parameters.cards}}`: the value is unknown before the step runs
    spec = {**fields, "containers": [dict(each) for _, each in containers]}
    if first:
        spec["initContainers"] = [dict(each) for _, each in first]
    sources = [(f"spec.containers[{index}]", source) for index, (source, _) in enumerate(containers)]
    yield Template(path, pod_of(metadata, spec), whole=False, sources=(*sources, ("spec", "")))


def _has_expression(value: object) -> bool:
    """Whether a text in it has an expression of Argo: outside of texts, JSON has no two braces in a row."""
    return b"{{" in orjson.dumps(value, default=str)


def _pod_spec(raw: Mapping[str, Any], path: str) -> Iterator[Template]:
    """The fields of a pod's spec, and the container of a model server beside them."""
    prefix = f"{path}."
    containers = [each for _, each in objects(raw, "containers", prefix)]
    inline = [(key, mapping(raw, key, prefix)) for key in INLINE_CONTAINERS if raw.get(key)]
    if not containers and not inline:
        return
    sources = [(f"spec.containers[{len(containers) + index}]", key) for index, (key, _) in enumerate(inline)]
    spec = {key: value for key, value in raw.items() if key not in INLINE_CONTAINERS}
    spec["containers"] = [*containers, *({"name": key, **each} for key, each in inline)]
    metadata = {"annotations": mapping(raw, "annotations", prefix)} if raw.get("annotations") else None
    sources += [("spec", ""), ("metadata", "")]
    yield Template(path, pod_of(metadata, spec), whole=False, sources=tuple(sources))


def _spark_pod(raw: Mapping[str, Any], path: str) -> Iterator[Template]:
    """A driver or an executor: its pod template, and the GPUs that the operator adds to the first container."""
    prefix = f"{path}."
    template = mapping(raw, "template", prefix)
    spec = mapping(template, "spec", f"{prefix}template.")
    containers = [dict(each) for _, each in objects(spec, "containers", f"{prefix}template.spec.")] or [{}]
    gpu = mapping(raw, "gpu", prefix)
    name, quantity = gpu.get("name"), gpu.get("quantity")
    sources = [("spec", "template.spec"), ("metadata", "template.metadata")]
    if isinstance(name, str) and name and type(quantity) is int and quantity > 0:
        resources = mapping(containers[0], "resources", f"{prefix}template.spec.containers[0].")
        limits = mapping(resources, "limits", f"{prefix}template.spec.containers[0].resources.")
        containers[0]["resources"] = {**resources, "limits": {**limits, name: quantity}}
        sources.insert(0, (f"spec.containers[0].resources.limits[{name}]", "gpu.quantity"))
    if containers != [{}]:
        metadata = mapping(template, "metadata", f"{prefix}template.")
        yield Template(path, pod_of(metadata, {**spec, "containers": containers}), whole=False, sources=tuple(sources))


def _trainer(raw: Mapping[str, Any], path: str) -> Iterator[Template]:
    """What the nodes of a TrainJob request; the rest is in its runtime."""
    resources = mapping(raw, "resourcesPerNode", f"{path}.")
    if resources:
        pod = pod_of(None, {"containers": [{"name": "node", "resources": dict(resources)}]})
        yield Template(
            path, pod, whole=False, sources=(("spec.containers[0].resources", "resourcesPerNode"), ("spec", ""))
        )


_READERS: Mapping[Form, Callable[[Mapping[str, Any], str], Iterable[Template]]] = {
    Form.POD_TEMPLATE: _pod_template,
    Form.VOLCANO_JOB: _volcano_job,
    Form.WORKFLOW: _workflow,
    Form.POD_SPEC: _pod_spec,
    Form.SPARK_POD: _spark_pod,
    Form.TRAINER: _trainer,
}
