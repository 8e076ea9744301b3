"""What one kind of node says to a pod. Values only, and every verdict is an answer of a family's engine."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from webhook.devices.nearest import Change, Enquiry, Lower, nearest_change
from webhook.devices.nodes import Index
from webhook.devices.selectors import NodeSelector
from webhook.devices.shapes import Shape
from webhook.devices.verdict import Fits, Shortfall, Unknown
from webhook.pod.view import Container

MAX_SHAPES = 50  # explained; a pod and a fleet made to be expensive end somewhere

Kind = TypeVar("Kind", bound=Shape)
Given = TypeVar("Given")
Question = TypeVar("Question")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What refuses first.

    Attributes:
        reason: in a word or two.
        container: who asks for too much; None if it is the pod as a whole.
        resource: the name, annotation or label that it is about, if any.
        asked: how much.
        most: what the node has for it.
    """

    reason: StrEnum
    container: Container | None = None
    resource: str = ""
    asked: int = 0
    most: int = 0


Answer = Fits | Shortfall | Refusal | Unknown


@dataclass(frozen=True, slots=True)
class Explanation(Generic[Kind, Given]):
    """What one shape says to a pod: what it gives, what refuses, or why nothing can be said.

    Attributes:
        shape: the shape.
        given: what the pod gets on an empty node of it; None unless it fits.
        refusal: what refuses; None unless the pod can never fit.
        change: the nearest single change with which it fits.
        searched: False if the search for a change was cut short.
        unknown: why nothing can be said; empty where something can.
    """

    shape: Kind
    given: Given | None = None
    refusal: Refusal | None = None
    change: Change | None = None
    searched: bool = True
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Case(Generic[Kind, Given, Question]):
    """What a family has to say of one question to one shape.

    Attributes:
        shape: the shape.
        asked: the question.
        judge: the engine's answer for an empty node of the shape.
        why: what refuses first, where the engine says that something does.
        given: what the pod gets, if it fits.
        without: words that may go, each with what is asked then.
        lower: quantities that could be lowered.
    """

    shape: Kind
    asked: Question
    judge: Callable[[Question], Answer]
    why: Callable[[Shortfall], Refusal]
    given: Callable[[], Given]
    without: Iterable[tuple[str, Question]]
    lower: Iterable[Lower[Question]]

    def explain(self, enquiry: Enquiry) -> Explanation[Kind, Given]:
        """Ask, and where the answer is no, look for the nearest change."""
        answer = self.judge(self.asked)
        if isinstance(answer, Unknown):
            return Explanation(self.shape, unknown=answer.why)
        if isinstance(answer, Fits):
            return Explanation(self.shape, self.given())
        refusal = self.why(answer) if isinstance(answer, Shortfall) else answer
        change, searched = nearest_change(self.judge, self.without, self.lower, enquiry)
        return Explanation(self.shape, refusal=refusal, change=change, searched=searched)


def nodes_left(shape: Shape, nodes: NodeSelector | None, index: Index) -> int:
    """The real nodes of a shape that a selector leaves, as bits."""
    return shape.members if nodes is None else shape.members & index.selected(nodes)
