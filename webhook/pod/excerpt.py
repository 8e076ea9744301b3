"""The part of a pod that rules read, for the audit log: enough to review it again, and no secret.

A review of the excerpt gives the findings of the review of the pod. Env values and arguments never enter, but for the words
that rules compare.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from webhook import names
from webhook.lenient import obj
from webhook.pod.environment import without_secrets
from webhook.pod.parallelism import parallel_options
from webhook.pod.view import SCHEDULING_GROUP, Container, PodView

Amounts = Mapping[str, Any]  # limits or requests

MAX_TEXT = 1024  # characters of an annotation

_LABELS = names.MINDCLUSTER_LABELS
_SPEC_FIELDS = ("schedulerName", "nodeName", "hostPID", "hostIPC")
_TOLERATION_FIELDS = frozenset({"key", "operator", "value", "effect"})
_WORKLOAD_ANNOTATIONS = (
    names.GROUP_MIN_MEMBER,
    names.QUEUE_NAME,
    names.KSERVE_GPU_TYPES,
    *sorted(names.CHOOSING_ANNOTATIONS),
)
_WORKLOAD_FIELDS = frozenset(  # that say how many pods run at a time, and how they are replaced
    {
        *("replicas", "minReplicas", "maxReplicas", "numOfHosts", "size", "enableInTreeAutoscaling", "suspend"),
        *("parallelism", "completions", "completionMode", "minAvailable", "elasticPolicy", "schedulingPolicy"),
        *("tasks", "name", "groupName", "dependsOn", "status", "partitionPolicy", "minPartitions", "partitionSize"),
        *("numProcPerNode", "rayStartParams", "num-gpus"),
        *("strategy", "type", "maxSurge", "maxUnavailable", "podManagementPolicy", "leaderTemplate", "queue"),
    }
)
_OF_OBJECTS = frozenset({"metadata", "selector"})  # whose keys their author chooses
_MAX_DEPTH = 12  # of a workload, above its templates
_ANNOTATION_DOMAINS = (
    *("volcano.sh/", "nvidia.com/", "hami.io/", "huawei.com/", names.CDI_PREFIX, names.GROUP_NAME),
    *(*names.NRI_DEVICES, *names.CRIO_DEVICES),
    *(
        "aliyun.com/gpu-",
        "tencent.com/vcuda-",
        "tke.cloud.tencent.com/",
        "gpu-fraction",
        "gpu-memory",
        "kai.scheduler/",
        "runai/",
        "runai-gpu-group",
        "pod-group-name",
        "received-resource-type",
        "koordinator.sh/gpu",
        "scheduling.koordinator.sh/",
    ),  # of other systems
)
_ENV_PREFIXES = ("CUDA_", "CGPU_", "NVIDIA_", "GPU_", "LD_", "ASCEND_", "NPU_", "ACTIVE_OOM_", "RECORD_KERNEL_")


def excerpt(
    pod: PodView, pick: Callable[[Amounts], Amounts], rule_labels: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Take from a pod what rules read.

    Args:
        pod: the pod.
        pick: leaves the device resources of some limits or requests.
        rule_labels: the keys of the labels that the scheduler's rules read.

    Returns:
        A pod with the fields that rules read.
    """
    spec = _only(pod.spec, _SPEC_FIELDS)
    if group := pod.scheduling_group:
        spec[SCHEDULING_GROUP] = {"podGroupName": group[:MAX_TEXT]}
    if "tolerations" in pod.spec:
        spec["tolerations"] = [
            {
                field: value
                for field, value in toleration.items()
                if field in _TOLERATION_FIELDS and isinstance(value, str) and len(value) <= MAX_TEXT
            }
            for _, toleration in pod.tolerations()
        ]
    for containers in (pod.init_containers, pod.containers, pod.ephemeral_containers):
        if containers:
            spec[containers[0].kind] = [_container(container, pick) for container in containers]
    if "volumes" in pod.spec:
        spec["volumes"] = _trimmed([_volume(volume) for _, volume in pod.volumes()])
    if isinstance(beside := pod.spec.get("resources"), dict):  # of the pod itself
        parts = {part: pick(obj(beside, part)) for part in ("limits", "requests")}
        spec |= (
            {"resources": found} if (found := {part: _scalars(some) for part, some in parts.items() if some}) else {}
        )
    selector = pod.selector
    if selector is not None:
        spec |= selector.json()
    kept: dict[str, Any] = {"spec": spec}
    if pod.annotations and (annotations := read_annotations(pod.annotations)):
        kept["metadata"] = {"annotations": annotations}
    if pod.labels and (labels := _labels(pod.labels, rule_labels)):
        kept.setdefault("metadata", {})["labels"] = labels
    return kept


def excerpt_workload(raw: Mapping[str, Any], templates: Collection[str] = ()) -> dict[str, Any]:
    """Take from a workload what rules read of it, without the pod templates at these paths."""
    kept: dict[str, Any] = {}
    if name := _only(obj(raw, "metadata"), ("name",)):
        kept["metadata"] = name
    if annotations := _only(obj(raw, "metadata", "annotations"), _WORKLOAD_ANNOTATIONS):
        kept.setdefault("metadata", {})["annotations"] = annotations
    if isinstance(raw.get("spec"), dict):
        kept["spec"] = _above(raw["spec"], "spec", _marked(templates))
    return kept


def _marked(templates: Collection[str]) -> dict[str, bool]:
    """The paths of templates, and with False those of all that holds one: there a group has a role, whatever else it says."""
    holders = {template[: step.start()]: False for template in templates for step in re.finditer(r"[.\[]", template)}
    return holders | dict.fromkeys(templates, True)


def _above(value: Any, path: str, marked: Mapping[str, bool], depth: int = 0, *, read: bool = True) -> Any:
    """Of a part of a workload, the fields that rules read, with their places; nothing of its pod templates."""
    if not isinstance(value, dict | list):
        return _scalar(value) if read else None
    if depth > _MAX_DEPTH:
        return {}
    if "containers" in value or (depth and marked.get(path)):  # a template, which may hold another one
        held = {key: f"{path}.{key}" for key in value if f"{path}.{key}" in marked}
        return {key: _above(value[key], inner, marked, depth + 1, read=False) for key, inner in held.items()}
    if isinstance(value, list):
        return [_above(each, f"{path}[{at}]", marked, depth + 1, read=read) for at, each in enumerate(value)]
    kept = {
        key: _above(each, f"{path}.{key}", marked, depth + 1, read=key in _WORKLOAD_FIELDS)
        for key, each in value.items()
        if key not in _OF_OBJECTS
    }
    return {
        key: each
        for key, each in kept.items()
        if key in _WORKLOAD_FIELDS or f"{path}.{key}" in marked or (each and any(each))
    }


def read_annotations(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations that rules read, cut."""
    return {
        key: value[:MAX_TEXT] if isinstance(value, str) else None
        for key, value in annotations.items()
        if any(domain in key for domain in _ANNOTATION_DOMAINS) or key in names.RESERVED_ANNOTATIONS
    }


def _labels(labels: Mapping[str, Any], rule_labels: frozenset[str]) -> dict[str, Any]:
    """The labels that rules read; a value of another type is wrong whatever it is, so it is kept as a wrong text."""
    found = {
        key: value
        for key, value in labels.items()
        if value is not None and (key in _LABELS or key in rule_labels or key.startswith(_ANNOTATION_DOMAINS))
    }
    return {key: value[:MAX_TEXT] if isinstance(value, str) else "" for key, value in found.items()}


def _container(container: Container, pick: Callable[[Amounts], Amounts]) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": container.name[:MAX_TEXT]}
    raw = container.raw
    limits, requests = pick(container.limits), pick(container.requests)
    if limits or requests:
        parts = raw["resources"]
        kept["resources"] = resources = {}
        # A part that is there though nothing of it is kept still decides where a patch puts its values.
        if parts.get("limits") is not None:
            resources["limits"] = _scalars(limits)
        if parts.get("requests") is not None:
            resources["requests"] = _scalars(requests)
    if "restartPolicy" in raw:
        kept["restartPolicy"] = _scalar(raw["restartPolicy"])
    if "env" in raw and (env := _trimmed([_env(variable) for _, variable in container.entries("env")])):
        kept["env"] = env
    for field, part in (("envFrom", "prefix"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        if field in raw:
            kept[field] = [_only(entry, (part,)) for _, entry in container.entries(field)]
    kept |= {part: options for part in ("args", "command") if (options := parallel_options(raw, part))}
    if "securityContext" in raw and (security := _security(container.security_context())):
        kept["securityContext"] = security
    return kept


def _env(variable: Mapping[str, Any]) -> dict[str, Any]:
    name = variable.get("name")
    if not isinstance(name, str) or not name.startswith(_ENV_PREFIXES):
        return {}
    return {"name": name[:MAX_TEXT], "value": without_secrets(variable)}


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    host = volume.get("hostPath")
    if not isinstance(host, dict):
        return {}
    return {"name": _scalar(volume.get("name")), "hostPath": {"path": _scalar(host.get("path"))}}


def _security(context: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if context.get("privileged") is True:
        kept["privileged"] = True
    capabilities = context.get("capabilities")
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    if isinstance(added, list) and added:
        kept["capabilities"] = {"add": [_scalar(name) for name in added]}
    return kept


def _only(source: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {field: _scalar(source[field]) for field in fields if field in source}


def _scalars(amounts: Amounts) -> Amounts:
    for amount in amounts.values():
        if type(amount) is not str or len(amount) > MAX_TEXT:
            return {name: _scalar(amount) for name, amount in amounts.items()}
    return amounts  # as nearly always


def _scalar(value: Any) -> Any:
    """A JSON scalar as it is, cut; anything else as nothing: hostile nesting stays out of the log."""
    if isinstance(value, str):
        return value[:MAX_TEXT]
    return value if isinstance(value, (bool, int, float)) else None


def _trimmed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the empty entries at the end; those before keep the indexes of the others right."""
    while entries and not entries[-1]:
        entries.pop()
    return entries
