"""What all families' explanations have in common, ready to be written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from webhook.devices.bits import lowest
from webhook.devices.explanation import nodes_left
from webhook.devices.families import Family
from webhook.devices.nodes import Index
from webhook.devices.selectors import NodeSelector
from webhook.devices.shapes import SAMPLE, Shape
from webhook.render.drawing import Drawing
from webhook.render.terminal import Piece

Sentence = tuple[Piece, str]  # a mark, and what it says


@dataclass(frozen=True, slots=True)
class Selected:
    """What a pod's selector leaves of a shape's nodes.

    Attributes:
        words: the fields of the pod that select.
        nodes: how many are left.
        names: up to three of them.
    """

    words: str
    nodes: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What one shape says.

    Attributes:
        shape: the shape.
        placement: `fits`, `tight`, `never` or `unknown`.
        devices: what it has, for people.
        sentences: where the pod's devices lie; or what refuses, and what would help.
        facts: what it has, as JSON.
        drawing: a node of it, with what the pod gets there.
        slices, refusal, change: the same as the sentences, as JSON.
    """

    shape: Shape
    placement: str
    devices: str
    sentences: tuple[Sentence, ...]
    facts: Mapping[str, Any]
    drawing: Drawing
    slices: Mapping[str, Any] | None = None
    refusal: Mapping[str, Any] | None = None
    change: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """What the nodes of one family say to one pod.

    Attributes:
        path: where the pod stands in its object; empty for a pod itself.
        family: the family.
        told: what each shape says; None if the pod's quantities have to be put right first.
        more: how many shapes are not told.
        missing: what to say if the fleet has no such node.
        index: which nodes a selector leaves.
        nodes: the pod's selector; None if it has none, or one that leaves no node of the family.
        ignored: the fields of a selector that leaves no node.
        skipped: nodes that the scheduler skips, each with the resource name that it lacks.
        chip: of which NPUs, where the family has several kinds.
    """

    path: str
    family: Family
    told: tuple[Told, ...] | None
    more: int
    missing: str
    index: Index
    nodes: NodeSelector | None = None
    ignored: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    chip: str = ""

    def selected(self, shape: Shape) -> Selected | None:
        """What the pod's selector leaves of a shape; None if it has none, or nobody knows."""
        if self.nodes is None or shape.declared:
            return None
        left = nodes_left(shape, self.nodes, self.index)
        names = tuple(self.index.names[number] for number in islice(_numbers(left), SAMPLE))
        return Selected(self.nodes.words, left.bit_count(), names)


def _numbers(members: int) -> Iterator[int]:
    while members:
        yield lowest(members)
        members &= members - 1
