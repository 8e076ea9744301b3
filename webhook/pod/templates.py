"""Where the workloads of Kubernetes and Volcano keep their pod templates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.pod.view import mapping, objects

VCJOB_GROUP = "batch.volcano.sh"

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
