"""Who owns an object: its controller, and the workload above that where its name tells it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.lenient import objs, text
from webhook.pod.view import mapping
from webhook.pod.workload_kinds import VCJOB

_HASH = "pod-template-hash"


def kind_and_name(api_version: str, kind: str, name: str) -> str:
    """An object as kubectl takes it: `Deployment/web`; a Job of Volcano is `vcjob/train`, as `Job/train` is Kubernetes' own."""
    is_volcano_job = (api_version.rpartition("/")[0], kind) == VCJOB
    return f"{'vcjob' if is_volcano_job else kind}/{name}"


class Subject(NamedTuple):
    """The object under which findings are reported: a workload, or a pod that belongs to none.

    Attributes:
        namespace, api_version, kind, name: of the object.
        uid: empty where it is not known.
    """

    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def kind_and_name(self) -> str:
        """As kubectl takes it."""
        return kind_and_name(self.api_version, self.kind, self.name)


def subject_of(raw: Mapping[str, Any]) -> Subject:
    """The controller of a pod, or the object itself.

    Raises:
        Malformed: metadata is no object.
    """
    metadata = mapping(raw, "metadata", "")
    namespace = text(metadata, "namespace") or "default"
    owner = controller_of(raw) if raw.get("kind") == "Pod" else None
    if owner is None:
        name = text(metadata, "name") or text(metadata, "generateName")
        return Subject(namespace, text(raw, "apiVersion"), text(raw, "kind"), name, text(metadata, "uid"))
    version, kind, name = text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name")
    suffix = f"-{text(mapping(metadata, 'labels', 'metadata.'), _HASH)}"
    if kind == "ReplicaSet" and suffix != "-" and name.endswith(suffix):
        return Subject(namespace, version, "Deployment", name.removesuffix(suffix), "")  # as Deployments name them
    return Subject(namespace, version, kind, name, text(owner, "uid"))


def controller_of(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that created an object; None if there is none.

    Raises:
        Malformed: metadata is no object.
    """
    owners = objs(mapping(raw, "metadata", ""), "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), None)
