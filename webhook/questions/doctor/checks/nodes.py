"""Nodes: what they register and advertise, their taints, their MIG geometries, and what is assigned of their devices."""

from collections import defaultdict
from collections.abc import Iterable

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.family import npus_by_id
from webhook.devices.ledger import LedgerFinding, LedgerRule
from webhook.devices.nodes import GATE_NAMES, numbers_of
from webhook.devices.occupancy import occupancy
from webhook.devices.vgpu.fleet import Register, decode_register
from webhook.lenient import obj, objs, text
from webhook.live.objects import HARD_EFFECTS, is_passing
from webhook.pod import quantity
from webhook.pod.selectors import tolerates
from webhook.questions.doctor.check import known, need
from webhook.questions.doctor.facts import Object, ObjectKind, name_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import npu_registers, vgpu_nodes, vgpu_register
from webhook.results import Results, broken, listed, warning
from webhook.rules.policy_keys import Toleration
from webhook.texts import counted

_RESTART = "restart the device plugin there, and look at its log"
_RESTART_ASCEND = "restart ascend-device-plugin there, and look at its log"


def _vgpu_nodes(setup: Setup) -> list[Object]:
    found = vgpu_nodes(setup.facts)
    if not found:
        need(setup.facts.gap(ObjectKind.NODE))
    return found


def node_registers(setup: Setup) -> Results:
    """The annotation can be read, and each card has memory and a split count."""
    found = _vgpu_nodes(setup)
    if not found:
        return "no node registers vGPU cards"
    read = {name_of(node): decode_register(vgpu_register(node), setup.config.vgpu, {}) for node in found}
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
    return f"all cards that are registered can be read: {counted(len(found), 'node')}"


def _useless(cards: Register) -> bool:
    return any(card.memory == 0 or card.split == 0 for card in cards.cards)


def _foreign(cards: Register) -> bool:
    return any("NVIDIA" not in card.type for card in cards.cards)


def ascend_registers(setup: Setup) -> Results:
    """The annotations can be read, and each NPU has memory and a split count."""
    found = [
        (name_of(node), word, npus_by_id(value, word).values())
        for node in setup.facts.all(ObjectKind.NODE)
        for word, value in npu_registers(node).items()
    ]
    if not found:
        need(setup.facts.gap(ObjectKind.NODE))
        return "no node registers NPUs"
    unread = [f"{name} ({word})" for name, word, npus in found if not npus]
    if unread:
        yield broken(
            f"{listed(unread)}: {names.NODE_ASCEND_REGISTER_PREFIX}… cannot be read, so the scheduler sees no NPU there",
            _RESTART_ASCEND,
        )
    empty = [f"{name} ({word})" for name, word, npus in found if any(n.memory <= 0 or n.split <= 0 for n in npus)]
    if empty:
        yield broken(f"{listed(empty)}: NPUs are registered with no memory or a split count of 0", _RESTART_ASCEND)
    return f"all NPUs that are registered can be read: {counted(len({name for name, _, _ in found}), 'node')}"


def node_resources(setup: Setup) -> Results:
    """Nodes advertise the resources that the scheduler reads; some versions read the well-known names in any case."""
    found, in_doubt = _vgpu_nodes(setup), list(_in_doubt(setup))
    for (doubt, known_devices), nodes in in_doubt:
        result = broken if known_devices else warning  # a plugin that was removed leaves the names of its resources
        yield result(
            f"{listed(nodes)}: {doubt}; no pod gets its devices while that is so",
            "if it stays 0, restart the device plugin there, look at its log, and at device-list-size",
        )
    if not found:
        return "no node registers vGPU cards"
    vgpu = setup.config.vgpu
    configured = (vgpu.number_name, vgpu.memory_name, vgpu.cores_name)
    gated = GATE_NAMES if setup.target.gates_nodes else ()
    doubtful = {name for _, nodes in in_doubt for name in nodes}
    fleet = setup.fleet.vgpu
    unheard = [node for node, name in fleet.gated if name == names.NODE_VGPU_HANDSHAKE]
    if unheard:
        yield broken(
            f"{listed(unheard)}: {wording.lacks(names.NODE_VGPU_HANDSHAKE, 'the')}; the scheduler sees no card of such a node",
            "install a device plugin of 1.12.0 or older, or update Volcano to 1.14.3, 1.15.1 or newer",
        )
    for name in dict.fromkeys((*gated, *configured)):
        lacking = [name_of(node) for node in found if not _offered(node, name) and name_of(node) not in doubtful]
        if lacking:
            sees = "the scheduler sees no card of such a node"
            why = sees if name in gated else "a pod that requests it fits nowhere there"
            yield broken(f"{listed(lacking)}: {name} is absent or 0 in allocatable; {why}", _remedy(setup, name))
    for unseen in fleet.unseen:
        some = [fleet.index.names[at] for at in numbers_of(unseen.members)]
        without = f" that request no {unseen.lacks}" if unseen.lacks in configured else ""
        yield broken(
            f"{listed(some)}: {wording.unseen(unseen.lacks, 'the')}, so the scheduler sees no card there, but it binds "
            f"pods{without} there by what the node offers: they get no cards, and end in UnexpectedAdmissionError",
            f"cordon {'it' if len(some) == 1 else 'them'} until that is mended",
        )
    return f"{listed(list(configured))} are advertised: {counted(len(found), 'node')}"


def _in_doubt(setup: Setup) -> Iterable[tuple[tuple[str, bool], list[str]]]:
    """Why nodes offer no devices now but may soon, and whether their devices are known; with the names of the nodes."""
    fleet = setup.fleet
    nodes: dict[tuple[str, bool], list[str]] = {}
    for shapes in fleet.by_family.values():
        for shape in shapes:
            if shape.doubt:
                listed_nodes = [fleet.index.names[at] for at in numbers_of(shape.members)]
                nodes.setdefault((shape.doubt, bool(shape.devices)), []).extend(listed_nodes)
    return nodes.items()


def _offered(node: Object, name: str) -> int:
    return quantity.whole(obj(node, "status", "allocatable").get(name)) or 0


def _remedy(setup: Setup, name: str) -> str:
    vgpu = setup.config.vgpu
    renamed = name in GATE_NAMES and name not in (vgpu.number_name, vgpu.memory_name, vgpu.cores_name)
    if renamed:
        return f"this Volcano needs the well-known names: use {name} in the device config, then restart scheduler and plugin"
    return _RESTART


def node_labels(setup: Setup) -> Results:
    """Every node with the vGPU label registers cards."""
    nodes = setup.facts.all(ObjectKind.NODE)
    meant = [node for node in nodes if text(node, "metadata", "labels", names.NODE_VGPU_ENABLED) == "true"]
    silent = [name_of(node) for node in meant if not vgpu_register(node)]
    if silent:
        yield warning(
            f"{listed(silent)}: labelled {names.NODE_VGPU_ENABLED}, but no card is registered",
            "see whether the device plugin runs there: its nodeSelector, its tolerations, its log",
        )
    elif not nodes:
        need(setup.facts.gap(ObjectKind.NODE))
    return f"every node with the label {names.NODE_VGPU_ENABLED} registers cards"


def node_taints(setup: Setup) -> Results:
    """The policy's toleration tolerates the taints of the nodes with cards."""
    found = _vgpu_nodes(setup)
    if not found:
        return "no node registers vGPU cards"
    need(setup.policy_gap)
    toleration = setup.policy.toleration
    own = toleration.key if toleration else names.VGPU_TAINT
    untolerated: dict[tuple[str, str], list[str]] = defaultdict(list)
    effects = set()
    for node in found:
        for taint in objs(node, "spec", "taints"):
            key, effect = text(taint, "key"), text(taint, "effect")
            if effect not in HARD_EFFECTS or is_passing(key):
                continue
            effects |= {effect} if key == own else set()
            if not _tolerates(toleration, taint):
                untolerated[key, _format_taint(taint)].append(name_of(node))
    effect = effects.pop() if len(effects) == 1 else '""'
    every = f"{{key: {own}, operator: Exists, effect: {effect}}}"
    for (key, taint_text), nodes in untolerated.items():
        if key == own and toleration is not None:
            yield broken(
                f"{listed(nodes)}: the taint {taint_text} is not tolerated by policy.toleration, so repaired pods stay pending",
                f"write in the policy `toleration: {every}`, which tolerates the taints {own} of all nodes",
            )
        else:
            yield warning(
                f"{listed(nodes)}: the taint {taint_text} is not tolerated by policy.toleration: only pods that tolerate it "
                "themselves get there",
                "if that is not meant, remove the taint, or set toleration of the policy",
            )
    return f"repaired pods tolerate the taints of the nodes with vGPUs: {counted(len(found), 'node')}"


def _tolerates(toleration: Toleration | None, taint: Object) -> bool:
    key, value, effect = (text(taint, field) for field in ("key", "value", "effect"))
    return toleration is not None and tolerates(toleration.written, key, value, effect)


def _format_taint(taint: Object) -> str:
    value = text(taint, "value")
    return f"{text(taint, 'key')}{f'={value}' if value else ''}:{text(taint, 'effect')}"


def mig_models(setup: Setup) -> Results:
    """Each card in mode mig has geometries, and each model of the geometries has a card."""
    found = _vgpu_nodes(setup)
    known(setup.device_config)
    vgpu = setup.config.vgpu
    cards = [
        (name_of(node), fields[3], fields[5] == names.MODE_MIG)
        for node in found
        for entry in vgpu_register(node).split(":")
        if len(fields := entry.split(",")) >= 6
    ]
    types = {card_type for _, card_type, _ in cards}
    unknown = {card_type for _, card_type, mig in cards if mig and vgpu.geometries_of(card_type) is None}
    for card_type in sorted(unknown):
        nodes = list(dict.fromkeys(name for name, other, mig in cards if mig and other == card_type))
        yield broken(
            f"{listed(nodes)}: {card_type} is in mode mig, but no model of knownMigGeometries is a part of that name: the "
            "scheduler takes it for hami-core",
            "add the model with its geometries to the device config, then restart the scheduler",
        )
    # Models without a card: a likely mistake if a card has no model, else usual: the shipped config lists many.
    models = [model for entry in setup.config.vgpu.mig_models for model in entry.models]
    idle = [model for model in dict.fromkeys(models) if not any(model in card_type for card_type in types)]
    unused = f"no registered card has {listed(idle)} in its type, as knownMigGeometries requires" if idle else ""
    if unknown and idle:
        yield warning(unused, f"compare with what is registered: {listed(sorted(types))}")
    in_use = "every card in mode mig has geometries" if any(mig for _, _, mig in cards) else "no card is in mode mig"
    return "; ".join(filter(None, (in_use, unused)))


# Because of these, pods fail, get each other's cards, or read each other's memory, or the scheduler stops.
_BROKEN = (
    LedgerRule.UNASSIGNED,
    LedgerRule.LEFT_BEHIND,
    LedgerRule.NOT_TAKEN,
    LedgerRule.INSTANCE_SHARED,
    LedgerRule.UNREADABLE,
)


def assignments(setup: Setup) -> Results:
    """Nothing is wrong with what live pods hold of the devices."""
    pods = known(setup.facts.bound_pods)
    need(setup.facts.gap(ObjectKind.NODE) if not setup.facts.all(ObjectKind.NODE) else None)
    found: dict[LedgerRule, list[LedgerFinding]] = {}
    for finding in occupancy(setup.nodes, pods, setup.fleet).findings:
        found.setdefault(finding.rule, []).append(finding)
    for rule, some in sorted(found.items()):
        first = some[0]
        places = listed([one.pod or one.node for one in some])
        result = broken if rule in _BROKEN else warning
        yield result(f"{rule}: {places}: {first.message}", first.remedy)
    return f"the devices of {counted(len(pods), 'pod')} exist and suffice"
