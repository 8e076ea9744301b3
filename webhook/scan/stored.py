"""What the cluster adds to an object, taken off again: whose it is, whether it still runs, what its author wrote."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.devices.asks import DevicePod
from webhook.pod.view import PodView, mapping
from webhook.review import Snapshot
from webhook.rules.validate.reserved_annotation import is_reserved

_FINISHED = ("Succeeded", "Failed")
_HASH = "pod-template-hash"


class Subject(NamedTuple):
    """The object under which findings are told: a workload, or a pod that belongs to none.

    Attributes:
        namespace, api_version, kind, name: of the object.
        uid: empty where it is not known.
    """

    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str


def subject_of(raw: Mapping[str, Any]) -> Subject:
    """The controller of a pod, or the object itself.

    Raises:
        Malformed: metadata is no object.
    """
    metadata = mapping(raw, "metadata", "")
    namespace = _text(metadata, "namespace") or "default"
    owner = controller_of(raw) if raw.get("kind") == "Pod" else None
    if owner is None:
        name = _text(metadata, "name") or _text(metadata, "generateName")
        return Subject(namespace, _text(raw, "apiVersion"), _text(raw, "kind"), name, _text(metadata, "uid"))
    version, kind, name = _text(owner, "apiVersion"), _text(owner, "kind"), _text(owner, "name")
    suffix = f"-{_text(mapping(metadata, 'labels', 'metadata.'), _HASH)}"
    if kind == "ReplicaSet" and suffix != "-" and name.endswith(suffix):
        return Subject(namespace, version, "Deployment", name.removesuffix(suffix), "")  # as Deployments name them
    return Subject(namespace, version, kind, name, _text(owner, "uid"))


def controller_of(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that made an object; None if there is none.

    Raises:
        Malformed: metadata is no object.
    """
    owners = mapping(raw, "metadata", "").get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return owner
    return None


def is_finished(raw: Mapping[str, Any]) -> bool:
    """Tell whether a pod will never run again."""
    status = raw.get("status")
    return isinstance(status, dict) and status.get("phase") in _FINISHED


def as_written(raw: dict[str, Any], snapshot: Snapshot) -> PodView:
    """A pod without what schedulers wrote when they placed it: the node, and the assignment of devices.

    A pod that names a scheduler of devices and yet has no assignment keeps its node: its author has preset it. A pod that
    asks for no device keeps its annotations: no scheduler would have written them.

    Raises:
        Malformed: a field that rules read has the wrong type.
    """
    view = PodView(raw)
    if not view.node_name or not DevicePod(view, snapshot.config).asked:
        return view
    own = {key: value for key, value in view.annotations.items() if not is_reserved(key)}
    assigned = len(own) < len(view.annotations)
    if not assigned and view.scheduler in snapshot.settings.scheduler_names:
        return view
    spec = {key: value for key, value in view.spec.items() if key != "nodeName"}
    return PodView(raw | {"metadata": {**view.metadata, "annotations": own}, "spec": spec})


def _text(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
