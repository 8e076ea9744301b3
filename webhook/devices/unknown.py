"""Resource names that look like those of a family but that nothing serves: most likely misspelt."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from webhook import names
from webhook.devices.config import DeviceConfig, VgpuConfig
from webhook.devices.families import Role
from webhook.devices.fleet import Fleet
from webhook.pod import quantity
from webhook.pod.view import Container, PodView

MAX_UNKNOWN = 100  # names of one pod
MAX_COMPARED = 4  # of them compared with the known names: that is slow, and a pod may have very many names
MAX_WORD = 40  # characters of a name behind the slash; a longer one is not compared
CLOSE = 0.75  # how similar two names are, from 0 to 1: `vgpu-num` and `vgpu-number` are at 0.84

_USUAL = {name: role for role, name in VgpuConfig().role_names.items()}


class UnknownName(NamedTuple):
    """A resource that a container requests under a name that has no meaning.

    Attributes:
        container: the container that requests it.
        resource: the name as written.
        meant: the most similar known name; None if no name is similar.
    """

    container: Container
    resource: str
    meant: str | None


def unknown_names(
    pod: PodView, config: DeviceConfig, fleet: Fleet | None, served: Collection[str] = ()
) -> list[UnknownName]:
    """The names that no family, no node and no DeviceClass has, each once for a container.

    A request of 0 requests nothing, whatever its name. While the nodes are not known, names that another device plugin may
    offer are left out.
    """
    unnamed = list(islice(_unnamed(pod, config, fleet, served), MAX_UNKNOWN))
    return _unknown(unnamed, config, fleet) if unnamed else []


def _unnamed(
    pod: PodView, config: DeviceConfig, fleet: Fleet | None, served: Collection[str]
) -> Iterator[tuple[Container, str]]:
    """The requested names that begin like those of a family but that no family, dialect, node or DeviceClass has."""
    known, looks_like_family = config.resources.exact, config.resources.looks_like_family
    offered = fleet.other_names if fleet is not None else frozenset()
    for container in pod.every_container():
        limits = container.limits
        for others, part in (((), limits), (limits, container.requests)):
            for resource, amount in part.items():
                if resource in known or resource in offered or resource in served or not looks_like_family(resource):
                    continue
                if quantity.whole(amount) != 0 and resource not in others:
                    yield container, resource


def _unknown(unnamed: list[tuple[Container, str]], config: DeviceConfig, fleet: Fleet | None) -> list[UnknownName]:
    known = fleet if fleet is not None and fleet.complete else None
    candidates = _candidates(config, offered_roles(known, config) or tuple(config.roles))
    unknown = []
    for number, (container, resource) in enumerate(unnamed):
        meant = _nearest(resource, candidates) if number < MAX_COMPARED else None
        if known is not None or _is_strange(resource, meant):
            unknown.append(UnknownName(container, resource, meant))
    return unknown


def _is_strange(resource: str, meant: str | None) -> bool:
    """Whether it is unlikely that a node offers a name, while the nodes are not known."""
    if resource in _USUAL or resource in names.HUAWEI_PLUGIN_NAMES:
        return False
    return meant is not None or resource.startswith(names.VOLCANO_DOMAIN)


# --- the name that was meant -----------------------------------------------------------------------------------------


def offered_roles(fleet: Fleet | None, config: DeviceConfig) -> tuple[str, ...]:
    """The names of the families that some node has devices of; none while the nodes are not known."""
    return () if fleet is None else tuple(name for name in config.roles if _offers(fleet, name, config))


def _offers(fleet: Fleet, name: str, config: DeviceConfig) -> bool:
    """Whether some node has devices of the family that a name belongs to; of Ascend NPUs, of that kind."""
    family, chip = config.roles[name][0], config.ascend.chip_of.get(name)
    if chip is None:
        return bool(fleet.by_family[family])
    return any(device.type == chip.word for shape in fleet.by_family[family] for device, _ in shape.kinds)


def _candidates(config: DeviceConfig, known: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """Some names by their own spelling and by likely variants of it: the domain, and the word behind it."""
    roles = [(name, config.roles[name][1], name) for name in known]
    usual = [(usual, role, config.vgpu.role_names[role]) for usual, role in _USUAL.items()]
    roles += [one for one in usual if one[2] in known]
    spellings: dict[tuple[str, str], str] = {}
    for spelt, role, name in roles:
        domain, word = _split(spelt)
        family = word.partition("-")[0]
        for form in (word, family, f"{family}-count") if role is Role.NUMBER else (word,):
            spellings.setdefault((domain, form), name)
    return spellings


def _nearest(resource: str, candidates: dict[tuple[str, str], str]) -> str | None:
    domain, word = _split(resource)
    if len(word) > MAX_WORD:
        return None
    digits = _digits(word)  # of a chip's model: other digits mean another model, unless the word is only cut short
    words = [form for its, form in candidates if its == domain and (_digits(form) == digits or form.startswith(word))]
    near = get_close_matches(word, words, 1, CLOSE)
    return candidates[domain, near[0]] if near else None


def _split(name: str) -> tuple[str, str]:
    domain, _, word = name.rpartition("/")
    return domain, word.lower().replace("_", "-").replace(".", "-")


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))
