"""Devices that are requested where nothing reads the request: beside a container, at the level of the pod, or misspelt."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from webhook import names
from webhook.rules import wording

MAX_FIELDS = 20_000  # of one object that are looked at
MAX_DEPTH = 50
MAX_FOUND = 20

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
AMOUNTS = ("limits", "requests")

# What is beside the field `resources` of an object that is no container, and where the container is instead.
_BESIDE = {"model": "model", "containers": "containers[]", "template": "template.spec.containers[]"}
_METADATA = {"annotation": "annotations", "label": "labels"}


class Misplaced(NamedTuple):
    """A device where nothing reads it.

    Attributes:
        path: the field.
        detail: what stands there, and where to write it.
    """

    path: str
    detail: str


def misplaced(raw: Mapping[str, Any], resources: Collection[str]) -> Iterator[Misplaced]:
    """Look through a whole object, in the order of its fields.

    Args:
        raw: as people wrote it; the API server drops what it does not know.
        resources: the names that request devices.
    """
    left = MAX_FIELDS
    stack: list[tuple[str, Any, bool]] = [("", raw, False)]
    while stack:
        path, value, is_container = stack.pop()
        left -= 1
        if left < 0:
            return
        if isinstance(value, dict):
            yield from _in(value, path, resources, is_container=is_container)
            below = [(f"{path}.{key}" if path else str(key), each, False) for key, each in value.items()]
        elif isinstance(value, list):
            of_containers = path.endswith(CONTAINERS)
            below = [(f"{path}[{number}]", each, of_containers) for number, each in enumerate(value)]
        else:
            continue
        if path.count(".") < MAX_DEPTH:
            stack.extend(reversed(below))


def beside_containers(spec: Mapping[str, Any], path: str, resources: Collection[str]) -> Iterator[Misplaced]:
    """The field `resources` of an object that is no container: of a pod, of a Job, of KServe's predictor."""
    found = spec.get("resources")
    where = next((there for key, there in _BESIDE.items() if key in spec), "")
    if not where or not isinstance(found, dict):
        return
    for part in AMOUNTS:
        for name in _devices(found.get(part), resources):
            yield _misplaced(f"{path}.resources.{part}", name, f"{path}.{where}.resources.{part}")


def _in(value: Mapping[str, Any], path: str, resources: Collection[str], *, is_container: bool) -> Iterator[Misplaced]:
    if path == "metadata" or path.endswith(".metadata"):
        for misspelt, meant in _METADATA.items():
            for key in _devices(value.get(misspelt), {*resources, *names.CHOOSING_ANNOTATIONS}):
                yield _misplaced(f"{path}.{misspelt}", key, f"{path}.{meant}")
        return
    if is_container:
        for part in AMOUNTS:
            for name in _devices(value.get(part), resources):
                yield _misplaced(f"{path}.{part}", name, f"{path}.resources.{part}")
        for name in _devices(value.get("resources"), resources):
            yield _misplaced(f"{path}.resources", name, f"{path}.resources.limits")
    else:
        yield from beside_containers(value, path, resources)


def _devices(found: Any, resources: Collection[str]) -> list[str]:
    return [name for name in found if name in resources] if isinstance(found, dict) else []


def _misplaced(path: str, name: str, where: str) -> Misplaced:
    shown = wording.quoted(name)[1:-1]
    return Misplaced(f"{path}[{shown}]", f"{shown} stands in {path}, where nothing reads it; write it under {where}")
