"""Computes from nodes and pods what is accounted and assigned of each device, and for which pods."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from webhook import names
from webhook.devices.ascend.family import AscendFamily
from webhook.devices.ascend.ledger import AscendAccountant
from webhook.devices.config import DeviceConfig
from webhook.devices.family import AnyFamily
from webhook.devices.fleet import Fleet
from webhook.devices.gpushare.family import GpushareFamily
from webhook.devices.gpushare.ledger import GpushareAccountant
from webhook.devices.ledger import (
    MAKE_ANOTHER,
    AnyAccountant,
    BoundPod,
    LedgerFinding,
    LedgerRule,
    NodeLedger,
    OccupiedNode,
    shown,
)
from webhook.devices.mindcluster.family import MindclusterFamily
from webhook.devices.mindcluster.ledger import MindclusterAccountant
from webhook.devices.model import Device, NodeState
from webhook.devices.nodes import Node, numbers_of
from webhook.devices.registry import Families
from webhook.devices.requests import DevicePod, total
from webhook.devices.shapes import AnyShape, NodeShape
from webhook.devices.vgpu.family import VgpuFamily
from webhook.devices.vgpu.ledger import VgpuAccountant
from webhook.errors import Malformed
from webhook.lenient import obj, objs, only, text
from webhook.pod.view import MAX_ANNOTATION, PodView
from webhook.volcano.target import Target

ACCOUNTANTS: Mapping[type[AnyFamily], type[AnyAccountant]] = {
    VgpuFamily: VgpuAccountant,
    GpushareFamily: GpushareAccountant,
    AscendFamily: AscendAccountant,
    MindclusterFamily: MindclusterAccountant,
}

REJECTED = "UnexpectedAdmissionError"
_BOUND = "PodScheduled"
FINISHED = ("Succeeded", "Failed")  # phases of a pod that never runs again
TAKEN_IN = ("Running", *FINISHED)  # the kubelet asks the device plugin before it starts a container
# Until someone lowers their replicas.
REFILLING = frozenset({"DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet"})


def accountant(family: AnyFamily) -> AnyAccountant:
    """What adds up what live pods hold of the devices of a family."""
    return ACCOUNTANTS[type(family)](family)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The devices of every node, with what pods hold of them.

    Attributes:
        nodes: in the fleet's order; a node with devices of several families is listed for each of them.
        findings: what is wrong with the assignments.
    """

    nodes: tuple[OccupiedNode, ...]
    findings: tuple[LedgerFinding, ...]


@dataclass(frozen=True, slots=True)
class BoundPodReader:
    """Keeps what occupancy needs of a pod's JSON.

    Attributes:
        config: the device config.
        rule_labels: the keys of the labels that the scheduler's rules read.
    """

    config: DeviceConfig
    rule_labels: frozenset[str] = frozenset()

    @classmethod
    def under(cls, config: DeviceConfig, target: Target) -> Self:
        """The reader for a scheduler."""
        return cls(config, target.rule_labels)

    def read(self, raw: Mapping[str, Any]) -> BoundPod | None:
        """The pod; None if it is not bound to a node, has nothing to do with devices, or has finished and harms no other."""
        metadata, spec, status = (obj(raw, key) for key in ("metadata", "spec", "status"))
        node, phase = text(spec, "nodeName"), text(status, "phase")
        rejected = phase == "Failed" and status.get("reason") == REJECTED
        untaken = phase in TAKEN_IN and text(metadata, "annotations", names.BIND_PHASE) == names.ALLOCATING
        if not node or (phase in FINISHED and not (rejected or untaken)):
            return None
        annotations = {
            key: value
            for key, value in obj(metadata, "annotations").items()
            if key in self.config.pod_annotations and isinstance(value, str) and 0 < len(value) <= MAX_ANNOTATION
        }
        requested, totals = _requested(raw, self.config)
        if not annotations and not requested:
            return None
        return BoundPod(
            namespace=sys.intern(text(metadata, "namespace")),
            name=text(metadata, "name"),
            uid=text(metadata, "uid"),
            node=sys.intern(node),
            since=_bound_at(raw) or text(metadata, "creationTimestamp"),
            live=phase not in FINISHED,
            terminating=bool(metadata.get("deletionTimestamp")),
            rejected=rejected,
            untaken=untaken,
            refilled_by=_refilled_by(metadata),
            group=sys.intern(text(metadata, "annotations", names.GROUP_NAME)),
            annotations=annotations,
            labels=self._labels(metadata) if self.rule_labels else _NO_LABELS,
            totals=totals,
            requested=requested,
        )

    def _labels(self, metadata: Mapping[str, Any]) -> dict[str, str]:
        labels = obj(metadata, "labels")
        return {key: value for key in self.rule_labels if isinstance(value := labels.get(key), str)}


_READ = {
    "apiVersion": (),
    "kind": (),
    "metadata": (
        *("namespace", "name", "uid", "creationTimestamp", "deletionTimestamp"),
        *("annotations", "labels", "ownerReferences"),
    ),
    "spec": ("nodeName", "initContainers", "containers", "ephemeralContainers"),
    "status": ("phase", "reason", "conditions"),
}
_READ_OF_CONTAINERS: Mapping[str, tuple[str, ...]] = {"name": (), "resources": (), "restartPolicy": ()}


def cut_pod(raw: Any) -> Any:
    """What `BoundPodReader` needs of a pod's JSON, whatever the device config."""
    pod = only(raw, _READ)
    spec, status = obj(pod, "spec"), obj(pod, "status")
    if "conditions" in status:
        status["conditions"] = [one for one in objs(status, "conditions") if one.get("type") == _BOUND]
    spec |= {
        kind: [only(one, _READ_OF_CONTAINERS) for one in containers]
        for kind, containers in spec.items()
        if isinstance(containers, list)
    }
    return pod


_NO_LABELS: Mapping[str, str] = MappingProxyType({})


def _requested(raw: Mapping[str, Any], config: DeviceConfig) -> tuple[dict[str, Any], dict[str, int]]:
    """What each family serves of a pod's requests, and their totals by resource name."""
    try:
        pod = DevicePod(PodView(dict(raw)), config)
    except Malformed:
        return {}, {}
    by_family = {}
    for family, accounts in ACCOUNTANTS.items():
        if family.id in pod.requested:
            served = accounts.served(pod, config)
            if served is not None:
                by_family[family.id] = served
    resources = dict.fromkeys(amount.resource for amount in pod.amounts)
    return by_family, {resource: total(pod, resource).total for resource in resources}


def _refilled_by(metadata: Mapping[str, Any]) -> str:
    owners = [text(owner, "kind") for owner in objs(metadata, "ownerReferences") if owner.get("controller") is True]
    return next((sys.intern(kind) for kind in owners if kind in REFILLING), "")


def _bound_at(raw: Mapping[str, Any]) -> str:
    for condition in objs(raw, "status", "conditions"):
        if condition.get("type") == _BOUND and condition.get("status") == "True":
            return text(condition, "lastTransitionTime")
    return ""


# --- the ledger of every node -----------------------------------------------------------------------------------------


class KnownStates:
    """Makes nodes in use with equal states one shape, so that what is found out about one of them holds for all."""

    def __init__(self) -> None:
        self._devices: dict[tuple[type[Device], tuple[object, ...]], Any] = {}
        self._shapes: dict[tuple[str, NodeState[Any]], AnyShape] = {}

    def shape(self, family: str, node: str, state: NodeState[Any]) -> AnyShape:
        """The shape of nodes of a family with a state, with the name of the first of them."""
        devices = tuple([self._devices.setdefault((type(one), one.content), one) for one in state.devices])
        state = state._replace(devices=devices)
        shape = self._shapes.get((family, state))
        if shape is None:
            shape = self._shapes[family, state] = NodeShape(state, (node,))
        return shape


def occupancy(
    nodes: Sequence[Node], pods: Iterable[BoundPod], fleet: Fleet, states: KnownStates | None = None
) -> Occupancy:
    """Add up what pods hold of the devices of every node.

    Args:
        nodes: those that the fleet was built from, in the same order.
        pods: bound ones; of several with the same namespace and name, the first counts.
        fleet: the fleet.
        states: of nodes that these may be compared to.
    """
    states = KnownStates() if states is None else states
    by_node = _by_node(pods)
    occupied: list[OccupiedNode] = []
    findings: list[LedgerFinding] = []
    known = set()
    for devices in nodes_with_devices(nodes, fleet):
        known.add(devices.node.name)
        in_use, wrong = occupy_node(devices, by_node.get(devices.node.name, ()), fleet.families, states)
        occupied += in_use
        findings += wrong
    if fleet.complete:
        for name in by_node.keys() - known:
            findings += _unregistered(name, fleet.families.values(), by_node[name])
    unique = sorted(set(findings), key=lambda one: (one.node, one.pod, one.rule, one.message))
    return Occupancy(tuple(occupied), tuple(unique))


class NodeDevices(NamedTuple):
    """A node with devices.

    Attributes:
        number: of the node in the fleet.
        node: the node.
        shapes: what it has of each family.
    """

    number: int
    node: Node
    shapes: Sequence[tuple[AnyFamily, AnyShape]]


def nodes_with_devices(nodes: Sequence[Node], fleet: Fleet) -> Iterator[NodeDevices]:
    """The nodes from which a fleet was built that have devices the scheduler uses, in the same order."""
    by_node: dict[int, list[tuple[AnyFamily, AnyShape]]] = {}
    for family in fleet.families.values():
        for shape in fleet.parts[family.id].shapes:
            for number in numbers_of(shape.members):
                by_node.setdefault(number, []).append((family, shape))
    for number in sorted(by_node):
        if not nodes[number].gone:
            yield NodeDevices(number, nodes[number], by_node[number])


def occupy_node(
    devices: NodeDevices, pods: Sequence[BoundPod], families: Families, states: KnownStates
) -> tuple[list[OccupiedNode], list[LedgerFinding]]:
    """Add up what the pods that are bound to one node hold of its devices."""
    number, node, shapes = devices
    occupied, findings = [], []
    live = [pod for pod in pods if pod.live]
    for family, shape in shapes:
        accounts = accountant(family)
        if not accounts.reads_assignments:
            continue
        ledger = accounts.occupy(shape, node, live)
        _overcommitted(ledger, family)
        for pod in pods:
            _examine(ledger, family, pod)
        idle = {} if shape.doubt else dict(shape.offered)
        for pod in live:
            for resource in idle.keys() & pod.totals.keys():
                idle[resource] -= pod.totals[resource]
        left = states.shape(family.id, node.name, accounts.state_left(ledger.cards, idle, shape.mode))
        in_use = OccupiedNode(node.name, family.id, tuple(ledger.cards), idle, shape, number, left)
        for card in in_use.cards if not shape.doubt else ():
            card.free = accounts.within_totals(in_use, card)
        occupied.append(in_use)
        findings += ledger.findings
    served = {family.id for family, _ in shapes}
    others = [family for family in families.values() if family.id not in served]
    return occupied, [*findings, *_unregistered(node.name, others, live)]


def _by_node(pods: Iterable[BoundPod]) -> dict[str, list[BoundPod]]:
    by_node: dict[str, dict[tuple[str, str], BoundPod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node, {}).setdefault((pod.namespace, pod.name), pod)
    return {node: list(some.values()) for node, some in by_node.items()}


# --- what is wrong ----------------------------------------------------------------------------------------------------


def _examine(ledger: NodeLedger, family: AnyFamily, pod: BoundPod) -> None:
    """Find what is wrong with a pod on a node that has devices of the family."""
    assigned = _assigned(pod, family)
    if assigned and pod.live and family.id not in pod.requested:
        ledger.find(
            LedgerRule.WITHOUT_REQUEST,
            pod,
            f"annotation {assigned} assigns {family.devices} to a pod that requests none",
            "the scheduler counts them all the same, and only it may write the annotation: delete the pod",
        )
    if family.id in pod.requested and not assigned:
        ends = f"ended in {REJECTED}" if pod.rejected else f"will end in {REJECTED}"
        ledger.find(
            LedgerRule.UNASSIGNED,
            pod,
            f"the pod requests {family.devices} and is bound to node {pod.node}, but the scheduler assigned none",
            f"it {ends}: {MAKE_ANOTHER}, and check that schedulerName is Volcano's",
        )
    if pod.untaken and assigned and family.id in pod.requested and not pod.terminating:
        _untaken(ledger, family, pod)
    chosen = pod.annotations.get(family.node_annotation, "") if assigned else ""
    if chosen and pod.live and chosen != pod.node:
        message = f"annotation {family.node_annotation} has another node than spec.nodeName, {pod.node}"
        advice = f"its {family.devices} may be those of the other node: {MAKE_ANOTHER}"
        ledger.find(LedgerRule.OTHER_NODE, pod, message, advice)


def _untaken(ledger: NodeLedger, family: AnyFamily, pod: BoundPod) -> None:
    """Find an assignment that the device plugin takes for that of the next pod.

    Source: volcano-vgpu-device-plugin 4fb76ba `pkg/util/util.go` (GetPendingPod): the oldest pod of the node in this phase.
    """
    phase = f"{names.BIND_PHASE}: {names.ALLOCATING}"
    next_pod = (
        f"the next pod with as many {family.devices} on node {pod.node} gets those assigned to it, with its limits"
    )
    if pod.live:
        message = f"the pod runs with the {family.devices} and limits of another pod, or without any ({phase})"
        ledger.find(LedgerRule.NOT_TAKEN, pod, message, f"{MAKE_ANOTHER}: {next_pod}")
    else:
        message = f"the pod ended before it got its {family.devices} ({phase}), and {next_pod}"
        ledger.find(LedgerRule.LEFT_BEHIND, pod, message, "delete the pod now")


def _assigned(pod: BoundPod, family: AnyFamily) -> str:
    """The annotation that assigns devices of a family to a pod; empty if there is none."""
    return next((key for key in family.assignments(family.config.ascend) if key in pod.annotations), "")


def _overcommitted(ledger: NodeLedger, family: AnyFamily) -> None:
    for card in ledger.cards:
        over = [
            f"{assigned} of {most} {what}"
            for assigned, most, what in (
                (card.assigned.memory, card.memory, family.unit or "of memory"),
                (card.assigned.cores, card.cores, "cores"),
                (card.assigned.slices, card.split, "slices"),
            )
            if most is not None and assigned > most
        ]
        if over:
            leaving = any(holder.terminating for holder in card.pods)
            advice = "wait until those that are being deleted are gone" if leaving else "delete one of them"
            message = f"pods hold more of {family.device} {shown(card.id)} than it has: {', '.join(over)}"
            ledger.find(LedgerRule.OVERCOMMITTED, None, message, advice)


def _unregistered(node: str, families: Iterable[AnyFamily], pods: Sequence[BoundPod]) -> Iterator[LedgerFinding]:
    """Pods with devices of families that have none on the node."""
    for family in families:
        for pod in pods:
            if pod.live and family.id in pod.requested and _assigned(pod, family):
                message = f"the pod holds {family.devices} of node {node}, which registers none that the scheduler uses"
                advice = "check the device plugin there"
                yield LedgerFinding(LedgerRule.CARD_MISSING, node, pod.key, message, advice)
