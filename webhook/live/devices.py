"""What live pods leave of the devices of the nodes."""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain, groupby
from typing import Any, TypeAlias, cast

from webhook import names
from webhook.devices.explainer import is_usable
from webhook.devices.explanation import explainer
from webhook.devices.families import Family
from webhook.devices.family import AnyFamily
from webhook.devices.fleet import Fleet
from webhook.devices.ledger import BoundPod, LedgerFinding, OccupiedNode
from webhook.devices.nodes import Node
from webhook.devices.occupancy import (
    KnownStates,
    NodeDevices,
    Occupancy,
    accountant,
    nodes_with_devices,
    occupancy,
    occupy_node,
)
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, FitsTightly, Never, Unknown
from webhook.devices.vgpu.fleet import Card
from webhook.durations import format_age
from webhook.errors import ConfigError
from webhook.live.objects import FREE, Key, NodeStatus, group_of, key_of
from webhook.pod.view import PodView
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot
from webhook.volcano.scheduler import MAX_RULES

SPREAD = 1 << MAX_RULES  # beside the scheduler's rules: the pod's own PodGroup has a pod on the card
MAX_VERDICTS = 1 << 19  # that are remembered
JudgedState: TypeAlias = Fits | FitsTightly | Unknown | None
_Ranked: TypeAlias = tuple[int, int, int, int]


class LiveCluster:
    """The devices that live pods leave.

    Attributes:
        snapshot: the settings of reviews, with the empty nodes.
        statuses: what keeps pods off nodes, by the names of all nodes; empty if that is not known, so that they take pods.
        occupied: the nodes with devices of each family, by the family's id.
        memo: what is known of the states of nodes; copies share it.
    """

    def __init__(
        self, inputs: SnapshotInputs, snapshot: Snapshot, bound: Iterable[BoundPod], memo: "StateMemo | None" = None
    ) -> None:
        """Add up what pods hold.

        Args:
            inputs: with the nodes.
            snapshot: that was built from the inputs.
            bound: pods that hold devices; of several with one name, the first counts.
            memo: of a cluster with the same settings; None for a new one.
        """
        self.snapshot = snapshot
        self._nodes: Sequence[Node] = inputs.nodes or ()
        self.statuses: Mapping[str, NodeStatus] = {}
        self._pods = _by_node(bound)
        self.memo = memo or StateMemo()

    def with_statuses(self, statuses: Mapping[str, NodeStatus]) -> "LiveCluster":
        """The same, with these statuses of the nodes."""
        found = copy(self)
        found.statuses = statuses
        return found

    def with_snapshot(self, snapshot: Snapshot) -> "LiveCluster":
        """The same with settings that are about no node and no device."""
        return self if snapshot is self.snapshot else self._copy(snapshot=snapshot)

    def with_pods(self, bound: Iterable[BoundPod]) -> "LiveCluster":
        """The same nodes with these pods."""
        return self._copy("occupancy", "occupied", "groups", "_places", "_orders", _pods=_by_node(bound))

    def _copy(self, *computed: str, **changes: Any) -> "LiveCluster":
        """The same with some changes, and without what was computed of what changed."""
        found = copy(self)
        for name in computed:
            found.__dict__.pop(name, None)
        found.__dict__ |= changes
        return found

    @property
    def fleet(self) -> Fleet:
        """The empty nodes.

        Raises:
            ConfigError: they are not known.
        """
        found = self.snapshot.fleet
        if found is None or not found.complete:
            raise ConfigError(
                "the nodes are unknown: add --cluster, or --fleet with what `kubectl get nodes -o yaml` prints"
            )
        return found

    @cached_property
    def _devices(self) -> dict[str, NodeDevices]:
        return {found.node.name: found for found in nodes_with_devices(self._nodes, self.fleet)}

    @cached_property
    def occupancy(self) -> Occupancy:
        """The devices of every node, with what pods hold of them."""
        bound = [pod for pods in self._pods.values() for pod in pods]
        return occupancy(self._nodes, bound, self.fleet, self.memo.states)

    @cached_property
    def occupied(self) -> Mapping[str, Sequence[OccupiedNode]]:
        """The nodes with devices of each family, with what pods hold of them."""
        return {
            family: [node for nodes in places.values() for node in nodes] for family, places in self._places.items()
        }

    @cached_property
    def _places(self) -> Mapping[str, Mapping[int, tuple[OccupiedNode, ...]]]:
        """The same by the numbers of the nodes; one with several kinds of devices of a family is there for each of them."""
        found: dict[str, dict[int, tuple[OccupiedNode, ...]]] = {}
        for node in self.occupancy.nodes:
            places = found.setdefault(node.family, {})
            places[node.number] = (*places.get(node.number, ()), node)
        return found

    @cached_property
    def _orders(self) -> Mapping[tuple[str, bool], list[_Ranked]]:
        """The numbers of the nodes of each family by what they have left: the most first, and the least first."""
        return {
            (family, emptiest): sorted(
                ranked for nodes in places.values() for ranked in _ranked(nodes, emptiest=emptiest)
            )
            for family, places in self._places.items()
            for emptiest in (True, False)
        }

    def in_order(self, families: Sequence[str], *, emptiest: bool) -> Iterator[Sequence[OccupiedNode]]:
        """The nodes that have devices of each of some families, by what they have left of the first.

        Args:
            families: their ids.
            emptiest: whether those with the most left come first, or those with the least.
        """
        alone = self._places.get(families[0], {}) if len(families) == 1 else {}
        for _, _, _, number in self._orders.get((families[0], emptiest), ()):
            nodes: Sequence[OccupiedNode] = alone.get(number, ())
            if len(nodes) != 1:
                nodes = self.devices_of(number, families)
            if nodes:
                yield nodes

    def devices_of(self, number: int, families: Sequence[str]) -> list[OccupiedNode]:
        """What a node has of some families, without what is in doubt; empty if it does not have devices of each of them."""
        found: list[OccupiedNode] = []
        for family in families:
            nodes = self._places.get(family, {}).get(number, ())
            sure = [node for node in nodes if not node.shape.doubt]
            if not sure:
                return []
            found += sure
        return found

    def findings(self) -> Iterator[tuple[BoundPod, LedgerFinding]]:
        """What is wrong with the assignments of pods."""
        for finding in self.occupancy.findings:
            yield from ((pod, finding) for pod in self._pods.get(finding.node, ()) if pod.key == finding.pod)

    def obstacle(self, node: int, pod: ReviewedPod) -> str:
        """What keeps a pod off the fleet's node `node`, whatever its devices are; empty if nothing does."""
        status = self.statuses.get(self.fleet.index.names[node], FREE)
        conf = self.snapshot.target.scheduler
        if status.locked is not None and conf is not None and conf.locks_nodes and pod.requests_family(Family.VGPU):
            left = status.locked - datetime.now(UTC)
            if left > timedelta(0):
                return f"locked for at most {format_age(left)} more, as a pod is starting there or has failed to"
        offers = self._nodes[node].allocatable
        lacks = (f"it does not offer {name}" for name in pod.names.others if not offers.get(name))
        return status.obstacle(pod.view) or next(lacks, "")

    def takes_pods(self, node: str) -> bool:
        """Whether a node is ready and not cordoned."""
        status = self.statuses.get(node, FREE)
        return status.ready and not status.cordoned

    def remaining(self, family: AnyFamily, nodes: Iterable[OccupiedNode]) -> AnyPart | None:
        """What live pods leave of some nodes; None if the family's engine cannot compute it."""
        return accountant(family).remaining(self.fleet.parts[family.id], nodes) if family.judges_use else None

    def number_of(self, node: str) -> int | None:
        """The number of a node with devices in the fleet; None if there is none of this name."""
        return self._devices[node].number if node in self._devices else None

    def with_pod(self, pod: BoundPod) -> "LiveCluster":
        """The same with one more pod on its node."""
        return self._with_pods_on(pod.node, (*self._pods.get(pod.node, ()), pod))

    def without_pod(self, pod: BoundPod) -> "LiveCluster":
        """The same without one of the pods."""
        return self._with_pods_on(pod.node, tuple(one for one in self._pods.get(pod.node, ()) if one.key != pod.key))

    def _with_pods_on(self, name: str, pods: tuple[BoundPod, ...]) -> "LiveCluster":
        """The same with these pods on one node."""
        devices, places, orders = self._devices.get(name), dict(self._places), dict(self._orders)
        changed = occupy_node(devices, pods, self.fleet.families, self.memo.states)[0] if devices is not None else []
        for family, some in groupby(changed, key=lambda node: node.family):
            nodes = tuple(some)
            number = nodes[0].number
            for emptiest in (True, False):
                order = orders[family, emptiest] = orders[family, emptiest].copy()
                for ranked in _ranked(places[family][number], emptiest=emptiest):
                    del order[bisect_left(order, ranked)]
                for ranked in _ranked(nodes, emptiest=emptiest):
                    insort(order, ranked)
            places[family] = {**places[family], number: nodes}
        return self._copy(
            "occupancy", "occupied", "groups", _pods={**self._pods, name: pods}, _places=places, _orders=orders
        )

    @cached_property
    def groups(self) -> Mapping[Key, Mapping[str, str]]:
        """The pods of each PodGroup that hold devices and stay, as NAMESPACE/NAME, with their nodes."""
        found: dict[Key, dict[str, str]] = {}
        for pod in chain.from_iterable(self._pods.values()):
            if pod.group and not pod.terminating:
                found.setdefault((pod.namespace, pod.group), {})[pod.key] = pod.node
        return found

    def siblings(self, pod: PodView) -> Mapping[str, str]:
        """The pods of its PodGroup that hold devices and stay, as NAMESPACE/NAME, with their nodes."""
        return self.groups.get((key_of(pod.raw)[0], group_of(pod.raw)), {})

    def cards_of_siblings(self, pod: PodView) -> Mapping[str, frozenset[str]]:
        """The UUIDs of the cards with such a pod, by the names of their nodes."""
        siblings, places = self.siblings(pod), self._places.get(Family.VGPU, {})
        known = [self._devices[name] for name in set(siblings.values()) if name in self._devices]
        found = {}
        for node in chain.from_iterable(places.get(each.number, ()) for each in known):
            held = [
                card.id for card in node.cards if any(f"{one.namespace}/{one.name}" in siblings for one in card.pods)
            ]
            if held:
                found[node.name] = frozenset(held)
        return found

    def node_without(self, node: OccupiedNode, pod: str) -> OccupiedNode:
        """A node once a pod has ended, which is given as NAMESPACE/NAME."""
        pods = [one for one in self._pods.get(node.name, ()) if one.key != pod]
        occupied, _ = occupy_node(self._devices[node.name], pods, self.fleet.families, self.memo.states)
        return next(one for one in occupied if one.shape is node.shape)


def _ranked(nodes: Sequence[OccupiedNode], *, emptiest: bool) -> Iterator[_Ranked]:
    """By what a node is compared to others, with its number; nothing if its devices are in doubt."""
    first = next((node for node in nodes if not node.shape.doubt), None)
    if first is not None:
        memory, cores, slices = first.free
        yield (-memory, -cores, -slices, first.number) if emptiest else (memory, cores, slices, first.number)


class StateMemo:
    """What is known of the states of nodes in use under some settings.

    Attributes:
        states: those that were seen.
    """

    def __init__(self) -> None:
        self.states = KnownStates()
        self._parts: dict[AnyShape, AnyPart] = {}
        self._verdicts: dict[Hashable, dict[Hashable, JudgedState]] = {}

    def part(self, family: AnyFamily, fleet: AnyPart, node: OccupiedNode) -> AnyPart:
        """What live pods leave of the first node with the state of one."""
        found = self._parts.get(node.left)
        if found is None:
            found = self._parts[node.left] = accountant(family).remaining(fleet, [node])
        return found

    def verdicts(self, content: Hashable) -> dict[Hashable, JudgedState]:
        """Those on one request, by what of a node matters to it."""
        if content not in self._verdicts and sum(map(len, self._verdicts.values())) > MAX_VERDICTS:
            self._verdicts.clear()
        return self._verdicts.setdefault(content, {})


class NodeVerdicts:
    """The verdicts of a family's engine on what a pod requests of it, each computed once for nodes with equal states.

    Attributes:
        requests: what the scheduler serves, each kind of device by itself; none if a quantity cannot be used.
        names_devices: whether nodes with equal states may differ, as one of them names single devices.
        excluded: the UUIDs of the cards that the pod does not get, as its PodGroup spreads; by the names of their nodes.
    """

    def __init__(self, live: LiveCluster, family: AnyFamily, pod: ReviewedPod) -> None:
        """Take the cluster, or an earlier or later state of it; a family that judges nodes in use; and a pod."""
        self._memo, self._fleet = live.memo, live.fleet.parts[family.id]
        self._family = family
        usable, content = is_usable(pod, family.id), request_content(pod)
        self.requests = [each for each in pod.requests_for(family.id) if usable and explainer(family).is_served(each)]
        self.excluded = live.cards_of_siblings(pod.view) if pod.spreads and family.id == Family.VGPU else {}
        self.names_devices = bool(self.excluded) or any(map(explainer(family).names_devices, self.requests))
        self._known = [
            (each, self._memo.verdicts((family.id, number, content))) for number, each in enumerate(self.requests)
        ]

    def on(self, nodes: Sequence[OccupiedNode]) -> JudgedState:
        """The verdict on one node, whatever its labels are, given as what it has of each kind of device.

        That on the first request which does not fit there; None if it is refused. Of several nodes, on the first request which
        none of them takes.
        """
        for request, known in self._known:
            found = [self._on(request, known, node) for node in nodes]
            if not any(isinstance(each, Fits) for each in found):
                tight = (each for each in found if isinstance(each, FitsTightly))
                return next(tight, None) or next((each for each in found if each is not None), None)
        return Fits()

    def assignment(self, nodes: Sequence[OccupiedNode]) -> dict[str, str]:
        """The annotations that the scheduler would write when it binds the pod to a node that takes it."""
        accounts, explains = accountant(self._family), explainer(self._family)
        written = {self._family.node_annotation: nodes[0].name}
        for request, known in self._known:
            node = next(node for node in nodes if isinstance(self._on(request, known, node), Fits))
            node, own = self._spread(node, request)
            part = accounts.remaining(self._fleet, [node])
            taken, _ = explains.taken(own, explains.alone(own, part, part.shapes[0]))
            written |= accounts.assignment(taken, node)
        return written

    def _spread(self, node: OccupiedNode, request: Any) -> tuple[OccupiedNode, Any]:
        """A node and a request, so that the pod gets none of the cards that its group has there if it spreads."""
        excluded = self.excluded.get(node.name)
        if not excluded:
            return node, request
        cards = [cast("Card", card.state) for card in node.cards]
        cards = [
            replace(card, reserved=card.reserved | SPREAD) if held.id in excluded else card
            for card, held in zip(cards, node.cards, strict=True)
        ]
        state = node.left.state._replace(devices=tuple(cards))
        own = replace(request, constraints=request.constraints._replace(rules=request.constraints.rules | SPREAD))
        return replace(node, left=replace(node.left, state=state)), own

    def _on(self, request: Any, known: dict[Hashable, JudgedState], node: OccupiedNode) -> JudgedState:
        if node.family != self._family.id:
            return None
        node, request = self._spread(node, request)
        named = explainer(self._family).names_devices(request)
        key = (node.left, node.name) if named else node.left
        if key not in known:
            part = (
                accountant(self._family).remaining(self._fleet, [node])
                if named
                else self._memo.part(self._family, self._fleet, node)
            )
            verdict = self._family.judge(request, part, None)
            known[key] = None if isinstance(verdict, Never) else verdict
        return known[key]


def request_content(pod: ReviewedPod) -> object:
    """Equal for pods that get the same verdict from every engine."""
    amounts = tuple((one.container.kind, one.container.index, one.resource, one.value) for one in pod.amounts)
    author = tuple(sorted((key, str(pod.view.annotations.get(key))) for key in names.AUTHOR_ANNOTATIONS))
    rules = pod.context.cluster.target.rules_of(pod.view.labels)
    return amounts, author, tuple(pod.names.others), pod.view.selector, repr(pod.view.spec.get("tolerations")), rules


def _by_node(bound: Iterable[BoundPod]) -> dict[str, tuple[BoundPod, ...]]:
    found: dict[str, dict[str, BoundPod]] = {}
    for pod in bound:
        found.setdefault(pod.node, {}).setdefault(pod.key, pod)
    return {node: tuple(pods.values()) for node, pods in found.items()}
