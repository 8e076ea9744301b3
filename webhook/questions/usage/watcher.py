"""Keeps what pods hold of every node up to date, in a thread: of 5,000 nodes and 20,000 pods it takes a second or two."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import NamedTuple

from webhook.console.background import Background
from webhook.console.state import ConsoleState, Sources
from webhook.devices import registry
from webhook.devices.ledger import JsonAmounts, LedgerFinding, OccupiedNode
from webhook.devices.usage import FamilyUsage, by_family, capacity, holders, total
from webhook.errors import ConfigError, WebhookError
from webhook.live.devices import LiveCluster
from webhook.live.reader import Reader
from webhook.snapshot import Snapshot

PAUSE_SECONDS = 2.0  # at least, between two computations
FIRST_SECONDS = 5.0  # for the first one, while a page waits


def follow_usage(sources: Sources) -> "UsageWatcher | None":
    """Follow what pods hold; None if no pods are read."""
    if sources.reader is None:
        return None
    watcher = UsageWatcher(sources.reader)
    watcher.current(0)  # starts to compute
    return watcher


def usage_of(state: ConsoleState) -> "UsageWatcher | None":
    """What pods hold, as the console follows it; None if it reads no pods."""
    watcher: UsageWatcher | None = state.followed.get("usage")
    return watcher


class NodeUsage(NamedTuple):
    """A node with what the scheduler accounts of the devices of one family, in sum.

    Attributes:
        node: the node.
        capacity, accounted: of all its devices; a device that is not cut counts as one slice, 0 is unknown.
        pods: how many pods hold something.
        namespaces: theirs.
        findings: what is wrong with assignments there.
    """

    node: OccupiedNode
    capacity: JsonAmounts
    accounted: JsonAmounts
    pods: int
    namespaces: frozenset[str]
    findings: tuple[LedgerFinding, ...]

    @property
    def share(self) -> float:
        """How full it is: of memory, or of cores or slices where no memory is known."""
        for name in ("memory", "cores", "slices"):
            if most := getattr(self.capacity, name):
                return float(getattr(self.accounted, name) / most)
        return 0.0


class CurrentUsage(NamedTuple):
    """What pods hold at one moment.

    Attributes:
        version: another one for another content.
        nodes: in the fleet's order; a node with devices of several families is listed for each of them.
        findings: what is wrong with assignments; those about nodes without devices too.
        namespaces: by namespace, how many MiB its pods hold on all nodes; the one with the most first.
        pods: how many pods hold something.
        totals: of all nodes, by family.
        live: what it was computed from.
    """

    version: int
    nodes: tuple[NodeUsage, ...]
    findings: tuple[LedgerFinding, ...]
    namespaces: dict[str, int]
    pods: int
    totals: tuple[FamilyUsage, ...]
    live: LiveCluster


class _Computed(NamedTuple):
    """What pods hold, and the settings and pods that it was computed from; None if the nodes are not known."""

    snapshot: Snapshot
    pods: Hashable
    found: CurrentUsage | None


class UsageWatcher:
    """Has what pods hold, computed anew in a thread when nodes, settings or pods change."""

    def __init__(self, reader: Reader, clock: Callable[[], float] = time.monotonic) -> None:
        """Take what to read; nothing is computed yet.

        Args:
            reader: of the pods, and of the settings.
            clock: in seconds.
        """
        self._reader = reader
        self._versions = count(1)
        self._work = Background("usage", self._compute, clock)
        self._failure: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the pods are unknown or out of date, and what to do; None if they are up to date."""
        return self._reader.problem or self._failure

    def live(self) -> LiveCluster:
        """What live pods leave of the devices, as it was found last.

        Raises:
            ConfigError: the pods or the nodes are not known.
        """
        current = self.current()
        if current is None:
            raise ConfigError(self.problem or "nodes and pods are not read yet; try again in some seconds")
        return current.live

    def current(self, wait: float = FIRST_SECONDS) -> CurrentUsage | None:
        """What was found last; the next result is on its way if something has changed.

        Args:
            wait: seconds for the first result.

        Returns:
            None if there is none yet, or if the pods or the nodes are not known.
        """
        pods = self._reader.version
        if pods is not None:
            snapshot = self._reader.settings()[1]
            self._work.begin(lambda: self._is_due(snapshot, pods))
            if self._found is None:
                self._work.wait(wait)
        return self._found

    @property
    def _found(self) -> CurrentUsage | None:
        return self._work.last.found if self._work.last is not None else None

    def _is_due(self, snapshot: Snapshot, pods: Hashable) -> bool:
        last = self._work.last
        if last is not None and last.snapshot is snapshot and last.pods == pods:
            return False
        return self._found is None or self._work.clock() - self._work.ended >= PAUSE_SECONDS

    def _compute(self) -> _Computed | None:
        try:
            inputs, snapshot = self._reader.settings()
            version = self._reader.version
            if version is None:
                return self._work.last
            known = snapshot.fleet is not None and inputs.nodes is not None
            usage = summed_up(next(self._versions), self._reader.live()) if known else None
        except WebhookError as error:
            self._failure = str(error)
            return self._work.last
        self._failure = None
        return _Computed(snapshot, version, usage)


def summed_up(version: int, live: LiveCluster) -> CurrentUsage:
    """What pods hold of each node."""
    occupancy = live.occupancy
    by_node: dict[str, list[LedgerFinding]] = {}
    for finding in occupancy.findings:
        by_node.setdefault(finding.node, []).append(finding)
    held: Counter[str] = Counter()
    in_mebibytes = {family.id for family in registry.FAMILIES if family.unit}
    for node, _, holder in holders(occupancy.nodes):
        held[holder.namespace] += holder.memory if node.family in in_mebibytes else 0
    namespaces = dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))
    nodes = tuple(_summed(node, tuple(by_node.get(node.name, ()))) for node in occupancy.nodes)
    totals = tuple(by_family(occupancy.nodes, live.snapshot.families))
    return CurrentUsage(version, nodes, occupancy.findings, namespaces, len(_pods(occupancy.nodes)), totals, live)


def _summed(node: OccupiedNode, findings: tuple[LedgerFinding, ...]) -> NodeUsage:
    pods = _pods([node])
    return NodeUsage(
        node=node,
        capacity=total(map(capacity, node.cards)),
        accounted=total(card.accounted for card in node.cards),
        pods=len(pods),
        namespaces=frozenset(namespace for namespace, _ in pods),
        findings=findings,
    )


def _pods(nodes: Iterable[OccupiedNode]) -> set[tuple[str, str]]:
    """The pods that hold something, by namespace and name."""
    return {(holder.namespace, holder.name) for _, _, holder in holders(nodes)}
