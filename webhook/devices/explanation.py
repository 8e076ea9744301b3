"""What `--explain` and the console show for each shape of node: where a pod's devices lie, or what refuses and what would help.

A family subclasses `ShapeExplainer`, which calls the family's engine and makes one `ShapeExplanation`. The terminal, the
JSON and the drawings read that value and add nothing to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.families import Role
from webhook.devices.nearest import VERDICT_STEPS, ChangeSearch, LowerAmount, Reducible, Removal
from webhook.devices.nodes import Index, numbers_of
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import SAMPLE, AnyShape, FleetPart, NodeShape
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, Unknown, Verdict
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import REGULAR
from webhook.texts import shorten
from webhook.volcano.target import Target

MAX_SHAPES = 50  # explained of one pod, however many the fleet has
MAX_NAME = 1000  # characters of a node's name

Requested = TypeVar("Requested")
Slices = TypeVar("Slices")


@dataclass(frozen=True, slots=True)
class Selected:
    """The nodes that the pod's selector leaves: up to three of them, and how many there are."""

    names: tuple[str, ...]
    nodes: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence for people; the mark `→` begins the advice."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class RefusalMessage:
    """What refuses first: the reason in short, the container that it is about, and a sentence."""

    reason: str
    container: str | None
    message: str


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

    shape: NodeShape
    selected: Selected | None = None
    placement: str
    slices: Any = None
    refusal: Any = None
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
        """Whether the policy declares the nodes, which may not exist yet."""
        return self.shape.declared


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """Which nodes of one family take one pod.

    Attributes:
        path: the field path of the pod in its object; empty for a pod itself.
        family: the family.
        shapes: for each shape, where the devices lie or what refuses; None if the pod's quantities are not usable.
        more: how many shapes are not explained.
        missing: a sentence if the fleet has no such node; else empty.
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
        search: of changes, if several explanations share its steps.
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
    search: ChangeSearch | None = None

    @property
    def usable(self) -> bool:
        """Whether every quantity of the family can be used."""
        amounts = [amount for amount in self.pod.amounts if amount.family == self.family]
        zero = any(a.value == 0 and a.role is Role.NUMBER and a.container.kind == REGULAR for a in amounts)
        return not zero and all(amount.value is not None for amount in amounts)

    @property
    def members(self) -> int | None:
        """The nodes that the pod's selector leaves, as bits; None if it has none."""
        return None if self.nodes is None else self.node_index.selected(self.nodes)

    def selected(self, shape: NodeShape) -> Selected | None:
        """The nodes of a shape that the pod's selector leaves; None if it has none, or if they are not known."""
        if self.nodes is None or shape.declared:
            return None
        left = shape.members & self.node_index.selected(self.nodes)
        names = [shorten(self.node_index.names[number], MAX_NAME) for number in islice(numbers_of(left), SAMPLE)]
        return Selected(tuple(names), left.bit_count())

    def explanation(
        self,
        explain: "Callable[[NodeShape], ShapeExplainer[Any, Any, Any]] | None",
        shapes: Sequence[NodeShape],
        missing: str,
        skipped: Iterable[tuple[str, str]] = (),
        chip: str = "",
    ) -> PodExplanation:
        """Explain the pod to the shapes of its family, the first fifty.

        Args:
            explain: makes the explainer of a shape; None if the pod's quantities are not usable.
            shapes: all shapes of the family.
            missing: a sentence for a fleet without such shapes.
            skipped: nodes that the scheduler skips.
            chip: the kind of NPU.
        """
        search = self.search or ChangeSearch()
        explained = None if explain is None else tuple(explain(shape).explain(search) for shape in shapes[:MAX_SHAPES])
        return PodExplanation(
            path=self.path,
            family=self.family,
            shapes=explained,
            more=len(shapes) - MAX_SHAPES,
            missing="" if shapes else missing,
            selector="" if self.nodes is None else self.nodes.words,
            ignored=self.written.words if self.written is not None and self.nodes is None and shapes else "",
            skipped=tuple(skipped),
            chip=chip,
        )


class ShapeExplainer(ABC, Generic[AnyShape, Requested, Slices]):
    """Explains a pod to an empty node of one shape.

    Attributes:
        made: the class of the explanation.
        exact_amounts: an amount below the one that fits need not fit.
    """

    made: type[ShapeExplanation] = ShapeExplanation
    exact_amounts = False

    def __init__(
        self, request: PlacementRequest, requested: Requested, fleet: FleetPart[AnyShape], shape: AnyShape
    ) -> None:
        """Take the pod, what it requests of the family, the family's nodes, and the shape."""
        self.request = request
        self.requested = requested
        self.shape = shape
        self.alone = self.fleet_alone(fleet)
        self.search = ChangeSearch()

    # --- what a family defines -----------------------------------------------------------------------------------------

    @abstractmethod
    def judge(self, requested: Requested, nodes: int | None) -> Verdict:
        """The engine's verdict for a request; the selector leaves nodes of the shape, as bits."""

    @abstractmethod
    def slices(self) -> Slices:
        """What the pod gets; it fits."""

    @abstractmethod
    def reducible(self) -> Iterable[Reducible[Requested]]:
        """The amounts that could be lowered."""

    @abstractmethod
    def devices(self) -> str:
        """What a node has, for people."""

    @abstractmethod
    def slice_sentences(self, slices: Slices) -> Iterable[str]:
        """What the pod gets, for people."""

    @abstractmethod
    def draw(self, slices: Slices | None, note: str) -> DrawnNode:
        """A node with what the pod gets; with the note if it gets nothing."""

    def fields(self) -> dict[str, Any]:
        """The fields that the family adds to the explanation."""
        return {}

    def removals(self) -> Iterable[tuple[str, Requested]]:
        """Words that could be removed, each with what the pod requests without it."""
        return ()

    def narrow(self, never: Never) -> Never:
        """What refuses first, where the engine's reason can be narrowed."""
        return never

    def refusal_sentence(self, never: Never) -> str:
        """What refuses, for people; the selector leaves a node."""
        return str(never.reason)

    def fleet_alone(self, fleet: FleetPart[AnyShape]) -> FleetPart[AnyShape]:
        """The fleet with this shape alone."""
        return replace(fleet, shapes=(self.shape,))

    # --- what all families share ---------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        """The engine's verdict; `Never` with what refuses first."""
        if self.shape.doubt and not self.shape.devices:
            return Unknown("which devices it has is not known")
        found = self._judge(self.requested, self.request.nodes)
        return self.narrow(found) if isinstance(found, Never) else found

    def explain(self, search: ChangeSearch) -> ShapeExplanation:
        """The explanation, with the nearest change if the pod does not fit."""
        self.search = search
        verdict = self.verdict()
        slices = self.slices() if isinstance(verdict, Fits) else None
        refusal = self.refusal(verdict)
        note = refusal.message if refusal is not None else verdict.why if isinstance(verdict, Unknown) else ""
        change, searched = None, True
        if isinstance(verdict, Never | FitsTightly):
            unchanged = (self.requested, self.request.nodes)
            change, searched = search.nearest(self._judge, unchanged, self.removals(), self.reducible())
        texts = self.slice_sentences(slices) if slices is not None else filter(None, [note])
        sentences = [Sentence("", f"in doubt: {self.shape.doubt}")] if self.shape.doubt else []
        sentences += [Sentence("", text) for text in texts]
        if isinstance(verdict, FitsTightly):
            sentences.append(Sentence("", TIGHT))
        if isinstance(verdict, Never | FitsTightly):
            sentences.append(Sentence("→", self._advice(change, searched=searched)))
        return self.made(
            shape=self.shape,
            selected=self.request.selected(self.shape),
            placement=verdict.placement,
            slices=slices,
            refusal=refusal,
            change=change,
            devices=self.devices(),
            sentences=tuple(sentences),
            drawing=self.draw(slices, note),
            **self.fields(),
        )

    def refusal(self, verdict: Verdict) -> Any:
        """What refuses, as a value; None unless something does."""
        if not isinstance(verdict, Never):
            return None
        sentence = self.refusal_sentence(verdict) if verdict.reason is not Reason.NODES else self.unselected()
        container = verdict.container.name if verdict.container is not None else None
        return RefusalMessage(verdict.reason.words, container, f"{verdict.reason}: {sentence}")

    def unselected(self) -> str:
        """Why a node that the pod's selector leaves out refuses."""
        return f"not what the pod's {self.request.nodes.words} demands" if self.request.nodes is not None else ""

    def _judge(self, requested: Requested, nodes: NodeSelector | None) -> Verdict:
        index = self.request.node_index
        members = None if nodes is None else index.selected(nodes)
        if self.shape.node_left(members, index) is None:
            return Never(Reason.NODES)
        self.search.spend(VERDICT_STEPS + len(self.request.pod.amounts))
        return self.judge(requested, members)

    def _advice(self, change: LowerAmount | Removal | None, *, searched: bool) -> str:
        """What would help, or that nothing was found."""
        if change is None:
            return "no single change helps" if searched else "the search for a change was cut short"
        if isinstance(change, Removal):
            return f"without {change.remove} it fits"
        several = len(self.request.pod.requested[self.request.family]) > 1
        where = f" in {wording.container(change.container)}" if several else ""
        if change.most == 0:
            return f"without {change.resource}{where} it fits"
        less = " or less" if change.most > 1 and not self.exact_amounts else ""
        return f"with {change.resource} {change.most}{less}{where} it fits"


TIGHT = "another order of containers or cards would fit; the scheduler does not try it on an empty node"
