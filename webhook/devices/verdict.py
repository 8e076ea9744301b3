"""The verdict of a device family on a pod and a fleet: can any node, empty, ever take the pod?

Never "is it full now": more load never makes an impossible pod possible. The verdict is exact, or it is `Unknown`, as the work
of one request is bounded.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from webhook.pod.view import Container


class Reason(Enum):
    """Why a node, or a whole fleet, cannot take a pod: the rule that reports it, and a short name for people."""

    NODES = "node-selector-unmatched", "node labels"
    NO_CARD = "no-eligible-card", "no such card"
    HEALTH = "no-eligible-card", "health"
    UNREAD = "no-eligible-card", "cores that this Volcano does not read"
    MODE = "no-eligible-card", "mode"
    TYPE = "no-eligible-card", "type"
    UUID = "no-eligible-card", "uuid"
    CARDS = "card-count", "number of cards"
    NPUS = "card-count", "number of NPUs"
    MEMORY = "memory-above-card", "memory"
    MIG_INSTANCE = "memory-above-card", "MIG instance"
    SPLIT = "split-count", "split"
    NPUS_TOGETHER = "split-count", "number of NPUs"
    CORES = "fits-no-node", "cores"
    RESERVED = "fits-no-node", "reserved"
    EXCLUSIVE = "fits-no-node", "exclusive"
    TOTALS = "fits-no-node", "node totals"
    LEFT = "fits-no-node", "NPUs left"
    APART = "fits-no-node", "devices of several kinds"
    TOGETHER = "fits-no-node", "all containers together"
    OVERSIZE = "ascend-memory-oversize", "memory above an NPU"
    PARTS = "ascend-partial-several", "parts of several NPUs"
    TEMPLATE = "fits-no-node", "template"
    LABEL = "ascend-core-invalid", "label"

    def __init__(self, rule: str, words: str) -> None:
        self.rule = rule
        self.words = words

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Fits:
    """Some node takes the pod when it is empty."""

    placement: ClassVar[str] = "fits"


@dataclass(frozen=True, slots=True)
class FitsTightly:
    """A placement exists on a node, yet the scheduler's greedy order misses it while the node is empty."""

    placement: ClassVar[str] = "tight"
    node: str


@dataclass(frozen=True, slots=True)
class Never:
    """No placement exists on any node.

    Attributes:
        reason: why.
        container: which one requests too much; None if it is the pod as a whole.
        resource: the name, annotation or label that it is about; empty if it is not about one alone.
        requested: how much of the resource is requested.
        most: the most that any node has of it.
        node: the node that has it; empty if no node does.
        device: the index of the device that refuses first; None if it is not about one alone.
    """

    placement: ClassVar[str] = "never"
    reason: Reason
    container: Container | None = None
    resource: str = ""
    requested: int = 0
    most: int = 0
    node: str = ""
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no answer.

    Attributes:
        why: for people.
    """

    placement: ClassVar[str] = "unknown"
    why: str


Verdict = Fits | FitsTightly | Never | Unknown


WORK_LIMIT = 30_000  # steps of one request, all its pods together: some 30 ms


class SearchBudget:
    """Bounds the work of one request: a pod made to be expensive gets UNKNOWN, never a slow answer."""

    __slots__ = ("left",)

    def __init__(self, steps: int = WORK_LIMIT) -> None:
        """Allow so many steps, each some look at a card: about a microsecond."""
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False when there are none left."""
        self.left -= steps
        return self.left >= 0
