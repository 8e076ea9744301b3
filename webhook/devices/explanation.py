"""What `--explain`, `why` and the console show for each shape of node: where devices lie, what refuses, what would help.

The terminal, the JSON and the drawings read these values and add nothing to them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import Annotated, Any, NamedTuple

from pydantic import Field, GetPydanticSchema
from pydantic_core.core_schema import any_schema

from webhook.devices import wording
from webhook.devices.drawing import DrawnNode
from webhook.devices.explainer import AnyExplainer, EqualDevices, Taken, is_usable
from webhook.devices.family import AnyFamily, Refusal
from webhook.devices.nearest import VERDICT_STEPS, Change, ChangeSearch, LowerAmount, Removal
from webhook.devices.nodes import numbers_of
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import SAMPLE, AnyPart, AnyShape
from webhook.devices.verdict import WORK_LIMIT, Fits, FitsTightly, Never, Reason, SearchBudget, Unknown, Verdict
from webhook.pod.selectors import NodeSelector
from webhook.texts import shorten

EXPLAINERS: dict[type[AnyFamily], type[AnyExplainer]] = {}  # of the families that were explained so far
MAX_SHAPES = 50  # explained of one pod, however many the fleet has
MAX_SKIPPED = 50  # nodes
MAX_NAME = 1000  # characters of a node's name


def explainer(family: AnyFamily) -> AnyExplainer:
    """What explains the pods of a family: of `VgpuFamily`, `VgpuExplainer` in the module `explain` beside it."""
    kind = type(family)
    if kind not in EXPLAINERS:  # few fleets have devices of all families
        module = import_module(f"{kind.__module__.rpartition('.')[0]}.explain")
        EXPLAINERS[kind] = getattr(module, kind.__name__.replace("Family", "Explainer"))
    return EXPLAINERS[kind](family)


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
    """What refuses first: the reason in short, the container and the device that it is about, and a sentence."""

    reason: str
    container: str | None
    device: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeExplanation:
    """Where a pod's devices lie on an empty node of one shape, or what refuses.

    Attributes:
        shape: the shape; not part of the JSON.
        names: up to three of the nodes.
        nodes: how many there are.
        declared: whether the policy declares them, so that they may not exist yet.
        selected: the nodes of it that the pod's selector leaves; None if it has none, or if they are not known.
        mode: how the devices are shared; empty if there is one way only.
        kinds: the devices of a node, equal ones together.
        placement: `fits`, `tight`, `never` or `unknown`.
        slices: what the pod gets; None unless it fits.
        refusal: what refuses; None unless something does.
        change: the nearest single change with which the pod fits, if one is found.
        devices: what a node has, for people.
        sentences: slices, refusal and change for people.
        drawing: a node with what the pod gets there.
    """

    shape: Annotated[AnyShape, GetPydanticSchema(lambda *_: any_schema()), Field(exclude=True)]
    names: tuple[str, ...]
    nodes: int
    declared: bool
    selected: Selected | None = None
    mode: str
    kinds: tuple[EqualDevices, ...]
    placement: str
    slices: tuple[Taken, ...] | None = None
    refusal: RefusalMessage | None = None
    change: Change | None = None
    devices: str
    sentences: tuple[Sentence, ...]
    drawing: DrawnNode


@dataclass(frozen=True, slots=True)
class SkippedNode:
    """A node that the scheduler skips, and the resource name that it lacks."""

    node: str
    missing: str


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """Which nodes of one family take one pod.

    Attributes:
        pod: the field path of the pod in its object; empty for a pod itself.
        family: the family.
        shapes: for each shape, where the devices lie or what refuses; None if the pod's quantities are not usable.
        more: how many shapes are not explained.
        missing: a sentence if the fleet has no such node; else empty.
        selector: the fields of the pod that select nodes; empty if none do.
        ignored: the fields of a selector that leaves no node of the family, and is left aside.
        skipped: nodes that the scheduler skips.
        more_skipped: how many of those are left out.
        chip: the kind of NPU, where the family has several.
    """

    pod: str
    family: str
    shapes: tuple[ShapeExplanation, ...] | None
    more: int
    missing: str
    selector: str = ""
    ignored: str = ""
    skipped: tuple[SkippedNode, ...] = ()
    more_skipped: int = 0
    chip: str = ""


class PlacementRequest(NamedTuple):
    """A pod that requests devices of a family, and what it is explained by.

    Attributes:
        pod: the pod.
        family: the family.
        selects: whether what the pod demands of its node's labels leaves a node of the family.
        denies: whether a rule refuses pods in the pod's namespace.
        path: the field path of the pod in its object; empty for a pod itself.
        search: of changes, if several explanations share its steps.
        takes_less: whether the status takes a changed request, by the nodes that it may get, as bits; None if it takes any.
        admits: whether the pod may be created with a change; None if it may with any.
    """

    pod: DevicePod
    family: AnyFamily
    selects: bool
    denies: Callable[[str], bool]
    path: str = ""
    search: ChangeSearch | None = None
    takes_less: Callable[[Any, int | None], bool] | None = None
    admits: Callable[[Change], bool] | None = None

    @property
    def nodes(self) -> NodeSelector | None:
        """What the pod demands of its node's labels; None if it leaves no node of the family."""
        return self.pod.view.selector if self.selects else None

    def explain(self, part: AnyPart) -> Iterator[PodExplanation]:
        """Explain the pod to the nodes of its family, each kind of device by itself."""
        family = self.family
        members = None if self.nodes is None else part.index.selected(self.nodes)
        requests = family.requests(self.pod, members, self.denies) if is_usable(self.pod, family.id) else ()
        served = [request for request in requests if explainer(family).is_served(request)]
        for request in served:
            yield self._explained(request, part)
        if not served:
            yield self._explanation(None, part.shapes, "", ())

    def _explained(self, request: Any, part: AnyPart) -> PodExplanation:
        explains, search = explainer(self.family), self.search or ChangeSearch()
        shapes = [shape for shape in part.shapes if explains.concerns(request, shape)]
        explained = [_ShapeExplainer(self, request, part, shape, search).explain() for shape in shapes[:MAX_SHAPES]]
        skipped = [
            SkippedNode(shorten(node, MAX_NAME), missing)
            for node, missing in part.gated
            if explains.lacks(request, missing)
        ]
        explanation = self._explanation(
            tuple(explained), shapes, self.family.unserved or explains.missing(request, part), skipped
        )
        return replace(explanation, chip=explains.label(request))

    def _explanation(
        self,
        explained: tuple[ShapeExplanation, ...] | None,
        shapes: Sequence[AnyShape],
        missing: str,
        skipped: Sequence[SkippedNode],
    ) -> PodExplanation:
        written, nodes = self.pod.view.selector, self.nodes
        return PodExplanation(
            pod=self.path,
            family=self.family.id,
            shapes=explained,
            more=0 if explained is None else len(shapes) - len(explained),
            missing="" if shapes else missing,
            selector="" if nodes is None else nodes.words,
            ignored=written.words if written is not None and not self.selects and shapes else "",
            skipped=tuple(skipped[:MAX_SKIPPED]),
            more_skipped=len(skipped[MAX_SKIPPED:]),
        )


class _ShapeExplainer:
    """Explains one request of a pod to an empty node of one shape."""

    def __init__(
        self, placement: PlacementRequest, request: Any, part: AnyPart, shape: AnyShape, search: ChangeSearch
    ) -> None:
        self._placement = placement
        self._explains = explainer(placement.family)
        self._request = request
        self._shape = shape
        self._part = self._explains.alone(request, part, shape)
        self._search = search

    def explain(self) -> ShapeExplanation:
        """The explanation, with the nearest change if the pod does not fit."""
        explains, request, shape, part = self._explains, self._request, self._shape, self._part
        verdict = self._verdict()
        never = explains.narrow(request, part, verdict)
        refusal = None if never is None else self._refusal(never)
        slices, refusals = explains.before(request, part) if refusal is not None else ((), {})
        note = refusal.message if refusal is not None else verdict.why if isinstance(verdict, Unknown) else ""
        texts: Iterable[str] = filter(None, [note])
        change, searched = None, True
        if isinstance(verdict, Fits):
            slices, note = explains.taken(request, part)
            texts = explains.sentences(slices, note)
        elif not isinstance(verdict, Unknown):
            unchanged = (request, self._placement.nodes)
            amounts, removals = explains.reducible(request, shape), explains.removals(request)
            admits = self._placement.admits
            change, searched = self._search.nearest(self._judge_changed, unchanged, removals, amounts, admits)
            if explains.exact_amounts and isinstance(change, LowerAmount):
                change = replace(change, exact=True)
        sentences = [Sentence("", f"in doubt: {shape.doubt}")] if shape.doubt else []
        sentences += [Sentence("", text) for text in texts]
        if isinstance(verdict, FitsTightly):
            sentences.append(Sentence("", TIGHT))
        if isinstance(verdict, Never | FitsTightly):
            sentences.append(Sentence("→", self._advice(change, searched=searched)))
        return ShapeExplanation(
            shape=shape,
            names=shape.names,
            nodes=shape.nodes,
            declared=shape.declared,
            selected=self._selected(),
            mode=shape.mode,
            kinds=tuple(explains.kinds(shape)),
            placement=verdict.placement,
            slices=tuple(slices) if isinstance(verdict, Fits) else None,
            refusal=refusal,
            change=change,
            devices=explains.format_devices(shape),
            sentences=tuple(sentences),
            drawing=explains.draw(shape, slices, refusals, note),
        )

    def _verdict(self) -> Verdict:
        if self._shape.doubt and not self._shape.devices:
            return Unknown("which devices it has is not known")
        return self._judge(self._request, self._placement.nodes)

    def _judge(self, request: Any, nodes: NodeSelector | None) -> Verdict:
        """The engine's verdict; the steps of its search are limited."""
        index = self._part.index
        members = None if nodes is None else index.selected(nodes)
        if self._shape.node_left(members, index) is None:
            return Never(Reason.NODES)
        steps = self._search.share(WORK_LIMIT)
        budget = SearchBudget(steps)
        verdict = self._explains.judge_alone(request, self._part, members, budget)
        self._search.spend(steps - max(budget.left, 0) + VERDICT_STEPS + len(self._placement.pod.amounts))
        return verdict

    def _judge_changed(self, request: Any, nodes: NodeSelector | None) -> Verdict:
        takes = self._placement.takes_less
        if takes is not None and not takes(request, None if nodes is None else self._part.index.selected(nodes)):
            self._search.spend(VERDICT_STEPS)
            return Never(Reason.NODES)
        return self._judge(request, nodes)

    def _refusal(self, never: Never) -> RefusalMessage:
        nodes = self._placement.nodes
        if never.reason is Reason.NODES:
            sentence = f"not what the pod's {nodes.words} demands" if nodes is not None else ""
        else:
            refusal = Refusal(
                never=never,
                request=self._request,
                pod=self._placement.pod,
                part=self._part,
                selector=nodes,
                shape=self._shape,
            )
            sentence = next((text for _, text in self._explains.describe(refusal)), str(never.reason))
        container = never.container.name if never.container is not None else None
        return RefusalMessage(never.reason.words, container, never.device, f"{never.reason}: {sentence}")

    def _selected(self) -> Selected | None:
        """The nodes that the pod's selector leaves; None if it has none, or if they are not known."""
        nodes, index = self._placement.nodes, self._part.index
        if nodes is None or self._shape.declared:
            return None
        left = self._shape.members & index.selected(nodes)
        names = [shorten(index.names[number], MAX_NAME) for number in islice(numbers_of(left), SAMPLE)]
        return Selected(tuple(names), left.bit_count())

    def _advice(self, change: Change | None, *, searched: bool) -> str:
        """What would help, or that nothing was found."""
        if change is None:
            return "no single change helps" if searched else "the search for a change was cut short"
        if isinstance(change, Removal):
            return f"without {change.remove} it fits"
        several = len(self._placement.pod.requested[self._placement.family.id]) > 1
        where = f" in {wording.container(change.container)}" if several else ""
        if change.most == 0:
            return f"without {change.resource}{where} it fits"
        less = " or less" if change.most > 1 and not change.exact else ""
        return f"with {change.resource} {change.most}{less}{where} it fits"


TIGHT = "another order of containers or cards would fit; the scheduler does not try it on an empty node"
