"""`/metrics` of the console: what is held of the devices, for Prometheus.

The admission server exposes none of it, because it reads no pods. The number of time series is limited: the devices of a
family are always summed up, single ones are listed up to MAX_CARDS, and of the namespaces those that hold most.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.console.state import NO_PODS, ConsoleState
from webhook.devices.ledger import LedgerRule
from webhook.devices.model import NOTHING, Amounts
from webhook.devices.usage import UsageReport, by_namespace, capacity, report
from webhook.errors import ConfigError
from webhook.live.devices import LiveCluster
from webhook.names import METRIC_PREFIX as PREFIX
from webhook.questions.usage.watcher import usage_of

MAX_CARDS = 2_000  # listed one by one, in the order of the nodes
MAX_NAMESPACES = 500
OTHERS = "_others"  # no namespace has such a name

_UNITS = {"slices": "slices", "memory": "memory_mib", "cores": "cores"}
_FAMILY, _CARD, _NAMESPACE = ("family",), ("family", "node", "card"), ("family", "namespace")

# Each with its description and its labels; the amounts of gpushare cards are in the unit of their device plugin.
GAUGES = {
    **{
        f"devices_{what}_{unit}": (f"{text}, of all devices of a family.", _FAMILY)
        for what, text in {
            "capacity": "What there is",
            "accounted": "What the scheduler counts",
            "assigned": "What live pods hold",
            "free": "What one more slice of each device could get",
        }.items()
        for unit in _UNITS.values()
    },
    "card_capacity_memory_mib": ("The memory of a device.", _CARD),
    "card_accounted_memory_mib": ("The memory of a device that the scheduler counts as used.", _CARD),
    "card_assigned_memory_mib": ("The memory of a device that live pods hold.", _CARD),
    "card_accounted_slices": ("The slices of a device that the scheduler counts as used.", _CARD),
    "card_accounted_cores": ("The cores of a device that the scheduler counts as used.", _CARD),
    "cards_left_out": (f"Devices beyond the first {MAX_CARDS:,}, which are not listed one by one.", ()),
    **{
        f"namespace_assigned_{unit}": (f"What the pods of a namespace hold; {OTHERS} sums up small ones.", _NAMESPACE)
        for unit in _UNITS.values()
    },
    "largest_pod_memory_mib": (
        "The most memory of each device that a pod with so many can get now.",
        ("family", "devices"),
    ),
    "assignment_findings": ("What is wrong with assignments, as `vgpu-webhook usage` lists it.", ("rule",)),
}


def exposition(state: ConsoleState) -> bytes:
    """What live pods hold, in the text format of Prometheus.

    Raises:
        ConfigError: the pods or the nodes are not known.
    """
    watcher = usage_of(state)
    if watcher is None:
        raise ConfigError(NO_PODS)
    return _exposition(watcher.live())


@lru_cache(maxsize=1)  # until something changes
def _exposition(live: LiveCluster) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(UsageMetrics(report(live.occupancy, live.snapshot.families)))
    return generate_latest(registry)


Sample = tuple[str, tuple[str, ...], float]


class UsageMetrics(Collector):
    """The usage of the devices as metrics."""

    def __init__(self, usage: UsageReport, *, cards: int = MAX_CARDS, namespaces: int = MAX_NAMESPACES) -> None:
        """Take the usage of all nodes, and how many cards and namespaces are listed one by one."""
        self._usage = usage
        self._most_cards = cards
        self._most_namespaces = namespaces

    def collect(self) -> Iterator[Metric]:
        """Every metric, also those without a sample."""
        made = {name: GaugeMetricFamily(PREFIX + name, text, labels=labels) for name, (text, labels) in GAUGES.items()}
        for samples in (self._families(), self._cards(), self._namespaces(), self._findings()):
            for name, labels, value in samples:
                made[name].add_metric(labels, value)
        yield from made.values()

    def _families(self) -> Iterator[Sample]:
        for one in self._usage.totals:
            every = {"capacity": one.capacity, "accounted": one.accounted, "assigned": one.assigned, "free": one.free}
            for what, amounts in every.items():
                yield from _amounts(f"devices_{what}", (one.family,), amounts)
            for big in one.largest:
                yield "largest_pod_memory_mib", (one.family, str(big.number)), big.memory

    def _cards(self) -> Iterator[Sample]:
        left = self._most_cards
        for node in self._usage.nodes:
            for card in node.cards[: max(left, 0)]:
                labels = (node.family, node.name, card.id)
                yield "card_capacity_memory_mib", labels, capacity(card).memory
                yield "card_accounted_memory_mib", labels, card.accounted.memory
                yield "card_assigned_memory_mib", labels, card.assigned.memory
                yield "card_accounted_slices", labels, card.accounted.slices
                yield "card_accounted_cores", labels, card.accounted.cores
            left -= len(node.cards)
        yield "cards_left_out", (), max(-left, 0)

    def _namespaces(self) -> Iterator[Sample]:
        largest = sorted(by_namespace(self._usage.nodes).items(), key=lambda one: one[1].held.memory, reverse=True)
        others: dict[str, Amounts] = {}
        for number, ((namespace, family), usage) in enumerate(largest):
            if number < self._most_namespaces:
                yield from _amounts("namespace_assigned", (family, namespace), usage.held)
            else:
                others[family] = others.get(family, NOTHING).plus(usage.held)
        for family, held in others.items():
            yield from _amounts("namespace_assigned", (family, OTHERS), held)

    def _findings(self) -> Iterator[Sample]:
        counts = Counter(finding.rule for finding in self._usage.findings)
        for rule in LedgerRule:
            yield "assignment_findings", (rule.value,), counts[rule]


def _amounts(name: str, labels: tuple[str, ...], amounts: Amounts) -> Iterator[Sample]:
    for what, unit in _UNITS.items():
        yield f"{name}_{unit}", labels, getattr(amounts, what)
