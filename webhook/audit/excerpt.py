"""The part of a pod that rules read, for the audit log: enough to review it again, and no secret.

A review of the excerpt gives the findings of the review of the pod. Env values and arguments never enter, but for the words
that rules compare.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from webhook.lenient import obj
from webhook.pod.environment import without_secrets
from webhook.pod.fields import EACH, RESOURCE, Keys, Tree, keys_at, paths_of, tree_of
from webhook.pod.view import EPHEMERAL, INIT, REGULAR, Container, PodView
from webhook.rules.registry import RULES
from webhook.rules.validate.parallelism_mismatch import parallel_options

Amounts = Mapping[str, Any]  # limits or requests

MAX_TEXT = 1024  # characters of an annotation

_AMOUNTS = ("limits", "requests")
_SELECTORS = ("nodeSelector", "affinity")  # which are kept as they are read
_OF_OBJECTS = frozenset({"metadata", "selector"})  # whose keys their author chooses
_EMPTY: tuple[Any, ...] = (None, {}, [])
_MAX_DEPTH = 12  # of a workload, above its templates


class Resources(Protocol):
    """The resources that rules read."""

    @property
    def exact(self) -> Collection[str]:
        """Their names, as far as they are known."""

    def pick(self, amounts: Amounts, /) -> Amounts:
        """Leave these of some limits or requests."""


class Excerpt:
    """Takes some fields of pods and workloads.

    Args:
        fields: their paths; see `webhook.pod.fields`.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        paths = sorted(fields)
        self._annotations, self._labels = (keys_at(f"metadata.{part}", paths) for part in ("annotations", "labels"))
        self._variables = keys_at("containers[*].env", paths)
        self._container = tree_of("containers[*]", paths)
        self._spec = tree_of("spec", paths)
        self._selects = not self._spec.keys().isdisjoint(_SELECTORS)
        self._beside = self._spec.pop("resources", None) is not None
        for other in (*_SELECTORS, REGULAR, INIT, EPHEMERAL):
            self._spec.pop(other, None)
        self._workload = Keys(tree_of("workload", paths).keys() - {"metadata"})
        self._of_workload = {part: keys_at(f"workload.metadata.{part}", paths) for part in ("annotations", "labels")}

    def of_pod(self, pod: PodView, resources: Resources, rule_labels: Collection[str] = ()) -> dict[str, Any]:
        """The fields of a pod.

        Args:
            pod: the pod.
            resources: those that are kept.
            rule_labels: the keys of the labels that the scheduler's rules read.
        """
        spec = _fields(pod.spec, self._spec)
        for containers in (pod.init_containers, pod.containers, pod.ephemeral_containers):
            if containers:
                spec[containers[0].kind] = [self._of_container(container, resources) for container in containers]
        if self._beside and isinstance(beside := pod.spec.get("resources"), dict):  # of the pod itself
            parts = {part: resources.pick(obj(beside, part)) for part in _AMOUNTS}
            if amounts := {part: _scalars(some) for part, some in parts.items() if some}:
                spec["resources"] = amounts
        if self._selects and pod.selector is not None:
            spec |= pod.selector.json()
        kept: dict[str, Any] = {"spec": spec}
        metadata = {
            "annotations": _texts(pod.annotations, self._annotations, resources),
            "labels": _texts(pod.labels, self._labels, resources, rule_labels),
        }
        if some := {part: texts for part, texts in metadata.items() if texts}:
            kept["metadata"] = some
        return kept

    def of_workload(self, raw: Mapping[str, Any], templates: Collection[str] = ()) -> dict[str, Any]:
        """The fields of a workload, without the pod templates at these paths."""
        metadata = obj(raw, "metadata")
        own = {"name": _scalar(metadata["name"])} if "name" in metadata else {}
        for part, keys in self._of_workload.items():
            if kept_keys := {key: _scalar(value) for key, value in obj(metadata, part).items() if key in keys}:
                own[part] = kept_keys
        kept: dict[str, Any] = {"metadata": own} if own else {}
        if isinstance(raw.get("spec"), dict):
            kept["spec"] = self._above(raw["spec"], "spec", _marked(templates), read=False)
        return kept

    def _above(self, value: Any, path: str, marked: Mapping[str, bool], depth: int = 0, *, read: bool = True) -> Any:
        """Of a part of a workload, the fields that rules read, with their places; nothing of its pod templates."""
        if not isinstance(value, dict | list):
            return _scalar(value) if read else None
        if depth > _MAX_DEPTH:
            return {}
        if "containers" in value or (depth and marked.get(path)):  # a template, which may hold another one
            held = {key: f"{path}.{key}" for key in value if key in self._workload or f"{path}.{key}" in marked}
            return {
                key: self._above(value[key], inner, marked, depth + 1, read=key in self._workload)
                for key, inner in held.items()
            }
        if isinstance(value, list):
            return [self._above(each, f"{path}[{at}]", marked, depth + 1, read=read) for at, each in enumerate(value)]
        kept = {}
        for key, each in value.items():
            inner, named = f"{path}.{key}", key in self._workload
            if key not in _OF_OBJECTS:
                is_read = named or (read and isinstance(each, int))  # also numbers by names
                part = self._above(each, inner, marked, depth + 1, read=is_read)
                if is_read or inner in marked or (isinstance(part, dict | list) and any(part)):
                    kept[key] = part
        return kept

    def _of_container(self, container: Container, resources: Resources) -> dict[str, Any]:
        kept: dict[str, Any] = {"name": container.name[:MAX_TEXT]}
        raw = container.raw
        for field, below in self._container.items():
            if field not in raw:
                continue
            part: Any
            if field == "resources":
                part = _resources(container, resources)
            elif field == "env":
                part = _trimmed([self._of_variable(variable) for _, variable in container.entries(field)])
            elif field in ("args", "command"):
                part = parallel_options(raw, field)
            else:
                part = _part(raw[field], below)
            if part not in _EMPTY:
                kept[field] = part
        return kept

    def _of_variable(self, variable: Mapping[str, Any]) -> dict[str, Any]:
        name = variable.get("name")
        if not isinstance(name, str) or name not in self._variables:
            return {}
        return {"name": name[:MAX_TEXT], **without_secrets(variable)}


def _fields(value: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    """The fields of an object that are in a tree; nothing of those that are empty."""
    parts = {field: _part(value[field], below) for field, below in tree.items() if field in value}
    return {field: part for field, part in parts.items() if part not in _EMPTY}


def _part(value: Any, tree: Tree) -> Any:
    """Of a value, the fields in a tree; a value of another type is wrong whatever it is, so it is kept as a wrong text."""
    if not tree or value is None:
        return _scalar(value)
    entries = tree.get(EACH)
    if entries is None:
        return _fields(value, tree) if isinstance(value, dict) else ""
    if not isinstance(value, list):
        return ""
    parts = [_part(each, entries) for each in value]
    return parts if entries.is_read else _trimmed([{} if _is_bare(part) else part for part in parts])


def _is_bare(entry: Any) -> bool:
    """Whether nothing is left of an entry but its name."""
    return isinstance(entry, dict) and entry.keys() <= {"name"}


def _texts(texts: Mapping[str, Any], keys: Keys, resources: Resources, more: Collection[str] = ()) -> dict[str, Any]:
    """The annotations or labels with some keys, cut; a value of another type is kept as a wrong text."""
    if not texts:
        return {}
    named = resources.exact if RESOURCE in keys.exact else ()
    return {
        key: value[:MAX_TEXT] if isinstance(value, str) else ""
        for key, value in texts.items()
        if value is not None and (key in keys or key in more or key in named)
    }


def _resources(container: Container, resources: Resources) -> dict[str, Any]:
    kept = {"limits": resources.pick(container.limits), "requests": resources.pick(container.requests)}
    if not any(kept.values()):
        return {}
    # A part that is there though nothing of it is kept still decides where a patch puts its values.
    parts = container.raw["resources"]
    return {part: _scalars(amounts) for part, amounts in kept.items() if parts.get(part) is not None}


def _marked(templates: Collection[str]) -> dict[str, bool]:
    """The paths of templates, and with False those of all that holds one: there a group has a role, whatever else it says."""
    holders = {template[: step.start()]: False for template in templates for step in re.finditer(r"[.\[]", template)}
    return holders | dict.fromkeys(templates, True)


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


def _trimmed(entries: list[Any]) -> list[Any]:
    """Without the empty entries at the end; those before keep the indexes of the others right."""
    while entries and not entries[-1]:
        entries.pop()
    return entries


EXCERPT = Excerpt({path for rule in RULES for path in paths_of(rule.reads)})
