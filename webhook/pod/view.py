"""Reading a pod that is still the JSON that came in.

Unknown fields are ignored; a known field of the wrong shape raises `Malformed`, because a pod that cannot
be read cannot be judged either.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.errors import Malformed
from webhook.lenient import text
from webhook.pod.fields import OptionalFields
from webhook.pod.patch import REMOVE, Edit, Path
from webhook.pod.selectors import NodeSelector, read_selector

REGULAR = "containers"
INIT = "initContainers"
EPHEMERAL = "ephemeralContainers"

MAX_ANNOTATION = 256 << 10  # the API server refuses more, too, but only after its mutating webhooks

_EMPTY: Mapping[str, Any] = {}
_UNREAD = NodeSelector()  # of no pod: a pod that demands nothing has None


def mapping(parent: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    """The object under a key; empty if absent or null."""
    value = parent.get(key)
    if isinstance(value, dict):
        return value
    if value is None:
        return _EMPTY
    raise Malformed(f"{path}{key}", "an object", value)


def sequence(parent: Mapping[str, Any], key: str, path: str) -> list[Any]:
    """The list under a key; empty if absent or null."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{path}{key}", "a list", value)
    return value


def objects(parent: Mapping[str, Any], key: str, path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of the list under a key, with their indexes."""
    for index, item in enumerate(sequence(parent, key, path)):
        if not isinstance(item, dict):
            raise Malformed(f"{path}{key}[{index}]", "an object", item)
        yield index, item


class Container:
    """One container of a pod, of any of the three lists.

    Attributes:
        kind: the list it is in: `containers`, `initContainers` or `ephemeralContainers`.
        index: its place in that list.
        name: its name, for people; never trusted for anything else.
        limits, requests: resource name to quantity, as written.
    """

    __slots__ = ("index", "kind", "limits", "name", "raw", "requests")

    def __init__(self, kind: str, index: int, raw: Mapping[str, Any]) -> None:
        self.kind = kind
        self.index = index
        self.raw = raw
        if not isinstance(raw, dict):
            raise Malformed(self.where, "an object", raw)
        name = raw.get("name")
        self.name = name if isinstance(name, str) else ""
        resources = raw.get("resources")
        if resources is not None:
            if not isinstance(resources, dict):
                raise Malformed(f"{self.where}.resources", "an object", resources)
            limits, requests = resources.get("limits"), resources.get("requests")
            self.limits = _EMPTY if limits is None else limits
            self.requests = _EMPTY if requests is None else requests
            if not isinstance(self.limits, dict) or not isinstance(self.requests, dict):
                self._refuse()
        else:
            self.limits = self.requests = _EMPTY

    @property
    def where(self) -> str:
        """The container's field path, for people: `spec.containers[0]`."""
        return f"spec.{self.kind}[{self.index}]"

    @property
    def path(self) -> Path:
        """The container's path for edits."""
        return ("spec", self.kind, self.index)

    def has(self, resource: str) -> bool:
        """Whether a resource is in limits or requests."""
        return resource in self.limits or resource in self.requests

    def quantity(self, resource: str) -> Any:
        """What is written for a resource: in limits, else in requests; None if nowhere."""
        value = self.limits.get(resource)
        return self.requests.get(resource) if value is None else value

    def entries(self, field: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The objects of a list with their indexes: `env`, `envFrom`, `volumeMounts`, `volumeDevices`."""
        return objects(self.raw, field, f"{self.where}.") if field in self.raw else iter(())

    def security_context(self) -> Mapping[str, Any]:
        """The container's own security context; empty if absent."""
        return mapping(self.raw, "securityContext", f"{self.where}.")

    def _refuse(self) -> None:
        bad = "limits" if not isinstance(self.limits, dict) else "requests"
        raise Malformed(f"{self.where}.resources.{bad}", "an object", getattr(self, bad))


def set_amount(container: Container, resource: str, amount: int) -> Iterator[Edit]:
    """Set a resource in limits and requests: the API server refuses extended resources where they differ."""
    for part in ("limits", "requests"):
        yield Edit((*container.path, "resources", part, resource), str(amount))


def remove_amount(container: Container, resource: str) -> Iterator[Edit]:
    """Remove a resource from limits and requests."""
    for part, present in (("limits", container.limits), ("requests", container.requests)):
        if resource in present:
            yield Edit((*container.path, "resources", part, resource), REMOVE)


class PodView:
    """Reads a pod's JSON.

    Attributes:
        raw: the object as it came in.
        metadata, spec: its two parts.
        annotations, labels: empty if absent.
        containers, init_containers, ephemeral_containers: in the order of the specification.
    """

    __slots__ = (
        "_selector", "annotations", "containers", "ephemeral_containers", "init_containers", "labels", "metadata",
        "raw", "spec",
    )  # fmt: skip

    def __init__(self, raw: dict[str, Any]) -> None:
        """Read a pod.

        Raises:
            Malformed: a field that rules read has the wrong JSON type.
        """
        self.raw = raw
        self.metadata = mapping(raw, "metadata", "")
        self.spec = mapping(raw, "spec", "")
        self.annotations = mapping(self.metadata, "annotations", "metadata.")
        self.labels = mapping(self.metadata, "labels", "metadata.")
        self.containers = self._list(REGULAR)
        self.init_containers = self._list(INIT)
        self.ephemeral_containers = self._list(EPHEMERAL)
        self._selector: NodeSelector | None = _UNREAD

    @property
    def name(self) -> str:
        """The pod's name, or the prefix of the name that it will get."""
        name = self.metadata.get("name") or self.metadata.get("generateName")
        return name if isinstance(name, str) else ""

    @property
    def scheduler(self) -> str:
        """The schedulerName, empty if absent."""
        return self._text("schedulerName")

    @property
    def node_name(self) -> str:
        """The nodeName, empty if absent."""
        return self._text("nodeName")

    @property
    def scheduling_group(self) -> str:
        """The PodGroup of Kubernetes that the pod names, which is not Volcano's; empty if absent."""
        return text(self.spec, "schedulingGroup", "podGroupName")

    @property
    def selector(self) -> NodeSelector | None:
        """What the pod demands of its node's labels; None if it demands nothing, or if that cannot be read."""
        if self._selector is _UNREAD:
            self._selector = read_selector(self.spec)
        return self._selector

    def every_container(self) -> tuple[Container, ...]:
        """All containers: init, regular, ephemeral."""
        return self.init_containers + self.containers + self.ephemeral_containers

    def tolerations(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return objects(self.spec, "tolerations", "spec.")

    def volumes(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return objects(self.spec, "volumes", "spec.")

    def host_paths(self) -> Iterator[tuple[int, Any, str]]:
        """The volumes that are paths of the host: index, name as written, path."""
        for index, volume in self.volumes() if "volumes" in self.spec else ():
            if "hostPath" in volume:
                path = mapping(volume, "hostPath", f"spec.volumes[{index}].").get("path")
                if isinstance(path, str):
                    yield index, volume.get("name"), path

    def annotation(self, key: str) -> str | None:
        """An annotation's text; None if absent."""
        value = self.annotations.get(key)
        if value is None or (isinstance(value, str) and len(value) <= MAX_ANNOTATION):
            return value
        path = f"metadata.annotations[{key}]"
        if isinstance(value, str):
            raise Malformed(path, "a string of at most 256 KiB", value, "a longer one")
        raise Malformed(path, "a string in quotes", value)

    def _list(self, kind: str) -> tuple[Container, ...]:
        containers = sequence(self.spec, kind, "spec.")
        return tuple([Container(kind, index, raw) for index, raw in enumerate(containers)]) if containers else ()

    def _text(self, key: str) -> str:
        value = self.spec.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Malformed(f"spec.{key}", "a string", value)
        return value


def fields_among(optional: OptionalFields, pod: PodView) -> set[str]:
    """Those of some fields that a pod has, in its metadata, its specification or any of its containers."""
    fields = {*optional.spec.intersection(pod.spec)}
    for container in pod.every_container():
        if not optional.containers.isdisjoint(container.raw):
            fields |= optional.containers.intersection(container.raw)
    if pod.annotations:
        fields.add("annotations")
    if pod.labels:
        fields.add("labels")
    return fields
