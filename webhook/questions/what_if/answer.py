"""What would happen to waiting and running pods if nodes came or went, or if cards were registered in another way."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.devices.family import AnyFamily
from webhook.devices.ledger import JsonAmounts, LedgerFinding, OccupiedNode
from webhook.devices.model import NOTHING
from webhook.devices.node_changes import NodeChange, node_changes
from webhook.devices.occupancy import accountant
from webhook.devices.usage import LargestPod, capacity, largest_pods, total
from webhook.live.devices import LiveCluster
from webhook.live.reader import LiveState
from webhook.questions.what_if.changes import FleetChange
from webhook.questions.what_if.search import PodFate, displaced, search
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Headroom:
    """The largest that fits of the devices of one family.

    Attributes:
        family: its id.
        slice: the largest slice of one device; None if there is none.
        cards: the most whole devices on one node; node: this node.
        gang: how many pods of one whole device each fit at once.
    """

    family: str
    slice: LargestPod | None
    cards: int
    node: str
    gang: int


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What is accounted of the devices of one family on one node.

    Attributes:
        node, family: which.
        before, after: what is accounted; None where the node does not exist.
        capacity: of all its devices; after the change if it exists then.
    """

    node: str
    family: str
    before: JsonAmounts | None
    after: JsonAmounts | None
    capacity: JsonAmounts


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What would happen.

    Attributes:
        waiting: the pods that wait for devices, in the order in which the scheduler takes them, at most 2,000 in all.
        moved: the pods of drained nodes, likewise.
        displaced: running pods that keep their node now, but would not fit again if they were created again.
        more: how many waiting or moved pods are left out.
        findings: what would be wrong with assignments that is not wrong now.
        room_before, room: the largest that fits, now and once those that start have started.
        nodes: what is accounted of each node, now and then.
        node_changes: which nodes gain or lose their devices, and what they lack.
    """

    waiting: tuple[PodFate, ...]
    moved: tuple[PodFate, ...]
    displaced: tuple[PodFate, ...]
    more: int
    findings: tuple[LedgerFinding, ...]
    room_before: tuple[Headroom, ...]
    room: tuple[Headroom, ...]
    nodes: tuple[NodeUse, ...]
    node_changes: tuple[NodeChange, ...]

    @property
    def loses(self) -> bool:
        """Whether running pods would not fit again."""
        return bool(self.displaced) or not all(pod.after.placed for pod in self.moved)


def what_if(state: LiveState, inputs: SnapshotInputs, change: FleetChange) -> WhatIf:
    """Look ahead.

    Args:
        state: a cluster at one moment, with its running pods.
        inputs: what its settings were built from.
        change: what to change.

    Raises:
        ConfigError: the nodes are not known, or the change cannot be made.
    """
    after = change.applied(state, inputs)
    outcome = search(state, after, change.drain)
    known = set(state.live.occupancy.findings)
    return WhatIf(
        waiting=tuple(fate for fate in outcome.fates if not fate.held),
        moved=tuple(fate for fate in outcome.fates if fate.held),
        displaced=tuple(displaced(state, after, change) if change.reads_cards_anew else ()),
        more=outcome.more,
        findings=tuple(one for one in after.live.occupancy.findings if one not in known),
        room_before=tuple(_rooms(state.live)),
        room=tuple(_rooms(outcome.live)),
        nodes=tuple(_uses(state.live, outcome.live)),
        node_changes=tuple(_node_changes(state.live.snapshot, after.live.snapshot)),
    )


def _rooms(live: LiveCluster) -> Iterator[Headroom]:
    for family in live.snapshot.families.values():
        nodes = [one for one in live.occupied.get(family.id, ()) if live.takes_pods(one.name) and not one.shape.doubt]
        if not nodes or not family.judges_use:
            continue
        whole = [(_whole(family, node), node.name) for node in nodes]
        most, name = max(whole, key=lambda pair: pair[0])
        slice_ = next((one for one in largest_pods(family, nodes) if one.number == 1), None)
        yield Headroom(family.id, slice_, most, name if most else "", sum(count for count, _ in whole))


def _whole(family: AnyFamily, node: OccupiedNode) -> int:
    """How many whole devices one pod, or pods of one each, get of a node."""
    free = [card for card in node.cards if card.free != NOTHING and card.accounted == NOTHING]
    idle = accountant(family).idle_number(node)
    return len(free) if idle is None else min(len(free), idle)


def _node_changes(before: Snapshot, after: Snapshot) -> Iterator[NodeChange]:
    if before.fleet is not None and after.fleet is not None:
        yield from node_changes(before.fleet, after.fleet)


def _uses(before: LiveCluster, after: LiveCluster) -> Iterator[NodeUse]:
    old, new = (
        {(node.name, node.family): node.cards for nodes in live.occupied.values() for node in nodes}
        for live in (before, after)
    )
    for key, cards in {**old, **new}.items():
        was, now = (total(card.accounted for card in side[key]) if key in side else None for side in (old, new))
        yield NodeUse(*key, was, now, total(map(capacity, cards)))
