"""What `--explain` and the console show for each shape of node: where a pod's devices lie, or what refuses and what would help.

A family asks its own engine with a `Case`, and turns the `ShapeAnswer` into one `ShapeExplanation`. The terminal, the JSON
and the drawings read that value and add nothing to it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from webhook.devices import wording
from webhook.devices.bits import lowest
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import MAX_NOTE, DrawnNode
from webhook.devices.families import Role
from webhook.devices.nearest import Change, Enquiry, Lower, nearest_change
from webhook.devices.nodes import Index
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.shapes import SAMPLE, Shape
from webhook.devices.target import Target
from webhook.devices.verdict import Never, Unknown, Verdict
from webhook.pod.view import REGULAR
from webhook.texts import shorten

MAX_SHAPES = 50  # explained; a pod and a fleet made to be expensive end somewhere
MAX_NAME = 1000  # characters of a node's name

Kind = TypeVar("Kind", bound=Shape)
Given = TypeVar("Given")
Question = TypeVar("Question")


# --- the engine's answer --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeAnswer(Generic[Kind, Given]):
    """The engine's answer for an empty node of one shape.

    Attributes:
        shape: the shape.
        given: what the pod gets; None unless it fits.
        refusal: what refuses; None unless the pod can never fit.
        change: the nearest single change with which it fits.
        searched: False if the search for a change was cut short.
        unknown: why there is no answer; empty if there is one.
    """

    shape: Kind
    given: Given | None = None
    refusal: Never | None = None
    change: Change | None = None
    searched: bool = True
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Case(Generic[Kind, Given, Question]):
    """A question to the engine about one shape, and the changes to try if it refuses.

    Attributes:
        shape: the shape.
        asked: the question.
        judge: the engine's answer for an empty node of the shape.
        given: what the pod gets, if it fits.
        without: fields that may be removed, each with the question that is left.
        lower: quantities that could be lowered.
        why: what refuses first, where the engine's reason can be narrowed.
    """

    shape: Kind
    asked: Question
    judge: Callable[[Question], Verdict]
    given: Callable[[], Given]
    without: Iterable[tuple[str, Question]]
    lower: Iterable[Lower[Question]]
    why: Callable[[Never], Never] = lambda never: never

    def answer(self, enquiry: Enquiry) -> ShapeAnswer[Kind, Given]:
        """Ask, and look for the nearest change if the answer is no."""
        answer = self.judge(self.asked)
        if isinstance(answer, Unknown):
            return ShapeAnswer(self.shape, unknown=answer.why)
        if isinstance(answer, Never):
            change, searched = nearest_change(self.judge, self.without, self.lower, enquiry)
            return ShapeAnswer(self.shape, refusal=self.why(answer), change=change, searched=searched)
        return ShapeAnswer(self.shape, self.given())


def nodes_left(shape: Shape, nodes: NodeSelector | None, index: Index) -> int:
    """The real nodes of a shape that a selector leaves, as bits."""
    return shape.members if nodes is None else shape.members & index.selected(nodes)


# --- the explanation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selected:
    """The nodes that the pod's selector leaves: up to three of them, and how many there are."""

    names: tuple[str, ...]
    nodes: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence for people; the mark `→` begins the one that says what would help."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class RefusalMessage:
    """What refuses first: the reason in a word or two, the container that it is about, and a sentence."""

    reason: str
    container: str | None
    message: str


@dataclass(frozen=True, slots=True)
class LowerAmount:
    """What would help: at most so much of a resource in a container."""

    container: str
    resource: str
    most: int


@dataclass(frozen=True, slots=True)
class Removal:
    """What would help: the pod without an annotation, label or selector."""

    remove: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeExplanation:
    """Where a pod's devices lie on an empty node of one shape, or what refuses.

    A family adds fields of its own for what its nodes have; they are part of the JSON.

    Attributes:
        shape: the shape.
        selected: the nodes of it that the pod's selector leaves; None if it has none, or if they are not known.
        placement: `fits`, `tight`, `never` or `unknown`.
        slices: what each container gets; None unless the pod fits.
        refusal: what refuses; None unless something does.
        change: the nearest single change with which the pod fits, if one is found.
        devices: what a node has, for people.
        sentences: slices, refusal and change for people.
        drawing: a node with what the pod gets there.
    """

    shape: Shape
    selected: Selected | None = None
    placement: str
    slices: object | None = None
    refusal: object | None = None
    change: LowerAmount | Removal | None = None
    devices: str
    sentences: tuple[Sentence, ...]
    drawing: DrawnNode

    @property
    def names(self) -> tuple[str, ...]:
        """Up to three of the nodes."""
        return self.shape.names

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.shape.nodes

    @property
    def declared(self) -> bool:
        """Whether the nodes stand in the policy and may not exist yet."""
        return self.shape.declared


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """Which nodes of one family take one pod.

    Attributes:
        path: the field path of the pod in its object; empty for a pod itself.
        family: the family.
        shapes: for each shape, where the devices lie or what refuses; None if the pod's quantities are not usable.
        more: how many shapes are not explained.
        missing: what to say if the fleet has no such node; else empty.
        selector: the fields of the pod that select nodes; empty if none do.
        ignored: the fields of a selector that leaves no node of the family, and is left aside.
        skipped: nodes that the scheduler skips, each with the resource name that it lacks.
        chip: the kind of NPU, where the family has several.
    """

    path: str
    family: str
    shapes: tuple[ShapeExplanation, ...] | None
    more: int
    missing: str
    selector: str = ""
    ignored: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    chip: str = ""


class PlacementRequest(NamedTuple):  # made in reviews, and cheaper to make than a frozen dataclass
    """A pod that requests devices of a family, and what it is judged by.

    Attributes:
        path: the field path of the pod in its object; empty for a pod itself.
        pod: the pod.
        family: the family.
        config: the device config.
        target: the version of the scheduler.
        node_index: which nodes a selector leaves.
        written: what the pod demands of its node's labels.
        nodes: the same; None if it leaves no node of the family.
        denies: whether a rule refuses pods in the pod's namespace.
    """

    path: str
    pod: DevicePod
    family: str
    config: DeviceConfig
    target: Target
    node_index: Index
    written: NodeSelector | None
    nodes: NodeSelector | None
    denies: Callable[[str], bool]

    @property
    def usable(self) -> bool:
        """Whether every quantity of the family can be used."""
        amounts = [amount for amount in self.pod.amounts if amount.family == self.family]
        zero = any(a.value == 0 and a.role is Role.NUMBER and a.container.kind == REGULAR for a in amounts)
        return not zero and all(amount.value is not None for amount in amounts)

    @property
    def several(self) -> bool:
        """Whether several containers request devices, so that a change has to name its own."""
        return len(self.pod.requested[self.family]) > 1

    def selected(self, shape: Shape) -> Selected | None:
        """The nodes of a shape that the pod's selector leaves; None if it has none, or if they are not known."""
        if self.nodes is None or shape.declared:
            return None
        left = nodes_left(shape, self.nodes, self.node_index)
        names = [shorten(self.node_index.names[number], MAX_NAME) for number in islice(_numbers(left), SAMPLE)]
        return Selected(tuple(names), left.bit_count())

    def explanation(
        self,
        explained: Iterable[ShapeExplanation] | None,
        shapes: Sequence[Shape],
        missing: str,
        skipped: Iterable[tuple[str, str]] = (),
        chip: str = "",
    ) -> PodExplanation:
        """The whole explanation.

        Args:
            explained: the first fifty shapes; None if the quantities are not usable.
            shapes: all shapes of the family.
            missing: what to say if there are none.
            skipped: nodes that the scheduler skips.
            chip: the kind of NPU.
        """
        return PodExplanation(
            path=self.path,
            family=self.family,
            shapes=None if explained is None else tuple(explained),
            more=len(shapes) - MAX_SHAPES,
            missing="" if shapes else missing,
            selector="" if self.nodes is None else self.nodes.words,
            ignored=self.written.words if self.written is not None and self.nodes is None and shapes else "",
            skipped=tuple(skipped),
            chip=chip,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of an explanation that follows from the engine's answer alone.

    Attributes:
        placement, refusal, change, sentences: of the explanation.
        note: of the drawing.
    """

    placement: str
    sentences: tuple[Sentence, ...]
    refusal: RefusalMessage | None = None
    change: LowerAmount | Removal | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """How a change is written.

    Attributes:
        names: the resource name of each role.
        several: several containers request devices, so that a change has to name its own.
        exact: a smaller value than that of the change need not do.
    """

    names: Mapping[Role, str]
    several: bool
    exact: bool = False

    def sentence(self, change: Change) -> str:
        """The beginning of a sentence that ends in `it fits`."""
        if change.container is None or change.role is None:
            return f"without {change.word}"
        name, where = self.names[change.role], f" in {wording.container(change.container)}" if self.several else ""
        if change.value == 0:
            return f"without {name}{where}"
        less = " or fewer" if change.role is Role.NUMBER else " or less"
        return f"with {name} {change.value}{less if change.value > 1 and not self.exact else ''}{where}"


def outcome(
    answer: ShapeAnswer[Kind, Given], given: Iterable[str], refusal: Callable[[Never], str], words: ChangeWords
) -> Outcome:
    """Put an engine's answer into words.

    Args:
        answer: the answer.
        given: what the pod gets, if it fits.
        refusal: a sentence for what refuses.
        words: how the change is written.
    """
    if answer.given is not None:
        return Outcome("fits", tuple(Sentence("", text) for text in given))
    if answer.refusal is None:
        return Outcome("unknown", (Sentence("", answer.unknown),), note=answer.unknown)
    reason, container, change = answer.refusal.reason, answer.refusal.container, answer.change
    message = f"{reason}: {refusal(answer.refusal)}"
    helps = "" if change is None else words.sentence(change)
    return Outcome(
        "never",
        (Sentence("", message), advice(helps, searched=answer.searched)),
        RefusalMessage(reason.words, container.name if container is not None else None, message),
        None if change is None else change_value(change, words.names),
        shorten(message, MAX_NOTE),
    )


def unselected(nodes: NodeSelector | None) -> str:
    """Why a node that a selector leaves out refuses."""
    return f"not what the pod's {nodes.words} demands" if nodes is not None else ""


def advice(helps: str, *, searched: bool) -> Sentence:
    """What would help, or that nothing was found."""
    if helps:
        return Sentence("→", f"{helps} it fits")
    return Sentence("→", "no single change helps" if searched else "the search for a change was cut short")


def change_value(change: Change, names: Mapping[Role, str]) -> LowerAmount | Removal:
    """A change with the name of its resource."""
    if change.container is None or change.role is None:
        return Removal(change.word)
    return LowerAmount(change.container.name, names[change.role], change.value)


def _numbers(members: int) -> Iterator[int]:
    while members:
        yield lowest(members)
        members &= members - 1
