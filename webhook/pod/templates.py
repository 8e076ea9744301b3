"""Where the workloads of Kubernetes and Volcano keep their pod templates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.pod.view import mapping, objects

VCJOB_GROUP = "batch.volcano.sh"
KUBERNETES_GROUPS = frozenset({"", "apps", "batch"})  # of the workloads of Kubernetes itself

WORKLOADS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("", "ReplicationController"),
        ("", "PodTemplate"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        (VCJOB_GROUP, "Job"),
    }
)


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template.

    Attributes:
        path: where it stands: `spec.template`.
        pod: the pod that it would give.
    """

    path: str
    pod: dict[str, Any]


def changed_templates(kind: str, raw: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Template]:
    """The templates of a workload that are new, or differ from the old object's.

    Raises:
        Malformed: a field on the way does not have its kind's shape.
    """
    before = {template.path: template.pod for template in _templates(kind, old)} if old else {}
    return [template for template in _templates(kind, raw) if before.get(template.path) != template.pod]


def holds_pods(raw: Mapping[str, Any]) -> bool:
    """Tell whether an object of an unknown kind seems to describe pods.

    It does if it holds a container somewhere outside of its status: an entry of `containers`, a `container` with an image,
    or `resources` with an extended resource.
    """
    stack: list[Any] = [value for key, value in raw.items() if key != "status"]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(here)
        elif isinstance(here, dict):
            if _holds_container(here):
                return True
            stack.extend(here.values())
    return False


def _holds_container(raw: Mapping[str, Any]) -> bool:
    several, one, resources = raw.get("containers"), raw.get("container"), raw.get("resources")
    if isinstance(several, list) and any(isinstance(each, dict) for each in several):
        return True
    if isinstance(one, dict) and "image" in one:
        return True
    amounts = [resources.get(key) for key in ("limits", "requests")] if isinstance(resources, dict) else []
    return any("/" in name for each in amounts if isinstance(each, dict) for name in each)


def _templates(kind: str, raw: Mapping[str, Any]) -> Iterator[Template]:
    if kind == "PodTemplate":
        yield _template(raw, "template", "")
        return
    spec = mapping(raw, "spec", "")
    if kind == "CronJob":
        job = mapping(mapping(spec, "jobTemplate", "spec."), "spec", "spec.jobTemplate.")
        yield _template(job, "template", "spec.jobTemplate.spec.")
    elif "tasks" in spec:  # Volcano's Job; its schedulerName holds for tasks that name none
        scheduler = spec.get("schedulerName")
        for index, task in objects(spec, "tasks", "spec."):
            yield _template(task, "template", f"spec.tasks[{index}].", scheduler)
    elif "template" in spec:
        yield _template(spec, "template", "spec.")


def _template(parent: Mapping[str, Any], key: str, where: str, scheduler: object = None) -> Template:
    raw = mapping(parent, key, where)
    spec = dict(mapping(raw, "spec", f"{where}{key}."))
    if scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = scheduler
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": dict(mapping(raw, "metadata", f"{where}{key}.")),
        "spec": spec,
    }
    return Template(f"{where}{key}", pod)
