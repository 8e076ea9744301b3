"""The units of vGPU memory: the kubelet takes each for a device, and has room for a bounded number of them."""

from collections.abc import Iterable, Iterator

from webhook.devices.requests import MAX_STATUS_UNITS
from webhook.devices.vgpu.fleet import MAX_LISTED_UNITS, decode_register
from webhook.lenient import obj, text
from webhook.pod import quantity
from webhook.questions.doctor.check import need
from webhook.questions.doctor.facts import Object, ObjectKind, name_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import vgpu_nodes, vgpu_register
from webhook.results import Results, broken, listed, warning
from webhook.volcano.target import lists_units

_EFFECT = (
    "then restart scheduler and device plugin; vGPU memory is then counted in units of that many MiB: see before what "
    "`vgpu-webhook replay --device-config FILE LOG` changes"
)


def device_list_size(setup: Setup) -> Results:
    """No node lacks memory because its cards have more units than a device plugin can list."""
    name = setup.config.vgpu.memory_name
    found = {
        name_of(node): sum(sizes)
        for node, sizes in _cards(setup)
        if not quantity.whole(obj(node, "status", "allocatable").get(name))
    }
    large = {name: units for name, units in found.items() if units > MAX_LISTED_UNITS}
    if large:
        yield broken(
            f"{listed(list(large))}: the cards have {max(large.values())} units of memory, of which a device plugin can list "
            f"{MAX_LISTED_UNITS}: it then lists none, so no pod gets a vGPU there",
            f"set gpuMemoryFactor: {_factor(large.values(), MAX_LISTED_UNITS, setup)} in the device config, {_EFFECT}",
        )
    return "no node lacks memory because it has too many units"


def status_too_large(setup: Setup) -> Results:
    """The status of a pod has room for all units of a card."""
    found = {
        name_of(node): max(sizes, default=0)
        for node, sizes in _cards(setup)
        if lists_units(text(node, "status", "nodeInfo", "kubeletVersion"))
    }
    large = {name: units for name, units in found.items() if units > MAX_STATUS_UNITS}
    if large:
        yield warning(
            f"{listed(list(large))}: a card has {max(large.values())} units of memory, and the kubelet writes each that a pod "
            f"requests into the pod's status: with more than {MAX_STATUS_UNITS} the pod stays pending",
            f"set gpuMemoryFactor: {_factor(large.values(), MAX_STATUS_UNITS, setup)} in the device config, {_EFFECT}",
        )
    return "the status of a pod has room for all memory of a card"


def _cards(setup: Setup) -> Iterator[tuple[Object, list[int]]]:
    """The nodes that register cards, with the units of each card."""
    nodes = vgpu_nodes(setup.facts)
    if not nodes:
        need(setup.facts.gap(ObjectKind.NODE))
    for node in nodes:
        register = decode_register(vgpu_register(node), setup.config.vgpu, {})
        yield node, [card.memory for card in register.cards] if register is not None else []


def _factor(units: Iterable[int], room: int, setup: Setup) -> int:
    """The smallest gpuMemoryFactor with which these units have room."""
    return -(-max(units) * setup.config.vgpu.memory_factor // room)
