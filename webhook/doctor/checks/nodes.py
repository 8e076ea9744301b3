"""What nodes register and advertise, and whether the scheduler can make use of it."""

from collections.abc import Iterator

from webhook import names
from webhook.devices.nodes import GATE_NAMES
from webhook.devices.vgpu.fleet import Register, decode_register
from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind
from webhook.doctor.nodes import register, registering
from webhook.doctor.reading import Object, counted, listed, name_of, table, text
from webhook.doctor.setup import Setup
from webhook.pod import quantity

_RESTART = "restart the device plugin there, and look at its log"


def node_registers(setup: Setup) -> Iterator[Line]:
    """The annotation can be read, and each card has memory and may be split."""
    found = registering(setup.facts)
    gap = setup.facts.gap(Kind.NODE)
    if not found:
        yield unchecked(gap) if gap else ok("no node registers vGPU cards")
        return
    read = {name_of(node): decode_register(register(node), setup.config.vgpu, {}) for node in found}
    unread = [name for name, cards in read.items() if cards is None]
    if unread:
        yield broken(
            f"{listed(unread)}: {names.NODE_VGPU_REGISTER} cannot be read, so the scheduler sees no card there",
            _RESTART,
        )
    empty = [name for name, cards in read.items() if cards is not None and _useless(cards)]
    if empty:
        yield broken(
            f"{listed(empty)}: cards are registered with no memory or a split count of 0, and are never used", _RESTART
        )
    foreign = [name for name, cards in read.items() if cards is not None and _foreign(cards)]
    if foreign:
        yield broken(
            f"{listed(foreign)}: cards whose type does not contain NVIDIA are never used by the scheduler", _RESTART
        )
    if not unread and not empty and not foreign:
        yield ok(f"all cards that are registered can be read: {counted(len(found), 'node')}")


def _useless(cards: Register) -> bool:
    return any(card.memory == 0 or card.split == 0 for card in cards.cards)


def _foreign(cards: Register) -> bool:
    return any("NVIDIA" not in card.type for card in cards.cards)


def node_resources(setup: Setup) -> Iterator[Line]:
    """Nodes advertise what the scheduler looks for: the well-known names in some versions, whatever the config says."""
    found = registering(setup.facts)
    gap = setup.facts.gap(Kind.NODE)
    if not found:
        yield unchecked(gap) if gap else ok("no node registers vGPU cards")
        return
    vgpu = setup.config.vgpu
    configured = (vgpu.number_name, vgpu.memory_name, vgpu.cores_name)
    gated = GATE_NAMES if setup.target.gates_nodes else ()
    good = True
    for name in dict.fromkeys((*gated, *configured)):
        lacking = [name_of(node) for node in found if not _offered(node, name)]
        if not lacking:
            continue
        good = False
        why = (
            "the scheduler skips such a node, and pods that get there end in UnexpectedAdmissionError"
            if name in gated
            else "a pod that asks for it fits nowhere there"
        )
        yield broken(f"{listed(lacking)}: {name} is absent or 0 in allocatable; {why}", _remedy(setup, name))
    if good:
        yield ok(f"{listed(list(configured))} are advertised: {counted(len(found), 'node')}")


def _offered(node: Object, name: str) -> int:
    return quantity.whole(table(node, "status", "allocatable").get(name)) or 0


def _remedy(setup: Setup, name: str) -> str:
    vgpu = setup.config.vgpu
    renamed = name in GATE_NAMES and name not in (vgpu.number_name, vgpu.memory_name, vgpu.cores_name)
    if renamed:
        return f"this Volcano needs the well-known names: use {name} in the device config, then restart scheduler and plugin"
    return _RESTART


def node_labels(setup: Setup) -> Iterator[Line]:
    """A node that is set aside for vGPUs registers some."""
    gap = setup.facts.gap(Kind.NODE)
    nodes = setup.facts.all(Kind.NODE)
    meant = [node for node in nodes if text(node, "metadata", "labels", names.NODE_VGPU_ENABLED) == "true"]
    silent = [name_of(node) for node in meant if not register(node)]
    if silent:
        yield warning(
            f"{listed(silent)}: labelled {names.NODE_VGPU_ENABLED}, but no card is registered",
            "see whether the device plugin runs there: its nodeSelector, its tolerations, its log",
        )
    elif not nodes and gap:
        yield unchecked(gap)
    else:
        yield ok(f"every node with the label {names.NODE_VGPU_ENABLED} registers cards")


CHECKS = (
    Check("node-registers", node_registers),
    Check("node-resources", node_resources),
    Check("node-labels", node_labels),
)
