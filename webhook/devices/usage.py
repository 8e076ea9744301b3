"""What an occupancy comes to: totals of a family, the largest pods that fit now, and what each namespace and pod holds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from webhook.devices.family import AnyFamily
from webhook.devices.ledger import Holder, JsonAmounts, LedgerFinding, OccupiedCard, OccupiedNode
from webhook.devices.model import NOTHING, Amounts
from webhook.devices.occupancy import Occupancy, accountant
from webhook.devices.registry import Families

NUMBERS = (1, 2, 4, 8, 16)  # of devices of one pod for which the largest slices are computed


@dataclass(frozen=True, slots=True)
class LargestPod:
    """The largest pod of one container that a node takes now.

    Attributes:
        number: of devices that it requests.
        memory, cores: the most that it can have of each of them, as in `Amounts`.
        node: a node that takes it.
    """

    number: int
    memory: int
    cores: int
    node: str


@dataclass(frozen=True, slots=True)
class FamilyUsage:
    """The totals of one family.

    Attributes:
        family: its id.
        nodes, devices: how many there are.
        capacity, accounted, assigned: as of each device. Without a split, a device counts as one slice.
        free: what the devices can still give, one slice of each at its largest.
        unusable: the free memory of devices that cannot give a slice of a requested size; None if no size is requested.
        largest: for each number of devices, the largest pod that fits now.
        idle: how many devices of each model nobody holds anything of, and a pod can get.
    """

    family: str
    nodes: int
    devices: int
    capacity: JsonAmounts
    accounted: JsonAmounts
    assigned: JsonAmounts
    free: JsonAmounts
    unusable: int | None
    largest: tuple[LargestPod, ...]
    idle: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """All that `usage` shows.

    Attributes:
        nodes: the devices of every node.
        totals: of each family, before nodes and pods are selected.
        findings: what is wrong with the assignments.
    """

    nodes: tuple[OccupiedNode, ...]
    totals: tuple[FamilyUsage, ...]
    findings: tuple[LedgerFinding, ...]


def report(
    occupied: Occupancy, families: Families, names: Sequence[str] = (), namespaces: Sequence[str] = (), size: int = 0
) -> UsageReport:
    """Sum up an occupancy.

    Args:
        occupied: what pods hold.
        families: the device families.
        names: of the nodes to select; none for all.
        namespaces: whose pods to select, and the devices of which they hold something; none for all.
        size: memory of a slice, in MiB, to compute what is unusable for it; 0 for none.
    """
    nodes = [node for node in occupied.nodes if not names or node.name in names]
    totals = tuple(by_family(nodes, families, size))
    findings = [one for one in occupied.findings if not names or one.node in names]
    if namespaces:
        nodes = list(_of_namespaces(nodes, frozenset(namespaces)))
        findings = [one for one in findings if one.pod.partition("/")[0] in namespaces]
    return UsageReport(tuple(nodes), totals, tuple(findings))


def _of_namespaces(nodes: Iterable[OccupiedNode], namespaces: frozenset[str]) -> Iterator[OccupiedNode]:
    for node in nodes:
        cards = []
        for card in node.cards:
            own = [holder for holder in card.pods if holder.namespace in namespaces]
            if own:
                cards.append(replace(card, pods=own))
        if cards:
            yield replace(node, cards=tuple(cards))


def by_family(nodes: Sequence[OccupiedNode], families: Families, size: int = 0) -> Iterator[FamilyUsage]:
    """The totals of some nodes; `size` as of `report`."""
    for family in dict.fromkeys(node.family for node in nodes):
        yield _totals(families[family], [node for node in nodes if node.family == family], size)


def _totals(family: AnyFamily, nodes: Sequence[OccupiedNode], size: int) -> FamilyUsage:
    cards = [card for node in nodes for card in node.cards]
    return FamilyUsage(
        family=family.id,
        nodes=len(nodes),
        devices=len(cards),
        capacity=total(map(capacity, cards)),
        accounted=total(card.accounted for card in cards),
        assigned=total(card.assigned for card in cards),
        free=total(card.free for card in cards),
        unusable=sum(unaccounted(card) for card in cards if card.free.memory < size) if size else None,
        largest=tuple(largest_pods(family, nodes)),
        idle=dict(
            Counter(card.type for node in nodes if not node.shape.doubt for card in node.cards if _is_idle(card))
        ),
    )


def _is_idle(card: OccupiedCard) -> bool:
    return not card.pods and card.accounted == NOTHING and card.free != NOTHING


def total(amounts: Iterable[Amounts]) -> Amounts:
    """The sum."""
    return reduce(Amounts.plus, amounts, NOTHING)


def capacity(card: OccupiedCard) -> Amounts:
    """What a device has; 0 of what is not known."""
    return Amounts(1 if card.split is None else card.split, card.memory or 0, card.cores or 0)


def unaccounted(card: OccupiedCard) -> int:
    """The memory of a device that is not accounted."""
    return max((card.memory or 0) - card.accounted.memory, 0)


def largest_pods(family: AnyFamily, nodes: Sequence[OccupiedNode]) -> Iterator[LargestPod]:
    """For each number of devices the largest pod."""
    for number in NUMBERS if accountant(family).gives_several else NUMBERS[:1]:
        largest = [one for node in nodes if (one := _largest_on(node, number, family)) is not None]
        if largest:
            yield max(largest, key=lambda one: (one.memory, one.cores))


def _largest_on(node: OccupiedNode, number: int, family: AnyFamily) -> LargestPod | None:
    """The largest pod with so many devices that a node takes now."""
    if node.shape.doubt:
        return None
    able = sorted(((card.free.memory, card.free.cores) for card in node.cards if card.free != NOTHING), reverse=True)
    if number > len(able):
        return None
    cores = min(cores for _, cores in able[:number])
    idle, memory = accountant(family).idle_number(node), able[number - 1][0]
    if idle is not None and number > idle and number > 1:
        return None
    return LargestPod(number, memory, cores, node.name) if memory or cores else None


@dataclass(frozen=True, slots=True)
class HolderUsage:
    """What a namespace or a pod holds.

    Attributes:
        family: the family of the devices.
        pods: how many pods.
        held: of all devices together.
    """

    family: str
    pods: int
    held: JsonAmounts


def by_namespace(nodes: Iterable[OccupiedNode]) -> dict[tuple[str, str], HolderUsage]:
    """What each namespace holds of each family, by namespace and family."""
    held: dict[tuple[str, str], Amounts] = {}
    pods: dict[tuple[str, str], set[str]] = {}
    for node, _, holder in holders(nodes):
        key = (holder.namespace, node.family)
        held[key] = held.get(key, NOTHING).plus(Amounts(1, holder.memory, holder.cores))
        pods.setdefault(key, set()).add(holder.name)
    return {key: HolderUsage(key[1], len(pods[key]), held[key]) for key in sorted(held)}


def holders(nodes: Iterable[OccupiedNode]) -> Iterator[tuple[OccupiedNode, OccupiedCard, Holder]]:
    """Everything that is held, with its place."""
    for node in nodes:
        for card in node.cards:
            for holder in card.pods:
                yield node, card, holder
