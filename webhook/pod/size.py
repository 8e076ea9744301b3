"""How much of a pod is reviewed: more than any pod that runs has, and little enough for a quick answer."""

from collections.abc import Mapping
from typing import Any

from webhook.lenient import obj
from webhook.pod.view import EPHEMERAL, INIT, REGULAR

MAX_CONTAINERS = 1_000  # of all kinds
MAX_TEMPLATES = 500  # of a workload
MAX_LOOKS = 50_000  # at kinds of nodes, by the templates that choose their cards or nodes differently: half a second
MAX_ENTRIES = 20_000  # variables, mounts, resources, annotations and all else that rules look at one by one


def is_surely_small(pod: Mapping[str, Any], size: int) -> bool:
    """Whether a pod is certainly within the limits, found without counting; if False, it must be counted.

    Args:
        pod: the pod.
        size: bytes of the body that held it; 0 if that is not known. A container takes three bytes, any other entry two.
    """
    if 0 < size < 3 * MAX_CONTAINERS:
        return True
    if not 0 < size < 2 * MAX_ENTRIES:
        return False
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return True
    containers = spec.get(REGULAR)
    few = isinstance(containers, list) and len(containers) <= MAX_CONTAINERS
    return few and INIT not in spec and EPHEMERAL not in spec


class Size:
    """Counts what rules look at, of one pod or of all pods of a request."""

    __slots__ = ("_containers", "_entries")

    def __init__(self) -> None:
        self._containers = self._entries = 0

    def add(self, pod: Mapping[str, Any]) -> str:
        """Count a pod. Wrong shapes count as nothing: reading them refuses the pod.

        Returns:
            What is too much, for people; empty if nothing is.
        """
        spec, metadata = obj(pod, "spec"), obj(pod, "metadata")
        lists = [containers for kind in (REGULAR, INIT, EPHEMERAL) if isinstance(containers := spec.get(kind), list)]
        self._containers += sum(map(len, lists))
        if self._containers > MAX_CONTAINERS:
            return f"{self._containers} containers are too many, at most {MAX_CONTAINERS} are reviewed"
        entries = _entries(metadata, ("annotations", "labels")) + _entries(spec, ("tolerations", "volumes"))
        for containers in lists:
            for container in containers:
                if isinstance(container, dict):
                    entries += _entries(container, ("env", "envFrom", "volumeMounts", "volumeDevices"))
                    if "resources" in container:
                        entries += _entries(obj(container, "resources"), ("limits", "requests"))
                    if "securityContext" in container:
                        entries += _entries(obj(container, "securityContext", "capabilities"), ("add",))
        self._entries += entries
        if self._entries > MAX_ENTRIES:
            return (
                f"{self._entries} environment variables, mounts, volumes, resources, annotations and the like are too many, "
                f"at most {MAX_ENTRIES} are reviewed"
            )
        return ""


def _entries(parent: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    count = 0
    for key in keys:
        entries = parent.get(key)
        if isinstance(entries, (list, dict)):
            count += len(entries)
    return count
