"""What counts or admits pods by the names of another system, such as quotas and queues, in this cluster's names.

Kubernetes counts `requests.` of an extended resource, a Queue of Volcano plain names, both as they are written in the pods.
Kueue counts plain names, and what its transformations make of them.
Sources: Kubernetes `pkg/quota/v1/evaluator/core/pods.go`; HAMi `pkg/device/quota.go`; Kueue `apis/config/v1beta1`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from webhook.devices.config import VgpuConfig
from webhook.devices.dialects import DIALECTS, Dialect, Place, Word
from webhook.devices.families import Role
from webhook.lenient import obj
from webhook.pod import quantity
from webhook.pod.patch import REMOVE, Edit, field_path
from webhook.rules.limits import COUNTED, plain_name
from webhook.volcano.quotas import PREFIX
from webhook.wire.models import Request

_KUEUE = ("kueue.x-k8s.io", "config.kueue.x-k8s.io")
_TRANSFORMED = re.compile(r"nvidia\.com/total-gpu(?:mem|cores)")  # by HAMi's documented transformations for Kueue
_BY_HAND = "{name} is {system}'s, and no converted pod requests it; write {here}"
_FOREIGN_GROUPS = {"scheduling.run.ai": "kai", "kai.scheduler": "kai"}


class Converted(NamedTuple):
    """What became of an object that counts or admits pods.

    Attributes:
        edits: that convert it.
        warnings: a sentence for each amount that has to be converted by hand, with its path.
    """

    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()


def convert_amounts(
    request: Request, dialects: Collection[str], certain: Collection[str], config: VgpuConfig
) -> Converted:
    """Convert an object that is no workload.

    Args:
        request: that would create the object.
        dialects: the ids of those that are converted.
        certain: those of them to which names that others have, too, such as nvidia.com/gpu, belong in every case.
        config: this cluster's names and unit.
    """
    raw, kind = request.object or {}, (request.group, request.kind)
    systems = [DIALECTS[dialect] for dialect in dialects]
    if (system := _FOREIGN_GROUPS.get(request.group)) in dialects and system:
        title = DIALECTS[system].title
        return Converted(
            warnings=(f"Volcano does not read {title}'s {request.kind}; create a Queue of scheduling.volcano.sh",)
        )
    places = _amounts(raw, kind)
    edits, warnings = list[Edit](), list[str]()
    for path in places:
        amounts = object_at(raw, path)
        for dialect in systems:
            words = {word.name: word for word in dialect.words if word.place is Place.RESOURCE}
            sure = dialect.id in certain or any(plain_name(key) in dialect.resources for key in amounts)
            for key in [key for key in amounts if plain_name(key) in (words if sure else dialect.resources)]:
                written, why = _convert(key, amounts, dialect, words[plain_name(key)], config)
                edits += [Edit((*path, each), value) for each, value in written.items()]
                warnings += [f"{field_path((*path, key))}: {why}"] if why else []
    if not places and (request.group in _KUEUE or _configures_kueue(raw)):
        signed = {system.id for system in systems if any(_by_hand(raw, [system], config, ()))}
        warnings += _by_hand(raw, systems, config, {*certain, *signed})
    return Converted(tuple(edits), tuple(warnings))


def _amounts(raw: Mapping[str, Any], kind: tuple[str, str]) -> list[tuple[str | int, ...]]:
    """The paths of the maps of amounts of an object."""
    if kind == ("", "ResourceQuota"):
        return [("spec", "hard")]
    if kind == ("scheduling.volcano.sh", "Queue"):
        return [("spec", "capability"), ("spec", "deserved"), ("spec", "guarantee", "resource")]
    limits = obj(raw, "spec").get("limits")
    if kind == ("", "LimitRange") and isinstance(limits, list):
        parts = ("max", "min", "default", "defaultRequest")
        return [("spec", "limits", index, part) for index in range(len(limits)) for part in parts]
    return []


def object_at(raw: Any, path: tuple[str | int, ...]) -> Mapping[str, Any]:
    """The object at a path through objects and lists; empty where there is none."""
    for step in path:
        raw = raw[step] if isinstance(step, int) else raw.get(step) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


def _convert(
    key: str, amounts: Mapping[str, Any], dialect: Dialect, word: Word, config: VgpuConfig
) -> tuple[dict[str, Any], str]:
    """What an amount becomes, by key, and why its author must look at it; empty if nothing is to be seen."""
    prefix = COUNTED if key != word.name else ""
    if word.role is None:
        return {key: REMOVE}, f"{key} of {dialect.title} counts nothing here, and was removed: {word.note}"
    here = f"{prefix}{config.role_names[word.role]}"
    by_hand = _BY_HAND.format(name=key, system=dialect.title, here=here)
    if word.role is Role.PERCENTAGE:
        memory = f"{prefix}{config.memory_name}"
        return {}, f"{_BY_HAND.format(name=key, system=dialect.title, here=memory)}: percentages become memory"
    if word.role in dialect.sums or dialect.cores_are_cards:
        return {}, f"{by_hand}, of which a pod writes the amount of each card, not of all together"
    try:
        amount = Fraction(quantity.parse(amounts[key])) * word.unit
    except ValueError:
        return {}, f"{by_hand}, with a number"
    if word.role is Role.MEMORY:
        amount /= config.memory_factor
    if amount.denominator != 1 or here in amounts:
        return {}, by_hand
    why = ""
    if key.startswith(PREFIX):
        why = f"converted to {here}, as Kubernetes counts nothing else; {dialect.title} counts it times the number of cards"
    return {key: REMOVE, here: str(int(amount))}, why


def _configures_kueue(raw: Mapping[str, Any]) -> bool:
    return raw.get("kind") == "ConfigMap" and any(
        "config.kueue.x-k8s.io" in str(text) for text in obj(raw, "data").values()
    )


def _by_hand(
    raw: Any, systems: list[Dialect], config: VgpuConfig, sure: Collection[str], path: str = ""
) -> Iterator[str]:
    """A sentence for each name of a system somewhere in an object; names that others have, too, of those that are sure."""
    if isinstance(raw, dict):
        for key, value in raw.items():
            below = f"{path}[{key}]" if "/" in key else f"{path}.{key}" if path else key
            yield from _by_hand(key, systems, config, sure, below)
            yield from _by_hand(value, systems, config, sure, below)
    elif isinstance(raw, list):
        for index, each in enumerate(raw):
            yield from _by_hand(each, systems, config, sure, f"{path}[{index}]")
    elif isinstance(raw, str) and "/" in raw:
        for dialect in systems:
            for word in dialect.words:
                named = word.place is Place.RESOURCE and word.role is not None and (word.sign or dialect.id in sure)
                if named and re.search(rf"(?<![\w./-]){re.escape(word.name)}(?![\w./-])", raw):
                    here = config.role_names[word.role] if word.role else ""
                    yield f"{path}: {_BY_HAND.format(name=word.name, system=dialect.title, here=here)}"
            if dialect.id == "hami" and (match := _TRANSFORMED.search(raw)):
                role = Role.MEMORY if match[0].endswith("mem") else Role.CORES
                here = config.role_names[role]
                yield f"{path}: {match[0]} is made of {dialect.title}'s names; make it of {here}"
