"""What can be said of a pod and a fleet: can any node, empty, ever take it?

Never "is it full now": more load never makes an impossible pod possible. The answer is exact, or it is `Unknown`.
"""

from dataclasses import dataclass
from enum import StrEnum

from webhook.pod.view import Container


class Cause(StrEnum):
    """Why no node can ever take a pod; each is the id of the rule that says so."""

    CARD_COUNT = "card-count"
    NO_ELIGIBLE_CARD = "no-eligible-card"
    MEMORY_ABOVE_CARD = "memory-above-card"
    SPLIT_COUNT = "split-count"
    FITS_NO_NODE = "fits-no-node"


@dataclass(frozen=True, slots=True)
class Fits:
    """Some node takes the pod when it is empty."""


@dataclass(frozen=True, slots=True)
class FitsTightly:
    """A placement exists on a node, yet the scheduler's greedy order misses it while the node is empty."""

    node: str


@dataclass(frozen=True, slots=True)
class Never:
    """No placement exists on any node."""

    cause: Cause


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be said."""

    why: str


Feasibility = Fits | FitsTightly | Never | Unknown


@dataclass(frozen=True, slots=True)
class Shortfall:
    """No node can ever take what a pod asks of one resource.

    Attributes:
        cause: why.
        container: who asks for too much; None if it is the pod as a whole.
        resource: the name.
        asked: how much.
        most: the most that any node has for it.
        node: the node that has so much; empty if there is none.
    """

    cause: Cause
    container: Container | None
    resource: str
    asked: int
    most: int = 0
    node: str = ""
