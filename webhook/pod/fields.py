"""The fields of a pod that a rule reads, as data: where they are, as people write it.

spec.hostPID                                a field
spec.volumes[*].hostPath.path               of every entry of a list
spec.tolerations[*]                         every entry, also one of which nothing else is read
containers[*].args                          of every container, of all three kinds
containers[*].env[CUDA_*]                   variables by their names; of their values what is no secret
metadata.annotations[*.cdi.k8s.io/*]        annotations by their keys, and in the same way labels
metadata.labels[<resource>]                 keys that are names of device resources
workload.replicas                           of a workload: wherever it is above the pod templates
workload.metadata.annotations[volcano.sh/*] a workload's own annotations
policy.trustedUsers, nodes, queues          what is no part of the object: for people
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

RESOURCE = "<resource>"  # in the place of a key
EACH = "[*]"
_OPTIONAL = re.compile(r"(metadata|spec|containers\[\*\])\.(\w+)")
_ROOTS = ("metadata", "spec", "containers[*]")
_KEY = re.compile(r"(.*)\[(.+)\]")
_STEP = re.compile(r"\[\*\]|[^.\[\]]+")


class FieldGroup(NamedTuple):
    """Fields that are read together.

    Attributes:
        what: they are, for people.
        paths: of the fields.
    """

    what: str
    paths: frozenset[str]


Reads = Iterable[str | FieldGroup]


def annotations(*keys: str) -> frozenset[str]:
    """The paths of annotations; each key may begin with `*`, or end with it."""
    return frozenset(f"metadata.annotations[{key}]" for key in keys)


def labels(*keys: str) -> frozenset[str]:
    """The paths of labels, likewise."""
    return frozenset(f"metadata.labels[{key}]" for key in keys)


def variables(*names: str) -> frozenset[str]:
    """The paths of environment variables, likewise."""
    return frozenset(f"containers[*].env[{name}]" for name in names)


def paths_of(reads: Reads) -> Iterator[str]:
    """The paths, one by one."""
    for each in reads:
        if isinstance(each, FieldGroup):
            yield from each.paths
        else:
            yield each


class OptionalFields(NamedTuple):
    """Fields that many pods do not have. Rules that read nothing else are left out for these pods.

    Attributes:
        metadata, spec: of a pod.
        containers: of any of its containers.
    """

    metadata: frozenset[str]
    spec: frozenset[str]
    containers: frozenset[str]


def optional_fields(paths: Iterable[str]) -> OptionalFields:
    """The fields that a pod, or one of its containers, has if there is something at one of these paths."""
    optional = [match.groups() for match in map(_OPTIONAL.match, paths) if match is not None]
    return OptionalFields(*[frozenset([name for root, name in optional if root == part]) for part in _ROOTS])


class Keys:
    """Keys of annotations or labels, or names of variables, whatever their case."""

    def __init__(self, patterns: Iterable[str]) -> None:
        lowered = {pattern.lower() for pattern in patterns}
        self.exact = frozenset(pattern for pattern in lowered if "*" not in pattern)
        self._starts = tuple(sorted(pattern[:-1] for pattern in lowered if "*" in pattern and pattern[0] != "*"))
        self._parts = [pattern[1:-1] for pattern in sorted(lowered) if pattern[0] == "*"]

    def __contains__(self, key: str) -> bool:
        """Whether one of the patterns is the key's."""
        lower = key.lower()
        return lower in self.exact or lower.startswith(self._starts) or any([part in lower for part in self._parts])


def place_and_key(path: str) -> tuple[str, str]:
    """A path without the key at its end, and the key: empty if it has none, or any."""
    match = _KEY.fullmatch(path)
    return (path, "") if match is None or match[2] == "*" else (match[1], match[2])


def keys_at(place: str, paths: Iterable[str]) -> Keys:
    """The keys of the paths that lead to a place: of `metadata.labels[team]`, to `metadata.labels`."""
    places = map(place_and_key, paths)
    return Keys([key for where, key in places if key and where == place])


class Tree(dict[str, "Tree"]):
    """Fields below a field, by name; `[*]` are the entries of a list.

    Attributes:
        is_read: the field itself is read, whatever is below.
    """

    is_read = False


def tree_of(root: str, paths: Iterable[str]) -> Tree:
    """The fields below a root, such as `spec`."""
    tree = Tree()
    for path in paths:
        if path.startswith(f"{root}."):
            here = tree
            for step in _STEP.findall(place_and_key(path)[0].removeprefix(root)):
                here = here.setdefault(step, Tree())
            here.is_read = True
    return tree
